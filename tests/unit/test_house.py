"""The order of the house: how large things may grow, that names are unique, and who may ask what.

Each bar has a list of today's exceptions. One that is new fails, and so does one that no longer applies: take it off.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from plugin_package import RUNTIMES

from benchwright.options.table import OPTIONS

pytestmark = pytest.mark.xdist_group("house")  # one worker: every file is parsed once

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
FILES = {path.relative_to(SRC).as_posix(): path.read_text(encoding="utf-8") for path in sorted(SRC.rglob("*.py"))}

WORKLOAD = r"isinstance\([\w.]*workload"
FOLDER = r"\bbenchmark\.folder\b|isinstance\(.*BenchmarkFolder\)"

BENCHPROBE_LINES = 4_000

OTHER_TOOLS = r"(?i)milabench|fai[-_ ]?pep|mlagility|(?<![a-z])voir|benchit|benchmate"
FILES_THAT_NAME_OTHER_TOOLS = 101  # may only go down: what names another tool belongs in compat

LONG_FILES: set[str] = set()
LONG_FUNCTIONS: set[str] = set()
NAMES_TWICE: set[str] = set()
SILENT_EXCEPTS: set[str] = set()
ASK_THE_WORKLOAD: set[str] = set()
ASK_THE_FOLDER: set[str] = set()
# Files that name an option: 4, but for these. Each command has its own --json, --run-name is also a run's field, and the
# options of specifications are copied into a specification.
MOST_FILES = 4
NAMED_OFTEN = {
    "all_scripts": 6,
    "android_dir": 8,
    "as_json": 33,
    "keep_env": 7,
    "max_depth": 10,
    "model_cache": 5,
    "no_store": 6,
    "num_gpus": 5,
    "regressed_types": 6,
    "remote_dir": 12,
    "run_name": 17,
    "run_type": 14,
    "script_args": 8,
    "show_output": 11,
    "string_map": 6,
    "warmup_runs": 9,
}
# The table itself, what is generated from it, and the old names in stored files.
NOT_COUNTED = tuple(
    f"benchwright/{name}.py" for name in ("options/table", "options/keywords", "core/files/earlier_names")
)


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in FILES.items()}


def lines_of(name: str) -> int:
    return FILES[name].count("\n")


def places(pattern: str, home: str) -> set[str]:
    """The files outside of `home` that match."""
    return {name for name, text in FILES.items() if not name.startswith(home) and re.search(pattern, text)}


def test_a_file_has_at_most_eight_hundred_lines() -> None:
    """Past that, look for the second thing in it."""
    assert {name for name in FILES if lines_of(name) > 800} == LONG_FILES


def test_a_function_has_at_most_sixty_lines() -> None:
    long = {
        f"{name}:{node.name}"
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (node.end_lineno or 0) - node.lineno >= 60
    }
    assert long == LONG_FUNCTIONS


def test_no_two_classes_share_a_name() -> None:
    defined: dict[str, list[str]] = defaultdict(list)
    for name, tree in trees().items():
        if "/compat_modules/" in name:  # milabench's names, for its benchfiles
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(name)
    assert {name for name, where in defined.items() if len(where) > 1} == NAMES_TWICE


def silent_excepts() -> Iterator[str]:
    """The files with a handler of every exception that neither does anything nor says why it need not."""
    for name, tree in trees().items():
        rows = FILES[name].splitlines()
        for node in ast.walk(tree):
            if not isinstance(node, ast.ExceptHandler) or not isinstance(node.type, ast.Name):
                continue
            passes = all(isinstance(step, ast.Pass | ast.Continue | ast.Return) for step in node.body)
            said = "#" in "".join(rows[node.lineno - 1 : node.body[0].end_lineno])
            if node.type.id in ("Exception", "BaseException") and passes and not said:
                yield name


def test_an_exception_that_is_swallowed_has_its_reason_beside_it() -> None:
    assert set(silent_excepts()) == SILENT_EXCEPTS


def test_only_kinds_ask_what_a_workload_is() -> None:
    assert places(WORKLOAD, "benchwright/kinds/") == ASK_THE_WORKLOAD


def test_only_the_suite_asks_whether_a_benchmark_has_a_folder() -> None:
    assert places(FOLDER, "benchwright/kinds/suite/") == ASK_THE_FOLDER


def test_what_names_another_tool_moves_to_compat() -> None:
    found = {name for name in places(OTHER_TOOLS, "benchwright/compat/") if name.startswith("benchwright/")}
    assert len(found) == FILES_THAT_NAME_OTHER_TOOLS


def names_in(tree: ast.Module) -> Iterator[str]:
    """Attributes, keywords, parameters, fields, and strings that are a name or a list of names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword | ast.arg):
            yield node.arg or ""
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            yield from words if all(map(str.isidentifier, words)) else ()


def test_an_option_is_named_in_few_files() -> None:
    """Only options whose name is more than one word: others are words that also mean something else."""
    options = {name for name in OPTIONS if "_" in name.strip("_")}
    found: dict[str, int] = dict.fromkeys(options, 0)
    for name, tree in trees().items():
        for option in options & set(names_in(tree)) if name not in NOT_COUNTED else ():
            found[option] += 1
    assert {option: count for option, count in found.items() if count > MOST_FILES} == NAMED_OFTEN


def test_nothing_names_a_runtime_of_the_package_beside() -> None:
    assert places(rf"(?i)\b({'|'.join(RUNTIMES)})\b", "none of them/") == set()


def test_benchprobe_can_be_read_in_an_afternoon() -> None:
    assert sum(lines_of(name) for name in FILES if name.startswith("benchprobe/")) <= BENCHPROBE_LINES


def test_the_version_is_written_down_once() -> None:
    stated = [name for name, text in FILES.items() if re.search(r'^__version__ = "(.+)"$', text, re.M)]
    assert stated == ["benchprobe/version.py"]


def imported_by_scripts() -> list[tuple[str, str, str]]:
    """File, module and name of whatever scripts beside the packages import from them, within functions too."""
    found = []
    for folder in ("performance", "docs", "tests/programs", "tests/faults", "packaging"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bench"):
                    names = [name.name for name in node.names]
                    found += [(path.relative_to(ROOT).as_posix(), node.module or "", name) for name in names]
    return found


def test_scripts_beside_the_packages_import_what_is_there() -> None:
    missing = []
    for file, module, name in imported_by_scripts():
        try:
            there = hasattr(importlib.import_module(module), name) or importlib.util.find_spec(f"{module}.{name}")
        except ImportError:
            there = False
        if not there:
            missing.append(f"{file}: from {module} import {name}")
    assert missing == []


def documented() -> list[str]:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    return re.findall(r"^::: (\S+)$", page, re.MULTILINE)


@pytest.mark.parametrize("name", documented())
def test_what_the_python_reference_names_is_there(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    try:
        found: object = getattr(importlib.import_module(module), attribute)
    except AttributeError:
        found = importlib.import_module(name)
    assert found.__doc__
