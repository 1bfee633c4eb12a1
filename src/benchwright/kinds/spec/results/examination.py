"""Output files of a launch, against the golden ones of its test."""

from __future__ import annotations

import os

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job
from benchwright.kinds.spec.plan import LaunchFolders, outputs_of
from benchwright.kinds.spec.results.goldens import COMPARED, WRITTEN, OutputPair, compared
from benchwright.kinds.spec.setup import paths_here
from benchwright.kinds.spec.spec_test import spec_of
from benchwright.record.stream_file import Event

_MOST_BYTES = 16 << 20


class OutputExaminer:
    """Compares the outputs of launches that end one after another.

    Launches may share a folder: a file that is as an earlier launch left it was not written by this one.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int, int]] = {}

    def examine(self, benchmark: Benchmark, job: Job) -> list[Event]:
        """An event for each golden output of a test that ran a program, and for each output that holds results; runtimes
        compare theirs themselves."""
        test = spec_of(benchmark)
        converted = [] if test is None else [each for each in test.output_files if each.converter is not None]
        if test is None or not (test.goldens or converted) or not test.commands:
            return []
        written = outputs_of(test, LaunchFolders.below(os.path.dirname(job.stream), test, job.id), str(job.launch or 0))
        read = [_lines_of(each.key, written[each.key]) for each in converted]
        goldens = paths_here(test, test.goldens)
        pairs = [OutputPair(g.key, written[g.key], goldens.get(g.key)) for g in test.goldens]
        old = [pair for pair in pairs if not self._is_new(pair.got)]
        stale: list[Event] = [
            {"event": COMPARED, "output": pair.name, "wrong": f"the program did not write {pair.got} again"}
            for pair in old
        ]
        return read + stale + compared([pair for pair in pairs if pair not in old], test.tolerance)

    def _is_new(self, path: str) -> bool:
        try:
            found = os.stat(path)
        except OSError:
            return True  # comparing says that it is not there
        state = (found.st_ino, found.st_size, found.st_mtime_ns)
        before, self._seen[path] = self._seen.get(path), state
        return before != state


def _lines_of(key: str, path: str) -> Event:
    """The lines of an output file, for its converter; `wrong` if it cannot be read."""
    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        return {"event": WRITTEN, "output": key, "wrong": f"{path}: {error.strerror}"}
    if len(raw) > _MOST_BYTES:
        return {"event": WRITTEN, "output": key, "wrong": f"{path}: is larger than {_MOST_BYTES >> 20} MiB"}
    return {"event": WRITTEN, "output": key, "lines": raw.decode("utf-8", "replace").splitlines()}
