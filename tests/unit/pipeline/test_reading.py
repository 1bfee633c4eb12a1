"""A run read back from its folder is the run that was made."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

import benchwright
from benchwright.domain.errors import InvalidInput
from benchwright.domain.run import Run
from benchwright.pipeline.measure import measure
from benchwright.pipeline.reading import read_run
from benchwright.stores.run_folder import RunFolder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    base = tmp_path_factory.mktemp("base")
    code = "print('speed=5'); print('speed=7')"
    return benchwright.run(
        [sys.executable, "-c", code], metrics=["speed"], repeat=2, warmup_runs=1, base=base, labels={"k": "v"}
    )


def test_it_is_equal_in_every_part(run: Run) -> None:
    assert read_run(RunFolder(Path(run.folder))) == run


def test_what_is_no_run_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no plan\.json"):
        read_run(RunFolder(tmp_path))


def test_a_run_begun_on_another_machine_is_not_resumed_here(run: Run) -> None:
    from benchwright.domain.settings import RunSettings
    from benchwright.executors.fake import FakeExecutor
    from benchwright.stores.base_folder import BaseFolder

    folder = RunFolder(Path(run.folder))
    folder.write_machine(msgspec.structs.replace(run.machine, cpu="another one"))
    try:
        with (
            pytest.raises(InvalidInput, match="begun on another machine"),
            FakeExecutor({}, machine=run.machine) as fake,
        ):
            measure(
                [], RunSettings(), base=BaseFolder(folder.path.parent.parent), name="x", executor=fake, resume=folder.id
            )
    finally:
        folder.write_machine(run.machine)
