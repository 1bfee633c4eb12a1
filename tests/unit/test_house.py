"""The order of the house: how large things may grow, that names are unique, and who may ask what.

Each bar has a list of today's exceptions. One that is new fails, and so does one that no longer applies: take it off.
"""

from __future__ import annotations

import ast
import gc
import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from plugin_package import RUNTIMES

from benchmodels.runtimes.registry import BUILT_IN
from benchwright.options.table import OPTIONS

pytestmark = pytest.mark.xdist_group("house")  # one worker: every file is parsed once

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
FILES = {path.relative_to(SRC).as_posix(): path.read_text(encoding="utf-8") for path in sorted(SRC.rglob("*.py"))}

WORKLOAD = r"isinstance\([\w.]*workload"
FOLDER = r"\bbenchmark\.folder\b|isinstance\(.*BenchmarkFolder\)"

PARSES_ON = r"\bon\b[^\n=]{0,12}\.(startswith|partition|removeprefix|split)\(|\.on (not )?in \(|\bon (not )?in \(None"

BENCHPROBE_LINES = 4_000

OTHER_TOOLS = r"(?i)milabench|fai[-_ ]?pep|mlagility|(?<![a-z])voir|benchit|benchmate|google-benchmark|pytest-benchmark"
# Lines of each package; the files directly in one of the three count under its own name.
BUDGETS = {
    "benchload": 1_700,
    "benchmodels": 1_200,
    "benchmodels/build": 1_400,
    "benchmodels/check": 900,
    "benchmodels/compat": 100,
    "benchmodels/discover": 800,
    "benchmodels/files": 1_100,
    "benchmodels/hooks": 400,
    "benchmodels/identity": 1_100,
    "benchmodels/measure": 2_250,
    "benchmodels/pytorch": 1_600,
    "benchmodels/runtimes": 3_450,
    "benchmodels/training": 830,
    "benchmodels/warm": 400,
    "benchmodels/zoo": 4_100,
    "benchprobe": 300,
    "benchprobe/loop": 1_400,
    "benchprobe/rendezvous": 300,
    "benchprobe/rules": 600,
    "benchprobe/stream": 800,
    "benchprobe/view": 600,
    "benchwright": 400,
    "benchwright/agent": 7_500,
    "benchwright/analysis": 5_900,
    "benchwright/artifacts": 2_700,
    "benchwright/cli": 5_600,
    "benchwright/compat": 8_600,
    "benchwright/core": 5_450,
    "benchwright/doctor": 1_800,
    "benchwright/environments": 2_000,
    "benchwright/executors": 6_400,
    "benchwright/kinds": 20_500,
    "benchwright/options": 1_100,
    "benchwright/plan": 800,
    "benchwright/record": 2_700,
    "benchwright/regress": 5_900,
    "benchwright/report": 6_000,
    "benchwright/results": 2_900,
    "benchwright/runner": 5_400,
    "benchwright/runs": 2_800,
    "benchwright/server": 3_400,
    "benchwright/store": 4_050,
}

LONG_FILES: set[str] = set()
LONG_FUNCTIONS: set[str] = set()
NAMES_TWICE: set[str] = set()
SILENT_EXCEPTS: set[str] = set()
ASK_THE_WORKLOAD: set[str] = set()
ASK_THE_FOLDER: set[str] = set()
# Only for a quick start (the reason is in the docstring of the package, or beside the import) or for an optional package.
FUNCTION_LEVEL_IMPORTS = 200  # may only go down
LAZY_PACKAGES = ("runner", "results", "regress", "regress/watch")
CHANGE_FOLDER = {
    # These processes are not the main one: a measured program, and the fork that becomes one.
    "benchmodels/discover/capture.py",
    "benchmodels/warm/__main__.py",
    "benchwright/agent/supervise/spawn.py",
    "benchwright/cli/suites/dev.py",  # in the next line it becomes the shell
}
IMPORT_CIRCLES: set[tuple[str, ...]] = set()
MOST_FILES = 4  # that name an option
# Phrases that read translated: "What …" and "Those …" for a noun, "told" for reported, "of its own" for separate.
STILTED = r"^(What|Those|Whatever)\b|\bthose that\b|(?<!`)\btold\b(?!`)|\bof (its|their|our|one's) own\b[.,;:)]"
# The table itself, what is generated from it, and the old names in stored files.
NOT_COUNTED = tuple(f"benchwright/{name}.py" for name in ("options/table", "options/keywords", "core/earlier_names"))


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def trees() -> dict[str, dict[type[ast.AST], list[Any]]]:
    """The nodes of each file by their type: every test would go through a million of them."""
    gc.disable()
    try:
        return {name: _by_type(ast.parse(text)) for name, text in FILES.items()}
    finally:
        gc.enable()


def _by_type(tree: ast.Module) -> dict[type[ast.AST], list[Any]]:
    found: dict[type[ast.AST], list[Any]] = defaultdict(list)
    for node in ast.walk(tree):
        found[type(node)].append(node)
    return found


def nodes(name: str, *types: type[ast.AST]) -> list[Any]:
    return [node for each in types for node in trees()[name][each]]


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
        for name in FILES
        for node in nodes(name, *FUNCTIONS)
        if (node.end_lineno or 0) - node.lineno >= 60
    }
    assert long == LONG_FUNCTIONS


def test_no_two_classes_share_a_name() -> None:
    defined: dict[str, list[str]] = defaultdict(list)
    for name in FILES:
        for node in nodes(name, ast.ClassDef):
            if not node.name.startswith("_"):
                defined[node.name].append(name)
    assert {name for name, where in defined.items() if len(where) > 1} == NAMES_TWICE


def silent_excepts() -> Iterator[str]:
    """The files with a handler of every exception that neither does anything nor says why it need not."""
    for name in FILES:
        rows = FILES[name].splitlines()
        for node in nodes(name, ast.ExceptHandler):
            if not isinstance(node.type, ast.Name):
                continue
            passes = all(isinstance(step, ast.Pass | ast.Continue | ast.Return) for step in node.body)
            said = "#" in "".join(rows[node.lineno - 1 : node.body[0].end_lineno])
            if node.type.id in ("Exception", "BaseException") and passes and not said:
                yield name


def test_an_exception_that_is_swallowed_has_its_reason_beside_it() -> None:
    assert set(silent_excepts()) == SILENT_EXCEPTS


def module_of(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def package_of(name: str) -> str:
    return "/".join(Path(name).parent.parts[:2])


def imports_of(name: str, modules: set[str]) -> set[str]:
    """Those of `modules` that a file imports, within functions and for types too."""
    found = {alias.name for node in nodes(name, ast.Import) for alias in node.names}
    for node in nodes(name, ast.ImportFrom):
        above = name.removesuffix(".py").split("/")[: -node.level] if node.level else []
        package = ".".join([*above, *([node.module] if node.module else [])])
        submodules = [f"{package}.{alias.name}" for alias in node.names]
        found |= {submodule if submodule in modules else package for submodule in submodules}
    return (found & modules) - {module_of(name)}


def circles(graph: dict[str, set[str]]) -> set[tuple[str, ...]]:
    """The strongly connected parts of more than one node, by Tarjan's algorithm."""
    lowest: dict[str, int] = {}
    path: list[str] = []
    found = set()

    def visit(node: str) -> None:
        number = lowest[node] = len(lowest)
        path.append(node)
        for other in graph[node]:
            if other not in lowest:
                visit(other)
            if other in path:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == number:
            start = path.index(node)
            found.add(tuple(sorted(path[start:])))
            del path[start:]

    for node in graph:
        if node not in lowest:
            visit(node)
    return {part for part in found if len(part) > 1}


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d", "f"}, "f": set[str]()}
    assert circles(graph) == {("a", "b", "c"), ("d", "e")}


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {module_of(name) for name in FILES}
    assert circles({module_of(name): imports_of(name, modules) for name in FILES}) == IMPORT_CIRCLES


def test_few_functions_import() -> None:
    found = 0
    for name in FILES:
        functions = [(each.lineno, each.end_lineno) for each in nodes(name, *FUNCTIONS)]
        lines = [each.lineno for each in nodes(name, ast.Import, ast.ImportFrom)]
        found += sum(any(first <= line <= last for first, last in functions) for line in lines)
    assert 0 < found <= FUNCTION_LEVEL_IMPORTS


@pytest.mark.parametrize("package", LAZY_PACKAGES)
def test_a_package_of_lazy_modules_names_each_of_them(package: str) -> None:
    """Type checkers take a module that is not named there for any module."""
    folder = SRC / "benchwright" / package
    modules = {path.stem for path in folder.glob("[a-z]*.py")} | {
        path.parent.name for path in folder.glob("*/__init__.py")
    }
    imports = nodes(f"benchwright/{package}/__init__.py", ast.ImportFrom)
    named = {alias.asname for node in imports for alias in node.names}
    assert modules == named - {None}
    lazy = importlib.import_module(f"benchwright.{package.replace('/', '.')}")
    assert all(getattr(lazy, name).__name__ == f"{lazy.__name__}.{name}" for name in modules)
    assert not hasattr(lazy, "no_such_module")


def test_the_main_process_stays_in_its_folder() -> None:
    assert places(r"\bchdir\(", "none of them/") == CHANGE_FOLDER


def test_only_kinds_ask_what_a_workload_is() -> None:
    assert places(WORKLOAD, "benchwright/kinds/") == ASK_THE_WORKLOAD


def test_only_the_suite_asks_whether_a_benchmark_has_a_folder() -> None:
    assert places(FOLDER, "benchwright/kinds/suite/") == ASK_THE_FOLDER


def test_only_executors_know_what_a_place_to_run_means() -> None:
    """`--on` is read by their registry; others ask that, or the machine."""
    assert places(PARSES_ON, "benchwright/executors/") == set()


def test_what_names_another_tool_is_in_compat() -> None:
    found = {name for name in places(OTHER_TOOLS, "benchwright/compat/") if not name.startswith("benchmodels/compat/")}
    assert found == set()


def names_in(name: str) -> Iterator[str]:
    """Attributes, keywords, parameters, fields, and strings that are a name or a list of names; not the keywords of runpy."""
    calls = (node for node in nodes(name, ast.Call) if ast.unparse(node.func).startswith("runpy."))
    of_python = {keyword for call in calls for keyword in call.keywords}
    yield from (node.attr for node in nodes(name, ast.Attribute))
    yield from (node.arg or "" for node in nodes(name, ast.keyword, ast.arg) if node not in of_python)
    yield from (node.target.id for node in nodes(name, ast.AnnAssign) if isinstance(node.target, ast.Name))
    for node in nodes(name, ast.Constant):
        if isinstance(node.value, str):
            words = node.value.split()
            yield from words if all(map(str.isidentifier, words)) else ()


def read_from_options(name: str) -> Iterator[str]:
    """In compat, other names are those of another tool's files."""
    yield from (node.attr for node in nodes(name, ast.Attribute) if ast.unparse(node.value).endswith("options"))


def test_an_option_is_named_in_few_files() -> None:
    """Only options whose name is more than one word: others are words that also mean something else."""
    options = {name for name in OPTIONS if "_" in name.strip("_")}
    found: dict[str, list[str]] = {option: [] for option in options}
    for name in FILES:
        if name in NOT_COUNTED:
            continue
        names = read_from_options(name) if name.startswith("benchwright/compat/") else names_in(name)
        for option in options & set(names):
            found[option].append(name)
    assert {option: files for option, files in found.items() if len(files) > MOST_FILES} == {}


def test_nothing_names_a_runtime_of_the_package_beside() -> None:
    assert places(rf"(?i)\b({'|'.join(RUNTIMES)})\b", "none of them/") == set()


def test_no_kind_knows_a_runtime_by_its_name() -> None:
    """They ask the runtime (`kinds.runtime_names.known_runtime`), so that one from another package is treated alike."""
    named = {
        f"{name}: {node.value}"
        for name in FILES
        if name.startswith("benchwright/kinds/")
        for node in nodes(name, ast.Constant)
        if node.value in BUILT_IN
    }
    assert named == set()


def test_a_module_is_a_noun() -> None:
    assert {name for name in FILES if name.endswith("ing.py")} == set()


def test_docstrings_read_as_an_engineer_would_say_them() -> None:
    found = {
        f"{name}:{getattr(node, 'lineno', 1)}"
        for name in FILES
        for node in nodes(name, ast.Module, ast.ClassDef, *FUNCTIONS)
        if re.search(STILTED, ast.get_docstring(node) or "")
    }
    assert found == set()


def packages() -> set[str]:
    """The three packages and those directly inside them, by dotted name."""
    folders = [Path(name).parent.parts for name in FILES if name.endswith("/__init__.py")]
    return {".".join(parts) for parts in folders if len(parts) <= 2}


def test_the_architecture_page_has_one_line_for_each_package() -> None:
    page = (ROOT / "docs" / "architecture" / "index.md").read_text(encoding="utf-8")
    section = page.partition("## Where is it?")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([\w.]+)` \| \S.* \|$", section, re.MULTILINE)
    assert sorted(listed) == sorted(packages())


def lines_by_package() -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for name in FILES:
        found[package_of(name)] += lines_of(name)
    return dict(found)


def test_a_package_stays_within_its_budget() -> None:
    found = lines_by_package()
    assert set(found) == set(BUDGETS), "a new package gets a budget: its lines, rounded up to the next hundred"
    over = {name: f"{lines} of {BUDGETS[name]}" for name, lines in found.items() if lines > BUDGETS[name]}
    assert not over, "delete something, or raise the budget with a decision page that says what the user gets for it"


def test_the_architecture_page_says_where_features_are() -> None:
    page = (ROOT / "docs" / "architecture" / "index.md").read_text(encoding="utf-8")
    section = page.partition("## Where is that feature?")[2].partition("\n## ")[0]
    files = re.findall(r"^\| \S.* \| `([\w/.]+)` \|$|^\d\. `([\w/.]+)`", section, re.MULTILINE)
    assert len(files) >= 48
    assert [name for pair in files for name in pair if name and name not in FILES] == []


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
