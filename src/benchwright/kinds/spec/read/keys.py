"""The keys of specifications: the one table that checks files, and that the JSON Schema for editors is made from."""

from __future__ import annotations

import re
from typing import Any

from benchwright.kinds.spec.spec_test import METRICS
from benchwright.kinds.yaml.value_types import ANYTHING, Either, Key, ListOf, MapOf, Schema, Table, WordType

PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.-]*)\}", re.ASCII)  # {name} or {files.predict}
LAUNCH_FOLDERS = ("{TGTDIR}", "{HOSTDIR}", "{TEMPDIR}")  # what lies below them is made by the test
VARIABLE = "variable"  # a dimension that the file leaves open
DIRECTORY = "directory"  # instead of an MD5 sum
_FILLED: Schema = {"type": "string", "pattern": r"\{[A-Za-z_]"}


def _is_number(value: object, least: float = 0.0, *, whole: bool = False) -> bool:
    """A number, the text of one, or a placeholder for one."""
    if isinstance(value, str):
        if PLACEHOLDER.search(value):
            return True
        if not re.fullmatch(r"\s*[+-]?\d{1,15}(\.\d{1,15})?\s*", value, re.ASCII):
            return False
        value = float(value)
        whole_value = value.is_integer()
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return False
    else:
        whole_value = isinstance(value, int)
    return least <= value < 1e15 and (whole_value or not whole)


def _count(least: int, says: str) -> WordType:
    schema: Schema = {"anyOf": [{"type": ["integer", "null"], "minimum": least}, {"type": "string"}]}
    right = lambda value: _is_number(value, least, whole=True)  # noqa: E731
    return WordType(says, f"a whole number of {least} or more", right, schema, refers=False)


def _number(says: str = "a number of seconds") -> WordType:
    schema: Schema = {"anyOf": [{"type": ["number", "null"], "minimum": 0}, {"type": "string"}]}
    return WordType(says, "0 or more", _is_number, schema, refers=False)


def _sum(digits: int, *words: str) -> WordType:
    """A checksum in hexadecimal digits, or one of `words`; empty: there is none."""

    def right(value: object) -> bool:
        if not isinstance(value, str):
            return False
        return value in ("", *words) or bool(
            re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", value) or PLACEHOLDER.search(value)
        )

    says = " or ".join((f"a sum of {digits} hexadecimal digits", *words))
    return WordType(says, "it as md5sum or sha256sum prints it", right, {"type": ["string", "null"]}, refers=False)


def _list(item: Any, says: str = "a list") -> ListOf:
    return ListOf(item, says=says, grows=False)


def _choice(says: str, words: tuple[str, ...]) -> WordType:
    right = lambda value: value in words or (isinstance(value, str) and bool(PLACEHOLDER.search(value)))  # noqa: E731
    schema: Schema = {"anyOf": [{"enum": [*words, None]}, _FILLED]}
    return WordType(says, ", ".join(words), right, schema, words, refers=False)


def _is_text(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool))


TEXT = WordType("text", "it in quotes", _is_text, {"type": ["string", "number", "null"]}, refers=False)
LINE = WordType("text", "it in quotes", lambda v: isinstance(v, str), {"type": ["string", "null"]}, refers=False)
_WORD = WordType(
    "one value",
    "text or a number",
    lambda v: isinstance(v, str | int | float),
    {"type": ["string", "number", "boolean", "null"]},
    refers=False,
)
_FLAG = WordType(
    "true or false",
    "true or false",
    lambda v: isinstance(v, bool) or (isinstance(v, str) and v.lower() in ("true", "false")),
    {"enum": [True, False, "true", "false", None]},
    refers=False,
)
_DIMENSION = WordType(
    "a dimension",
    f'a whole number of 1 or more, or "{VARIABLE}"',
    lambda v: v == VARIABLE or _is_number(v, 1, whole=True),
    {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]},
    refers=False,
)
_DIMENSIONS = _list(_DIMENSION, "a shape")
_SHAPES = Either((_list(_DIMENSIONS, "a list of shapes"), _DIMENSIONS))
_MD5 = _sum(32, DIRECTORY)
_LINES = _list(LINE, "a list of commands")


def _open(noun: str, **keys: tuple[Any, str]) -> Table:
    """A map with known keys; all others are placeholders of the user."""
    return Table(noun, {name.replace("__", "-"): Key(*key) for name, key in keys.items()}, any_key=True)


FILE = _open(
    "a file",
    filename=(LINE, "its name in the cache and on the device; default: the last part of the location"),
    location=(LINE, "URL, absolute path, path relative to this file, or //… below --root-model-dir"),
    md5=(_MD5, "checksum; directory: the location is a folder"),
    sha256=(_sum(64), "checksum"),
    unpack=(_FLAG, "an archive: programs get the folder it was unpacked into"),
)
CONVERTER = _open(
    "a converter",
    name=(LINE, "what reads the numbers: json_converter, json_with_identifier_converter…"),
    args=(ANYTHING, "its settings, such as {identifier: NAME}"),
)
_OUTPUT_FILE = _open(
    "an output file",
    filename=(LINE, "its name"),
    location=(LINE, "where the program writes it, such as {TGTDIR}/out.txt"),
    converter=(CONVERTER, "how numbers are read from it"),
)
_FILES = MapOf(FILE, says="files by name")
_ENV = Either((MapOf(_WORD, says="a map of variables"), LINE))
PLATFORM_ARGS = _open(
    "platform_args",
    taskset=(TEXT, "hexadecimal mask of the cores to run on"),
    sleep_before_run=(_number(), "seconds to wait before the program starts"),
    env=(_ENV, "environment variables"),
)
STEPS = _open(
    "preprocess and postprocess",
    commands=(Either((_LINES, LINE)), "commands, run one after another; a failure ends the test"),
    command=(LINE, "one command"),
    platform_args=(PLATFORM_ARGS, "settings of these commands"),
    files=(_FILES, "files they need, for {files.NAME}"),
)
_INPUT = _open(
    "an input",
    shapes=(_SHAPES, "shapes; several mean one test each"),
    type=(Either((LINE, _list(LINE))), "type of its elements; default: float"),
)
_TENSOR = _open("an input or output", shapes=(_SHAPES, f'its shape; a dimension may be "{VARIABLE}"'), type=(LINE, ""))
_TENSORS = Either((MapOf(_TENSOR, says="a map"), _list(MapOf(_TENSOR), "a list of maps")))  # a list in 2018
_PATHS = MapOf(Either((LINE, _list(Either((LINE, FILE))), FILE)), says="files by name")
_OUTPUTS = MapOf(Either((LINE, _list(Either((LINE, FILE))), _OUTPUT_FILE)), says="files by name")
_FLAGS_2018 = MapOf(MapOf(_WORD, says="flags"), says="flags by framework")
_COMMANDS = Either((_LINES, LINE, _FLAGS_2018))
_TOLERANCE = Either((_number("a number"), MapOf(_number("a number"))))

_SHARED: dict[str, tuple[Any, str]] = {
    "timeout": (_number(), "limit for one launch in seconds; default: 300"),
    "cooldown": (_number(), "seconds between the launch before and this one"),
    "platform_args": (PLATFORM_ARGS, "settings of the device"),
    "converter": (CONVERTER, "how numbers are read from what the program prints"),
    "observer": (LINE, "identifier in front of the program's records; default: by framework"),
    "preprocess": (STEPS, "commands before: of a model once, of a test before each launch"),
    "postprocess": (STEPS, "commands after: of a model once, of a test after each launch"),
    "files": (_FILES, "files that are fetched and checked"),
    "env": (_ENV, "environment variables"),
    "log_output": (_FLAG, "show what the program prints"),
}
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
MODEL = _open(
    "a model",
    name=(TEXT, "name of the model"),
    category=(TEXT, "for readers"),
    description=(TEXT, "for readers"),
    kind=(TEXT, "for readers"),
    format=(TEXT, "format of the model's files: caffe2, tflite, onnx…"),
    framework=(TEXT, "framework that runs it; default: --framework, else the format"),
    group=(TEXT, "group of benchmarks it belongs to"),
    libraries=(
        _list(_open("a library", location=(LINE, "where it comes from"), target=(LINE, ""))),
        "shared libraries",
    ),
    repeat=(_count(1, "a number of launches"), "launches of each test, {INDEX} from 0; --repeat replaces it"),
    command_args=(TEXT, "appended to each command"),
    commands=(_FLAGS_2018, "flags by framework, appended to the command"),
    inputs=(_TENSORS, "inputs of the model"),
    outputs=(_TENSORS, "outputs of the model"),
    **_SHARED,
)
TEST = _open(
    "a test",
    identifier=(TEXT, "name of the test; {ID} is its number"),
    metric=(_choice("a metric", METRICS), "what is measured; default: delay"),
    warmup=(_count(0, "a number of iterations"), "iterations that do not count, for {warmup}"),
    iter=(_count(1, "a number of iterations"), "iterations, for {iter}"),
    commands=(_COMMANDS, "command lines, run one after another; or, as in 2018, flags by framework"),
    command=(LINE, "one command line"),
    arguments=(LINE, "arguments of {program}"),
    inputs=(MapOf(_INPUT), "inputs by name"),
    input_files=(_PATHS, "files with inputs; a list of paths means one test each"),
    output_files=(
        _OUTPUTS,
        "files that the program writes; with metric error, a path that is not below {TGTDIR} is one with the expected values",
    ),
    golden_files=(_PATHS, "files with the expected outputs, by output"),
    tolerance=(_TOLERANCE, "largest error that passes: of max_abs, or a map of metrics"),
    cpu__list=(TEXT, "cores to run on, such as 0-3"),
    OMP_NUM_THREADS=(_count(-1, "a number of threads"), "of a program on a host; default: 1; 0: not set"),
    MKL_NUM_THREADS=(_count(-1, "a number of threads"), "the same, of MKL"),
    statistics=(_list(LINE), "statistics to show, such as mean or p95; p50 always is"),
    profiler=(
        MapOf(ANYTHING, says="a map"),
        "enabled: a model on our runtimes gets one more launch, which times its operators; profilers of programs are not run",
    ),
    method=(TEXT, "of a power test: software"),
    collection_time=(_number(), "of a power test"),
    voltage=(_number("a number of volts"), "of a power test"),
    **_SHARED,
)
META = _open(
    "meta",
    group=(TEXT, "group of its benchmarks"),
    command_args=(TEXT, "appended to each command"),
    commands=(_FLAGS_2018, "flags by framework, appended to each command"),
)


def json_schema() -> dict[str, object]:
    """The JSON Schema of specifications and lists of them, for editors."""
    schemas = {"model": MODEL, "test": TEST, "meta": META}
    definitions = {name: {**table.schema(), "type": "object"} for name, table in schemas.items()}
    definitions["model"]["required"] = ["name"]
    definitions["test"]["required"] = ["identifier"]

    def to(name: str) -> Schema:
        return {"$ref": f"#/definitions/{name}"}

    one = {
        "type": "object",
        "required": ["model", "tests"],
        "properties": {"model": to("model"), "tests": {"type": "array", "items": to("test"), "minItems": 1}},
    }
    several = {
        "type": "object",
        "required": ["benchmarks"],
        "properties": {
            "meta": {"description": "merged into each model, where that says nothing itself", **to("meta")},
            "benchmarks": {"description": "paths of specifications", "type": "array", "items": {"type": "string"}},
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "Written by docs/generate_schema.py; do not edit.",
        "title": "Benchwright specification",
        "description": "A model and its tests, or a list of such files. Keys that are not listed are placeholders.",
        "anyOf": [one, several],
        "definitions": definitions,
    }
