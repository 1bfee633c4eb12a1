"""What every set of another tool's variables must do."""

from __future__ import annotations

import pytest
from plugin_package import variants

from benchwright.options.variables import VARIABLES, value_of, values_of
from benchwright.runs.base_folder import BaseFolder

OURS = {"BASE", "CONFIG", "SYSTEM", "DATA_DIR"}


@pytest.fixture(params=variants(VARIABLES))
def name(request: pytest.FixtureRequest, plugins: None) -> str:
    found: str = request.param
    return found


def test_its_variables_mean_what_ours_mean(name: str) -> None:
    other = VARIABLES.load(name)()
    assert other.prefix.endswith("_")
    assert not other.prefix.startswith("BENCHWRIGHT")
    assert other.names <= OURS
    for word in other.names:
        theirs = {f"{other.prefix}{word}": "/theirs"}
        assert value_of(f"BENCHWRIGHT_{word}", theirs) == "/theirs"
        assert list(values_of(f"BENCHWRIGHT_{word}", {**theirs, f"BENCHWRIGHT_{word}": "/ours"})) == [
            "/ours",
            "/theirs",
        ]
        assert value_of(f"BENCHWRIGHT_{word}", {**theirs, f"{other.prefix}{word}": ""}) is None


def test_it_names_the_base_folder(name: str) -> None:
    other = VARIABLES.load(name)()
    assert str(BaseFolder.choose(None, {f"{other.prefix}BASE": "/theirs"}).path) == "/theirs"
    assert str(BaseFolder.choose("/given", {f"{other.prefix}BASE": "/theirs"}).path) == "/given"


def test_what_no_tool_calls_so_is_ignored(plugins: None) -> None:
    assert value_of("BENCHWRIGHT_BASE", {"QQQQ_BASE": "/x", "BASE": "/y"}) is None
