"""Plans a suite's benchmarks; a word that cannot be filled is reported where the suite says it."""

from __future__ import annotations

from benchwright.core.benchmark import Benchmark
from benchwright.core.status import Reason
from benchwright.kinds.suite.error_locations import words_placed
from benchwright.plan.base import JobCommand
from benchwright.plan.process_slots import ProcessSlot
from benchwright.plan.suite.jobs import SuiteJobs


class SuitePlanner(SuiteJobs):
    def why_skipped(self, benchmark: Benchmark) -> tuple[Reason, str] | None:
        with words_placed([benchmark]):
            return super().why_skipped(benchmark)

    def command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, repeat: int | None) -> JobCommand:
        with words_placed([benchmark]):
            return super().command(benchmark, slot, job, repeat)
