"""A run read back from its folder is the run that was made."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

import benchwright
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Run
from benchwright.core.status import Reason, Status
from benchwright.kinds.registry import kind_of
from benchwright.runner.measure import measure
from benchwright.runs.read_run import commands_of, read_run
from benchwright.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    base = tmp_path_factory.mktemp("base")
    code = "print('speed=5'); print('speed=7')"
    return benchwright.run(
        [sys.executable, "-c", code], metrics=["speed"], repeat=2, warmup_runs=1, base=base, labels={"k": "v"}
    )


def test_it_is_equal_in_every_part(run: Run) -> None:
    assert read_run(RunFolder(Path(run.folder)), kind_of) == run


def test_a_run_that_is_still_being_made_has_lost_nothing(run: Run, tmp_path: Path) -> None:
    """Its last stream has no end yet, which would be a lost agent if nobody wrote to the folder any more."""
    folder = RunFolder(Path(shutil.copytree(run.folder, tmp_path / "copy")))
    body = json.loads((folder.path / "run.json").read_text())
    (folder.path / "run.json").write_text(json.dumps(body | {"ended": None}))
    stream = next(folder.path.glob("*.R1*.data"))
    stream.write_text("\n".join(stream.read_text().splitlines()[:2]) + "\n")
    with folder.locked():
        shown = read_run(folder, kind_of)
    assert (shown.status, shown.results[0].status) == (Status.INTERRUPTED, Status.INTERRUPTED)
    assert [x.status for x in shown.results[0].launches] == [Status.OK, Status.OK]
    assert "still in progress" in shown.notes[-1].text
    after = read_run(folder, kind_of)
    assert after.status is Status.FAILED
    assert after.results[0].reason is Reason.AGENT_LOST


def test_what_is_no_run_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no plan\.json"):
        read_run(RunFolder(tmp_path), kind_of)


def test_a_run_begun_on_another_machine_is_not_resumed_here(run: Run) -> None:
    from benchwright.executors.fake import FakeExecutor
    from benchwright.options.table import Options
    from benchwright.runs.base_folder import BaseFolder

    folder = RunFolder(Path(run.folder))
    folder.write_machine(msgspec.structs.replace(run.machine, cpu="another one"))
    try:
        with (
            pytest.raises(InvalidInput, match="started on another machine"),
            FakeExecutor({}, machine=run.machine) as fake,
        ):
            measure(
                [], Options(), base=BaseFolder(folder.path.parent.parent), name="x", executor=fake, resume=folder.id
            )
    finally:
        folder.write_machine(run.machine)


def test_the_commands_of_a_suite_are_told_as_long_as_its_plan_is_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("print('speed=5')")
    (tmp_path / "suite.yaml").write_text(
        "b: {inherits: _defaults, definition: ., plan: {method: njobs, n: 2}, argv: [--x, auto_batch(3)], metrics: {speed: 'speed=(\\d)'}}"
    )
    made = benchwright.run(tmp_path / "suite.yaml", use_current_env=True, base=tmp_path / "base")
    (words,) = commands_of(made, kind_of).values()
    assert Path(words[0]).name.startswith("python")
    assert words[1:] == (str(tmp_path / "main.py"), "--x", "3")
    shutil.rmtree(made.folder)
    assert commands_of(made, kind_of) == {}
    assert commands_of(run, kind_of) == {}
