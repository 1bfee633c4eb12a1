"""Timings that a shell script sends: `TOKEN`, then lines of `name seconds`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import Direction
from benchwright.core.run import Result
from benchwright.runs.foreign_json import ForeignFile
from benchwright.runs.imported_run import UNKNOWN_WORKLOAD, make_machine, make_run, measurement, one_launch
from benchwright.server.route import DeliveredRun, FindRun, ForeignPost


class TimingLines:
    path = "/timings"

    def read(self, body: bytes) -> ForeignPost:
        token, *lines = body.decode("utf-8", "replace").split("\n")
        return ForeignPost(token=token, messages=tuple(line for line in lines if line))

    def runs(self, post: ForeignPost, stored: FindRun) -> Sequence[DeliveredRun]:
        text = "\n".join(map(str, post.messages))
        digest = hashlib.sha256(text.encode()).hexdigest()
        file = ForeignFile(path="timings.txt", body=None, digest=digest, changed=0.0)
        results = [self._result(str(line), number) for number, line in enumerate(dict.fromkeys(post.messages))]
        made = make_run(file, "timings", results, machine=make_machine(), started=None)
        return [DeliveredRun(run=run, digest=digest) for run in made]

    def answer(self, post: ForeignPost) -> object:
        return f"{len(post.messages)} lines"

    def _result(self, line: str, number: int) -> Result:
        name, _, seconds = line.rpartition(" ")
        try:
            value = float(seconds)
        except ValueError:
            raise InvalidInput(f"'{seconds[:40]}' is not a number", where="timings") from None
        benchmark = Benchmark(name=name.replace("\0", "") or "unnamed", workload=UNKNOWN_WORKLOAD, source="timings")
        return one_launch(benchmark, [measurement("duration", "s", Direction.LOWER, [value])], position=number)
