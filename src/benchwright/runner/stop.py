"""`--repeat auto`, `1%`, `60s` and `verdict`: when a benchmark was launched often enough.

Looking after every launch would stop at the first interval that is narrow by luck, so there are few looks, each after half
as many launches again. The looks of a verdict are counted in its error rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from benchwright import results as kept
from benchwright.analysis.summary import summarize
from benchwright.core.decision import Decision
from benchwright.core.job import Job
from benchwright.core.note import Note
from benchwright.core.quantities import format_duration
from benchwright.core.run import Result, Run
from benchwright.core.stop_rule import StopRule
from benchwright.report.text.metrics import metric_label

_LOOKS = frozenset((8, 12, 16, 24, 32, 48, 64, 96))  # launches of each benchmark


class LaunchStopper:
    """Whether the launches so far are enough. `run`: gives the run as far as it is made."""

    def __init__(
        self,
        rule: StopRule | None,
        run: Callable[[], Run],
        pairs: Mapping[str, str] | None = None,
        decision: Decision | None = None,
    ) -> None:
        self._rule = rule
        self._decision = decision
        self._run = run
        self._pairs = {} if pairs is None else pairs  # it grows with the run: benchmark → the pair it belongs to
        self._decided: dict[tuple[frozenset[str] | None, int], bool] = {}  # before which launch, or block of launches
        self._missed: dict[str, None] = {}  # why it ended before the interval was narrow enough
        self._undecided: dict[str, Note] = {}  # why it ended without a verdict, by pair
        self._part: frozenset[str] | None = None

    def measures(self, part: Iterable[str]) -> None:
        """A run that grows measures only these from now on; what was decided about others is no longer of interest."""
        self._part = frozenset(part)
        self._decided.clear()

    def reached(self, job: Job) -> bool:
        """Whether the launch that begins with `job` is one too many. Launches of a block are made or left out together."""
        if (self._rule is None and self._decision is None) or job.warmup:
            return False
        alone = frozenset((job.benchmark,)) if job.block is None else self._partners(job.benchmark)
        before = (job.launch if job.block is None else job.block) or 0
        if self._decided.get((alone, before - 1)):
            self._decided[alone, before] = True
        if (alone, before) not in self._decided:
            self._decided[alone, before] = self._is_enough(alone, before, job)
        return self._decided[alone, before]

    def _partners(self, benchmark: str) -> frozenset[str] | None:
        """Benchmarks it alternates with; None: all."""
        pair = self._pairs.get(benchmark)
        return frozenset(name for name, of in self._pairs.items() if of == pair) if pair else self._part

    def notes(self) -> list[Note]:
        """About limits that were reached before the interval was narrow enough."""
        return [
            *(
                Note(text=text, kind="limit", remedy="make launches longer, or the machine quieter")
                for text in self._missed
            ),
            *self._undecided.values(),
        ]

    def _is_enough(self, alone: frozenset[str] | None, before: int, job: Job) -> bool:
        if self._decision is not None and job.block is not None:
            return self._has_verdict(self._decision, self._pairs.get(job.benchmark, ""), job.benchmark, before)
        return self._rule is not None and self._look(self._rule, alone, before)

    def _has_verdict(self, decision: Decision, pair: str, benchmark: str, before: int) -> bool:
        """Whether all metrics of the pair are decided, or its share of the budget is spent."""
        from benchwright.analysis.comparison.ab_verdicts import courses, looks_of

        looks = before in looks_of(decision)
        if before == 0 or (not looks and decision.budget_s is None):
            return False
        run = self._run()
        course = courses(run).get(benchmark)
        over = course is not None and course.is_over_budget
        if not looks and not over:
            return False
        names = [name for name, of in self._pairs.items() if of == pair]
        left = kept.compare.undecided_effects(run, names)
        if not left:  # all decided, or all launches failed
            return True
        spent = over
        over = over or all(len(effect.pairs) >= decision.most_blocks for effect in left)
        if over or before + 1 >= decision.most_launched:
            where = f"{pair}: " if pair else ""
            named = ", ".join(dict.fromkeys(metric_label(e.metric) for e in left))
            text = f"{where}no clear verdict on {named}{' within the budget' if spent else ''}"
            remedy = f"use a larger {'--budget' if spent else '--repeat'}, or a quieter machine"
            self._undecided[pair] = Note(
                text=text, evidence=f"{before} {'pair' if before == 1 else 'pairs'}", kind="limit", remedy=remedy
            )
        return over

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
    if len(results) > 1:
        effects = [e for c in kept.compare.compare_alternating(run, results) for e in c.effects]
        return [
            (e.interval.high - e.interval.low) / 2 / e.ratio for e in effects if e.interval is not None and e.ratio > 0
        ]
    metrics = kept.compare.telling_metrics(run)
    return [
        summary.half_width
        for result in results
        for summary in summarize(result.counted, run.workers)
        if (result.benchmark.name, summary.metric) in metrics and summary.half_width is not None
    ]
