"""Which tests a change reaches: tests/affected.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "src/benchwright/__init__.py": "",
    "src/benchwright/core/__init__.py": "",
    "src/benchwright/core/numbers.py": "",
    "src/benchwright/store/__init__.py": "",
    "src/benchwright/store/sql.py": "def load():\n    from benchwright.core import numbers\n",
    "src/benchwright/store/schema.sql": "",
    "src/benchwright/cli/main.py": 'GROUPS = {"Look": {"runs": ("runs", "List.")}, "Suites": {"new": ("new", "Create.")}}\n',
    "src/benchwright/cli/runs.py": "from benchwright.store.sql import load\n",
    "src/benchwright/cli/new.py": "",
    "src/benchwright/registry.py": 'BUILT_IN = ["benchwright.store.sql:load"]\n',
    "tests/support/command_line.py": "from benchwright.cli.main import COMMANDS\n",
    "tests/unit/core/test_numbers.py": "from benchwright.core.numbers import x\n",
    "tests/unit/test_registry.py": "import benchwright.registry\n",
    "tests/unit/test_project.py": "",
    "tests/unit/test_house.py": "",
    "tests/flows/test_runs.py": "from command_line import bw\ndef test(): bw('runs')\n",
    "tests/flows/test_new.py": "from command_line import bw\ndef test(): bw('new', 'resnet')\n",
}


@pytest.fixture(scope="module")
def affected() -> ModuleType:
    spec = importlib.util.spec_from_file_location("affected", ROOT / "tests" / "affected.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def graph(affected: ModuleType, tmp_path: Path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return affected.Graph(tmp_path)


def reached(graph, *changed: str) -> dict[str, int]:
    distances = graph.distances(changed)
    return {Path(test).name: distances[test] for test in graph.tests if test in distances}


def test_the_nearest_import_counts_also_inside_a_function(graph) -> None:
    assert reached(graph, "src/benchwright/core/numbers.py") == {
        "test_numbers.py": 1,
        "test_runs.py": 3,
        "test_registry.py": 3,  # through the text in a registry
    }


def test_a_changed_command_reaches_the_flows_that_call_it_and_no_others(graph) -> None:
    assert reached(graph, "src/benchwright/cli/new.py") == {"test_new.py": 1}
    assert reached(graph, "src/benchwright/cli/runs.py") == {"test_runs.py": 1}


def test_a_changed_test_is_reached_and_a_changed_helper_reaches_its_users(graph) -> None:
    assert reached(graph, "tests/flows/test_new.py") == {"test_new.py": 0}
    assert reached(graph, "tests/support/command_line.py") == {"test_new.py": 1, "test_runs.py": 1}


def test_what_is_no_module_reaches_whatever_reads_it(graph) -> None:
    assert set(reached(graph, "src/benchwright/store/schema.sql")) == {"test_runs.py", "test_registry.py"}
    assert set(reached(graph, "benchmarks/resnet/main.py")) == {"test_new.py", "test_project.py", "test_house.py"}
    assert set(reached(graph, "README.md")) == {"test_project.py", "test_house.py"}
    assert len(reached(graph, "tests/conftest.py")) == len(graph.tests)


def test_the_project_s_own_files_are_all_in_the_graph(affected: ModuleType) -> None:
    found = affected.reached_tests(["src/benchwright/cli/results/compare.py"])
    assert found["tests/flows/test_compare_commands.py"] == 1
    assert "tests/unit/core/test_secrets.py" not in found
    assert list(found.values()) == sorted(found.values())


def test_the_tests_of_a_folder_stay_together(affected: ModuleType) -> None:
    """pytest forgets the fixtures of a folder that it comes back to."""
    near = {
        "tests/unit/b/test_1.py": 1,
        "tests/faults/test_2.py": 2,
        "tests/unit/b/c/test_3.py": 3,
        "tests/faults/test_4.py": 4,
    }
    assert [Path(path).stem for path in affected.by_folder(near)] == ["test_1", "test_3", "test_2", "test_4"]
