"""`--repeat auto`, `--repeat 1%` and `--repeat 60s`: when a benchmark was launched often enough.

Looking after every launch would stop at the first interval that is narrow by luck, so there are few looks, each after half
as many launches again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchwright.analysis.summary import summarize
from benchwright.core.job import Job
from benchwright.core.note import Note
from benchwright.core.numbers.quantities import format_duration
from benchwright.core.run import Result, Run
from benchwright.core.stop_rule import StopRule

_LOOKS = frozenset((8, 12, 16, 24, 32, 48, 64, 96))  # launches of each benchmark


class EnoughLaunches:
    """Whether the launches so far are enough. `run`: gives the run as far as it is made."""

    def __init__(self, rule: StopRule | None, run: Callable[[], Run], pairs: Mapping[str, str] | None = None) -> None:
        self._rule = rule
        self._run = run
        self._pairs = pairs or {}  # benchmark → the pair it belongs to
        self._decided: dict[tuple[frozenset[str] | None, int], bool] = {}  # before which launch, or block of launches
        self._missed: dict[str, None] = {}  # why it ended before the interval was narrow enough

    def reached(self, job: Job) -> bool:
        """Whether the launch that begins with `job` is one too many. Launches of a block are made or left out together."""
        if self._rule is None or job.warmup:
            return False
        alone = frozenset((job.benchmark,)) if job.block is None else self._partners(job.benchmark)
        before = (job.repeat if job.block is None else job.block) or 0
        if self._decided.get((alone, before - 1)):
            self._decided[alone, before] = True
        if (alone, before) not in self._decided:
            self._decided[alone, before] = self._look(self._rule, alone, before)
        return self._decided[alone, before]

    def _partners(self, benchmark: str) -> frozenset[str] | None:
        """Those it alternates with; None: all."""
        pair = self._pairs.get(benchmark)
        return frozenset(name for name, of in self._pairs.items() if of == pair) if pair else None

    def notes(self) -> list[Note]:
        """About limits that were reached before the interval was narrow enough."""
        return [
            Note(text=text, kind="limit", remedy="make launches longer, or the machine quieter")
            for text in self._missed
        ]

    def _look(self, rule: StopRule, alone: frozenset[str] | None, before: int) -> bool:
        if before == 0:
            return False
        run = self._run()
        results = [r for r in run.results if r.launches and (alone is None or r.benchmark.name in alone)]
        spent_s = sum(x.duration_s or 0.0 for r in results for x in r.launches if not x.warmup)
        if rule.precision is None:
            return spent_s >= (rule.seconds or 0.0)
        if before < rule.min_steps:
            return False
        late = rule.max_seconds is not None and spent_s >= rule.max_seconds
        last = before + 1 == rule.max_steps
        if not late and not last and before not in _LOOKS:
            return False
        widths = _half_widths(run, results)
        if all(width <= rule.precision for width in widths):
            return True
        if late or last:
            limit = f"{rule.max_steps} launches" if not late else format_duration(rule.max_seconds or 0.0)
            self._missed[
                f"launches ended after {limit}, before the interval was within ± {rule.precision * 100:g} %"
            ] = None
        return late


def _half_widths(run: Run, results: list[Result]) -> list[float]:
    """Of the intervals that a reader looks at: of the ratios where benchmarks alternate, else of the medians."""
    from benchwright.app.results.compare import compare_alternating, telling_metrics

    if len(results) > 1:
        effects = [e for c in compare_alternating(run, results) for e in c.effects]
        return [
            (e.interval.high - e.interval.low) / 2 / e.ratio for e in effects if e.interval is not None and e.ratio > 0
        ]
    metrics = telling_metrics(run)
    return [
        summary.half_width
        for result in results
        for summary in summarize(result.counted, run.workers)
        if (result.benchmark.name, summary.metric) in metrics and summary.half_width is not None
    ]
