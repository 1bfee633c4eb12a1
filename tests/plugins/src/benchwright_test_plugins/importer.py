"""Files of a tool that writes `{"timings": {"name": [seconds, ...]}}`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.metric import Direction
from benchwright.core.run import Run
from benchwright.runs.foreign_json import body_of, load, shaped
from benchwright.runs.imported_run import UNKNOWN_WORKLOAD, make_machine, make_run, measurement, one_launch


class _File(msgspec.Struct):
    timings: dict[str, list[float]]


class TimingsImporter:
    name = "timings"

    def recognises(self, path: Path) -> bool:
        body = body_of(path)
        return isinstance(body, dict) and body.keys() == {"timings"}

    def read(self, path: Path) -> list[Run]:
        file = load(path)  # InvalidInput if it is no JSON
        found = shaped(file.body, _File, where=file.path, tool=self.name)  # InvalidInput names the place
        results = [
            one_launch(
                Benchmark(name=name, workload=UNKNOWN_WORKLOAD, source=self.name),
                [measurement("duration", "s", Direction.LOWER, seconds)],
                position=position,
            )
            for position, (name, seconds) in enumerate(found.timings.items())
            if seconds
        ]
        return make_run(file, self.name, results, machine=make_machine(), started=None)
