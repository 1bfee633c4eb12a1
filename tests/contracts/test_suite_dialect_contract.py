"""What every dialect of suites must do with any folder."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from plugin_package import variants
from suites import PATHS, entry, jobs_of, machine_with

from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.dialect import DIALECTS, SuiteDialect, claim
from benchwright.kinds.suite.folder_facts import BENCHFILE, FolderFacts
from benchwright.kinds.suite.plan.machine_facts import machine_facts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.kinds.suite.read.keys import entry_problem
from benchwright.plan.process_slots import ProcessSlot

OWN = {
    "milabench": {"voirfile.py": "", "main.py": "import voir\n"},
    "bench-toml": {"bench.toml": 'script = "train.py"\n', "train.py": ""},
}
ENTRIES: dict[str, dict[str, object]] = {
    "milabench": {"voir": {"options": {"stop": 3}}},
    "bench-toml": {"profile": True},
}
MARKS = {"milabench": BENCHFILE, "bench-toml": "bench.toml"}  # the file that can be wrong


@pytest.fixture(params=variants(DIALECTS))
def name(request: pytest.FixtureRequest, plugins: None) -> str:
    found: str = request.param
    return found


@pytest.fixture
def dialect(name: str) -> SuiteDialect:
    return DIALECTS.load(name)()


@pytest.fixture
def folder(name: str, tmp_path: Path) -> Path:
    for file, text in OWN[name].items():
        (tmp_path / file).write_text(text)
    return tmp_path


def test_a_folder_of_no_dialect_is_not_claimed(dialect: SuiteDialect, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "main.py").write_text("print(1)\n")
    for place in (tmp_path / "plain", tmp_path / "not there yet", tmp_path / "plain" / "main.py"):
        assert dialect.facts(str(place)) is None
        assert claim(str(place)).dialect is None


def test_a_folder_of_its_own_has_a_script_and_what_runs_it(name: str, dialect: SuiteDialect, folder: Path) -> None:
    claimed, facts = claim(str(folder))
    assert type(claimed) is type(dialect)
    assert facts == dialect.facts(str(folder))
    assert os.path.isabs(facts.folder)
    assert (folder / facts.main_script).is_file()
    assert facts.refusal() is None
    runner = facts.runner(ENTRIES[name])
    assert runner is not None
    assert runner.dialect == name
    for contained, together in itertools.product((False, True), repeat=2):
        process = dialect.run(runner, ("main.py", "--x"), "/runs/b.D0", contained=contained, together=together)
        assert process.argv[-2:] == ("main.py", "--x")
        assert all(path.startswith("/runs/") for path in (*process.files, process.data_file or "/runs/b.D0"))
        assert not (contained and process.data_file)


def test_its_runner_is_planned(name: str, folder: Path) -> None:
    facts = claim(str(folder)).facts
    benchmark = entry("b", "--x", folder={"path": facts.folder, "runner": facts.runner(ENTRIES[name])})
    (job,) = jobs_of(benchmark, gpus=1)
    assert job.argv[1] == "-m"
    assert job.argv[-1] == "--x"


def test_its_keys_are_checked_as_ours_are(name: str, dialect: SuiteDialect) -> None:
    assert entry_problem(ENTRIES[name]) is None
    (key,) = ENTRIES[name]
    assert key in dialect.entry_keys()
    problem = entry_problem({key: ["nonsense"]})
    assert problem is not None
    assert problem.path[0] == key
    rules = dialect.loop_rules(ENTRIES[name])
    assert rules is None or rules.stop is not None


def test_what_cannot_be_read_is_a_refusal_that_names_the_file(name: str, dialect: SuiteDialect, tmp_path: Path) -> None:
    (tmp_path / MARKS[name]).write_bytes(b"\xff\0 = (")
    facts = dialect.facts(str(tmp_path))
    assert facts is not None
    refusal = facts.refusal()
    assert refusal is not None
    assert str(tmp_path / MARKS[name]) in str(refusal)


def test_variables_are_text_and_ours_are_left_alone(dialect: SuiteDialect, folder: Path) -> None:
    benchmark = entry("b", folder={"path": str(folder)})
    place, machine = BenchmarkPlace(benchmark, PATHS), machine_facts(machine_with(1), PATHS.system)
    told = dialect.described(benchmark, place, machine, "run")(ProcessSlot(), None, None)
    for found in (dialect.variables(place, machine), told):
        assert all(isinstance(value, str | None) for value in found.values())
        assert not any(variable.startswith("BENCHWRIGHT_") for variable in found)


def test_without_a_dialect_a_benchfile_is_refused_unless_the_entry_says_what_to_run(tmp_path: Path) -> None:
    (tmp_path / BENCHFILE).write_text("")
    facts = FolderFacts(folder=str(tmp_path))
    assert isinstance(facts.refusal(), InvalidInput)
    assert "nothing installed can read this file" in str(facts.refusal())
    assert facts.refusal({"main": "main.py"}) is None
    (tmp_path / BENCHFILE).unlink()
    assert facts.refusal() is None
