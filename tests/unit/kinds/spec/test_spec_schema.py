"""The published JSON Schema of specifications says what the checks say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from json_schemas import fits
from specifications import read

from benchwright.core.errors import InvalidInput
from benchwright.kinds.spec.read.keys import json_schema

ROOT = Path(__file__).parents[4]
PUBLISHED = ROOT / "src" / "benchwright" / "schemas" / "spec.schema.json"
REAL = ROOT.parent / "shared" / "compat" / "faipep"


def test_the_published_schema_is_current() -> None:
    assert json.loads(PUBLISHED.read_text()) == json_schema()


@pytest.mark.skipif(not REAL.exists(), reason="the real specifications are not beside this checkout")
def test_real_specifications_fit() -> None:
    schema = json_schema()
    for path in REAL.rglob("*.json"):
        assert fits(json.loads(path.read_text()), schema, schema), path


@pytest.mark.parametrize(
    "changed",
    [
        {"iter": 0},
        {"iter": []},
        {"metric": "speed"},
        {"commands": [1]},
        {"commands": {"caffe2": "x"}},
        {"inputs": {"a": {"shapes": [[0]]}}},
        {"inputs": []},
        {"platform_args": {"taskset": []}},
        {"files": {"a": {"location": 3}}},
        {"statistics": "p50"},
        {"env": 3},
        {"timeout": -1},
        {"log_output": "maybe"},
        {"tolerance": {"a": "b"}},
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(changed: dict[str, Any], tmp_path: Path) -> None:
    test = {"identifier": "x", "command": "a", **changed}
    with pytest.raises(InvalidInput):
        read(tmp_path, test)
    schema = json_schema()
    wanted = {"tolerance"} & set(changed)  # numbers may be text, which a schema cannot tell from a number's
    assert wanted or not fits({"model": {"name": "a"}, "tests": [test]}, schema, schema)
