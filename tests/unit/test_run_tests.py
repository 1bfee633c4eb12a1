"""Tests that failed are tried once more, alone; what fails twice fails the build, and the coverage floor always holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN_TESTS = Path(__file__).parents[1] / "run_tests.py"
FAILS = "def test_{0}():\n    assert used.double({0}) == 0\n"
PASSES = "def test_{0}():\n    assert used.double({0}) == 2 * {0}\n"
ONLY_ALONE = (
    "import os\n\n"
    "def test_needs_the_machine_for_itself():\n"
    "    assert used.half(4) == 2\n"
    "    assert 'PYTEST_XDIST_WORKER' not in os.environ\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "used.py").write_text(
        "def double(x):\n    return 2 * x\n\n\ndef half(x):\n    y = x / 2\n    z = y\n    return z\n"
    )
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\npythonpath = ["."]\n'
        '[tool.coverage.run]\nsource_pkgs = ["used"]\nparallel = true\n[tool.coverage.report]\nfail_under = 100\n'
    )
    return tmp_path


def run(project: Path, *tests: str, options: tuple[str, ...] = ()) -> tuple[int, str]:
    (project / "test_it.py").write_text("import used\n\n" + "\n\n".join(tests))
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV"))}
    quick = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_XDIST_AUTO_NUM_WORKERS": "1"}
    words = [sys.executable, str(RUN_TESTS), "-p", "xdist", "-p", "pytest_cov", *options]
    done = subprocess.run(words, cwd=project, env=bare | quick, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_test_that_passes_alone_is_named_and_adds_to_the_coverage(project: Path) -> None:
    code, output = run(project, PASSES.format(1), ONLY_ALONE)
    assert code == 0, output
    assert "1 test failed and will be tried again, alone" in output
    assert "1 test passed only when run alone" in output
    assert "test_needs_the_machine_for_itself" in output.split("passed only when run alone")[1]


def test_a_test_that_fails_twice_fails_the_build(project: Path) -> None:
    code, output = run(project, FAILS.format(3), ONLY_ALONE)
    assert code == 1
    assert "1 test failed twice:\n  test_it.py::test_3\n" in output
    assert "1 test passed only when run alone" in output


def test_a_test_of_a_group_is_tried_again_under_its_own_name(project: Path) -> None:
    grouped = "import pytest\n\npytestmark = pytest.mark.xdist_group('some')\n\n"
    code, output = run(project, grouped + FAILS.format(3), ONLY_ALONE)
    assert code == 1
    assert "1 test failed twice:\n  test_it.py::test_3\n" in output
    assert "1 test passed only when run alone" in output


def test_many_failures_are_not_tried_again(project: Path) -> None:
    code, output = run(project, FAILS.format(1), FAILS.format(2), options=("--retry-at-most", "1"))
    assert code == 1
    assert "2 tests failed: too many" in output
    assert "alone" not in output


@pytest.mark.parametrize("flaky", [(), (ONLY_ALONE.replace("assert used.half(4) == 2", "pass"),)])
def test_the_coverage_floor_holds_with_and_without_a_second_round(project: Path, flaky: tuple[str, ...]) -> None:
    code, output = run(project, PASSES.format(1), *flaky)
    assert code == 1
    assert "less than fail-under=100" in output
    assert ("1 test passed only when run alone" in output) == bool(flaky)
