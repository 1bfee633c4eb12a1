"""Any value anywhere in a specification is read, or refused with its place; what was read can be planned."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from builders import MACHINE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.kinds.registry import kind_of
from benchwright.kinds.spec.options import SpecOptions
from benchwright.kinds.spec.read.specification import read_specification
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan

_FILE = {"filename": "f", "location": "x/f", "md5": "0" * 32}
WHOLE: dict[str, Any] = {
    "model": {
        "name": "net",
        "format": "caffe2",
        "group": "g",
        "files": {"predict": _FILE},
        "libraries": [{"location": "l.so", "target": "l.so"}],
        "cooldown": 1,
        "repeat": 2,
        "command_args": "--a {iter}",
        "inputs": {"data": {"shapes": [["variable", 3]], "type": "float"}},
        "outputs": [{"out": {"shapes": [[3]]}}],
        "preprocess": {"commands": ["a"], "platform_args": {"env": {"A": "1"}}},
        "converter": {"name": "json_converter", "args": {}},
        "platform_args": {"taskset": "3"},
    },
    "tests": [
        {
            "identifier": "{ID}",
            "metric": "error",
            "iter": 5,
            "warmup": "1",
            "commands": ["{program} {files.predict} '{own}'", "b | c"],
            "own": "{metric}",
            "inputs": {"data": {"shapes": [[1, 3], [2, 3]], "type": "float"}},
            "input_files": {"data": ["a.txt", "b.txt"]},
            "output_files": {"out": {"filename": "o", "location": "{TGTDIR}/o"}},
            "golden_files": {"out": _FILE},
            "tolerance": 0.1,
            "env": {"B": "2"},
            "timeout": 3,
            "cpu-list": "0",
            "statistics": ["mean", "p95"],
            "profiler": {"enabled": False},
            "method": "software",
            "voltage": 4,
            "log_output": "true",
        },
        {"identifier": "x", "commands": {"caffe2": {"run": "true"}}, "inputs": {"data": {"shapes": [[1, 3]]}}},
        {"identifier": "y", "arguments": "--b", "postprocess": {"commands": "z"}},
    ],
}


def _ways(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [above, *(way for key, inner in items for way in _ways(inner, (*above, key)))]


_ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 1 << 70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", " ", "{", "{own}", "{ID}", "'", "../x", "\0", "\n", "é", "0x", "9" * 400, "-1", "1e9"]),
    st.text(max_size=6),
    st.sampled_from([[], {}, [[]], [{}], {"a": None}, {"": ""}, [None], [1, "a"], {"a": {"b": {"c": []}}}]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(_ways(WHOLE)), _ODD, st.booleans())
def test_any_value_anywhere(tmp_path: Path, way: tuple[Any, ...], odd: Any, with_program: bool) -> None:
    body: Any = copy.deepcopy(WHOLE)
    if not way:
        body = odd
    else:
        inner = body
        for key in way[:-1]:
            inner = inner[key]
        inner[way[-1]] = odd
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(body))
    options = SpecOptions(programs={"program": "/bin/echo"} if with_program else {}, model_cache=str(tmp_path / "c"))
    try:
        found = read_specification(str(path), options)
        said = str(path)
    except InvalidInput as error:
        found, said = [], str(error)
    assert said.startswith(str(path))
    for benchmark in found:
        assert msgspec.json.decode(msgspec.json.encode(benchmark), type=Benchmark) == benchmark
    few = [b for b in found if b.launches < 100]
    with suppress(InvalidInput):
        make_plan(few, MACHINE, Options(), kind_of, folder="/run", probe_path=None, usable_cores=[0, 1])
