"""What every dialect of specifications must do with any test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from plugin_package import variants

from benchwright.kinds.spec.dialects import DIALECTS, SpecDialect, dialect_folders, dialects, usual_command
from benchwright.kinds.spec.placeholders import Filler
from benchwright.kinds.spec.read.keys import LAUNCH_FOLDERS, PLACEHOLDER
from benchwright.kinds.spec.spec_test import SpecInput, SpecTest

GIVEN = {"path": "/s.json", "line": 1, "model": "net", "identifier": "0"}
TESTS = [
    SpecTest(**GIVEN),
    SpecTest(**GIVEN, inputs=(SpecInput(name="data", shape=(1, 3, 8, 8)),), iterations=5),
    SpecTest(**GIVEN, inputs=(SpecInput(name="a b", shape=(-1,)),), framework="tflite"),
    SpecTest(**GIVEN, inputs=(SpecInput(name="data", shape=()),), framework="house", metric="error"),
]


@pytest.fixture(params=variants(DIALECTS))
def dialect(request: pytest.FixtureRequest, plugins: None) -> SpecDialect:
    return DIALECTS.load(request.param)()


@pytest.fixture(autouse=True)
def forgotten() -> None:
    for each in (dialects, dialect_folders):
        each.cache_clear()


def test_its_placeholders_are_folders_and_none_of_ours(dialect: SpecDialect) -> None:
    for name, folder in dialect.folders().items():
        assert PLACEHOLDER.fullmatch(f"{{{name}}}")
        assert f"{{{name}}}" not in LAUNCH_FOLDERS
        assert Path(folder).is_absolute()
        assert os.path.isdir(folder)


@pytest.mark.parametrize("test", TESTS)
def test_any_test_may_be_asked_about(dialect: SpecDialect, test: SpecTest) -> None:
    assert all(name and "=" not in name and isinstance(value, str) for name, value in dialect.variables(test).items())
    line = dialect.command(test)
    if line is not None:
        assert Filler({}, {}, ({"program": "/bin/echo"},)).command(line)[0] == "/bin/echo"


@pytest.mark.compat
def test_a_dialect_from_outside_is_asked_after_ours(plugins: None) -> None:
    assert {"FAIPEPROOT", "HOUSE_SCRIPTS"} <= dialect_folders().keys()
    assert (usual_command(TESTS[1]) or "").startswith("{program} --")
