"""Builds models for the next launches, several at a time, while nothing is measured.

A build is a separate job, whose process is forked from one that has imported torch where that is possible. If it fails, its
stream becomes that of the launch it was for, which is then not made.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from benchwright.core.errors import CannotMeasure
from benchwright.core.job import BuiltAhead, Job, Outcome
from benchwright.core.whole_file import write_whole
from benchwright.executors.base import Executor, Listener
from benchwright.executors.observer import Observer
from benchwright.record import is_complete, read_events

# Files and folders that a launch needs before it starts.


def write_file(path: Path, text: str) -> None:
    """CannotMeasure if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode(), sync=False)
    except OSError as error:
        raise CannotMeasure(f"{path}: {error.strerror or error}; it must be written before a launch") from error


def still_to_launch(group: Sequence[Sequence[Job]]) -> list[Sequence[Job]]:
    """Of launches that wait for each other, the ones not made yet; of any other group, all."""
    if group[0][0].turn is None:
        return list(group)
    empty_folder(Path(group[0][0].turn.folder))
    return [launch for launch in group if not is_complete(launch[0].stream)]


def empty_folder(folder: Path) -> None:
    """Made if it is not there."""
    if folder.exists():
        remove_folder(folder)
    folder.mkdir(parents=True)


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


_CORES_EACH = 4


class BuildsAhead:
    """Builds of one run. `most`: how many at a time."""

    def __init__(self, folder: Path, executor: Executor, observer: Observer, most: int | None, cores: int) -> None:
        self._folder = folder / ".barrier" / "builds"
        self._executor = executor
        self._observer = observer
        self._most = most or max(1, cores // _CORES_EACH)
        self._made: dict[str, BuiltAhead] = {}  # by job
        self._tried: set[str] = set()
        self._begun = False

    def ready(self, group: Sequence[Sequence[Job]], launches: Sequence[Sequence[Job]]) -> list[Sequence[Job]]:
        """The launches of `group` whose builds did not fail; builds what is missing, and for later `launches`, too."""
        if any(job.build is not None and job.id not in self._tried for launch in group for job in launch):
            self._build(group, launches)
        ready = [launch for launch in group if not any(job.id in self._tried and _failed(job) for job in launch)]
        return [tuple(replace(job, built=self._made.get(job.id)) for job in launch) for launch in ready]

    def _build(self, group: Sequence[Sequence[Job]], launches: Sequence[Sequence[Job]]) -> None:
        """Not the first one if it is alone: the process that measures it does that."""
        wanted = [job for launch in (*group, *launches) for job in launch if job.build and job.id not in self._tried]
        wanted = [job for job in {job.id: job for job in wanted}.values() if not is_complete(job.stream)]
        alone, self._begun = len(wanted) < 2 and not self._begun, True
        if alone:
            return
        now, batch = time.time(), wanted[: self._most]
        empty_folder(self._folder)
        builds = [_build_of(job, self._folder) for job in batch]
        self._observer.on_step("builds", f"building {', '.join(job.benchmark for job in batch)}")
        outcomes = self._executor.run(builds, Listener())
        self._observer.on_step_done("builds")
        for job, build, outcome in zip(batch, builds, outcomes, strict=True):
            self._tried.add(job.id)
            if _went_wrong(build, outcome):
                _hand_over(build, job)
            elif not outcome.stopped:
                self._made[job.id] = BuiltAhead(since=now, beside=len(batch))


def _build_of(job: Job, folder: Path) -> Job:
    assert job.build is not None
    files = {"stream": f"{folder}/{job.id}.data", "log": f"{folder}/{job.id}.log"}
    return replace(job, probe=job.build.probe, warm=job.build.warm, layout=0, turn=None, **files)


def _went_wrong(build: Job, outcome: Outcome) -> bool:
    if outcome.stopped:
        return False
    with suppress(OSError):  # without a stream it was not even started
        return outcome.exit_code != 0 or any(event.get("event") == "failure" for event in read_events(build.stream))
    return False


def _failed(job: Job) -> bool:
    return is_complete(job.stream)


def _hand_over(build: Job, job: Job) -> None:
    """How the build failed is how the launch failed."""
    for ending in (".log", ".log.gz", ".data"):
        with suppress(OSError):  # it printed nothing
            Path(build.stream).with_suffix(ending).rename(Path(job.stream).with_suffix(ending))
