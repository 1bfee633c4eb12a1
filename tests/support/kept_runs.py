"""Runs in the folders of a base, made without measuring anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchwright.core.benchmark import Benchmark, Command
from benchwright.executors.fake import FakeExecutor
from benchwright.options.table import Options
from benchwright.results.kept_runs import Results
from benchwright.runner.measure import measure
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.run_folder import RunFolder


class Kept:
    """Makes runs below `base`; each is one second younger than the one before."""

    def __init__(self, base: Path) -> None:
        self.base = BaseFolder(base)
        self._seconds: Iterator[int] = iter(range(60))

    def __call__(self, name: str = "x", values: Sequence[float] = (0.1, 0.2), *, repeat: int = 1) -> RunFolder:
        benchmark = Benchmark(name="b", workload=Command(argv=("true",), cwd="/"), source="test")
        run = measure(
            [benchmark],
            Options(repeat=repeat),
            base=self.base,
            name=f"{name}.{{time}}",
            executor=FakeExecutor({"b": list(values)}),
        )
        made = Path(run.folder)
        second = f"{next(self._seconds):02d}"
        folder = RunFolder(made.rename(made.with_name(f"{name}.2026-11-15_10:00:{second}")))
        plan = folder.path / "plan.json"
        plan.write_text(
            plan.read_text().replace(f'"started": "{run.started}"', f'"started": "2026-11-15T10:00:{second}+00:00"')
        )
        return folder

    def results(self, store: str | None = None) -> Results:
        return Results(self.base, store or str(self.base.path / "store.db"))

    def copied(self, base: Path) -> Kept:
        """The same runs below another base."""
        shutil.copytree(self.base.path, base)
        return Kept(base)
