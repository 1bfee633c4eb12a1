"""The table of an A/B, judged by the rule that its run was stopped by: intervals, q-values and verdicts from one test.

Benjamini and Hochberg's procedure decides which differences of the whole table are real, and the intervals have the level at
which it did (Benjamini and Yekutieli, 2005): a difference is called exactly if its interval excludes 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from benchwright.analysis.comparison.compare import ComparedRow, rows_of
from benchwright.analysis.comparison.disturbances import DisturbedPairs, disturbed_pairs
from benchwright.analysis.comparison.not_compared import Metrics, NotCompared, failures, named_ending
from benchwright.analysis.comparison.sides import Values, noted
from benchwright.analysis.comparison.verdicts import FEWEST_LAUNCHES, too_few_left
from benchwright.analysis.statistics.dependence import trend_chance
from benchwright.analysis.statistics.drift import ALARM
from benchwright.analysis.statistics.ratio_tests import benjamini_hochberg, exp_or_inf
from benchwright.analysis.statistics.sequential import Looked, Pair, PairedTest, look_schedule
from benchwright.analysis.statistics.spending_function import levels_at
from benchwright.core.comparison import LEFT_OUT, Comparison, Effect, Verdict
from benchwright.core.decision import Decision
from benchwright.core.metric import Direction, margin_for
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Status
from benchwright.core.summary import Interval

Sides = tuple[str, str]  # names of the control and the treatment
_ENOUGH_TO_DESPAIR, _FEWEST_COUNTING = 12, 0.25  # pairs made, and the share that counts


class Course(NamedTuple):
    """How far the launches of a pair got: blocks made, the seconds used before each, and how many it may use."""

    blocks: int
    spent_s: tuple[float, ...]  # before block 0, 1, …; the last: all
    budget_s: float | None

    @property
    def is_over_budget(self) -> bool:
        return self.budget_s is not None and self.spent_s[-1] >= self.budget_s

    def share(self, decision: Decision, blocks: int, usable: int) -> float:
        """The share of the allowance used after that many blocks."""
        if blocks >= decision.most_launched:
            return 1.0
        of_time = 0.0 if self.budget_s is None else self.spent_s[blocks] / self.budget_s
        return min(1.0, max(usable / decision.most_blocks, of_time))


def looks_of(decision: Decision) -> tuple[int, ...]:
    """After how many blocks a running A/B is looked at."""
    if decision.looks:
        return decision.looks
    planned, more = look_schedule(decision.most_blocks), look_schedule(decision.most_launched)
    return tuple(sorted({*planned, *(look for look in more if look > decision.most_blocks)}))


def alternating_groups(run: Run) -> list[list[Result]]:
    """Benchmarks that alternate with each other, in the order they are measured; the first of each is the control."""
    groups: dict[str, list[Result]] = {}
    for result in run.results:
        if result.status is not Status.SKIPPED:
            groups.setdefault(result.benchmark.pair, []).append(result)
    return [group for group in groups.values() if len(group) > 1]


def courses(run: Run) -> dict[str, Course]:
    """By benchmark. Each group may use an equal share of the budget, and what those before it left over."""
    groups, found, used_s = alternating_groups(run), {}, 0.0
    for number, group in enumerate(groups):
        budget_s = run.decision.budget_s if run.decision else None
        if budget_s is not None:
            budget_s = max(1e-9, budget_s - used_s) / (len(groups) - number)
        course = _course([x for result in group for x in result.launches if not x.warmup], budget_s)
        used_s += course.spent_s[-1]
        found.update({result.benchmark.name: course for result in group})
    return found


def _course(launches: Sequence[Launch], budget_s: float | None) -> Course:
    blocks = 1 + max((x.block for x in launches if x.block is not None), default=-1)
    spent = [0.0] * (blocks + 1)
    for launch in launches:
        if launch.block is not None:
            spent[launch.block + 1] += launch.duration_s or 0.0
    for block in range(blocks):
        spent[block + 1] += spent[block]
    return Course(blocks, tuple(spent), budget_s)


def compare_decided(
    run: Run,
    sides: Sequence[Sides],
    *,
    metrics: Metrics = None,
    needed: Collection[str] = (),
    more_effects: int = 0,
) -> list[Comparison]:
    """One comparison for each of `sides`, judged together by the rule of `run`, which must have one.

    `more_effects`: how many others the table will hold, which are not measured yet.
    """
    decision = run.decision or Decision()
    of_benchmark = courses(run)
    tables = [
        _looked_rows(
            run, decision, of_benchmark[control], (run.result(control), run.result(treatment)), metrics, needed
        )
        for control, treatment in sides
    ]
    p_values = [row.looked.p_value for rows, _ in tables for row in rows if row.looked is not None]
    q_values = benjamini_hochberg([*p_values, *[1.0] * more_effects])[: len(p_values)]
    called = sum(q <= decision.alpha for q in q_values)
    level = decision.alpha * max(1, called) / max(1, len(p_values) + more_effects)
    of_row = iter(q_values)
    return [
        Comparison(
            control=control,
            treatment=treatment,
            margin=decision.margin,
            effects=tuple(
                row.effect
                if row.looked is None
                else _judged(row.effect, row.looked, next(of_row), level, decision.margin, _more(of_benchmark[control]))
                for row in rows
            ),
            missing=tuple(gap.text for gap in missing),
            lost=tuple(gap.text for gap in missing if gap.lost),
            doubts=(*run.notes, *noted(run.result(control), run.result(treatment))),
            confidence=1 - level,
        )
        for (control, treatment), (rows, missing) in zip(sides, tables, strict=True)
    ]


def may_be_decided(effect: Effect) -> bool:
    """Whether more pairs can give it a verdict: not if it has no direction or no ratio."""
    if effect.direction is Direction.NEITHER:
        return False
    disturbed = any(note.kind == LEFT_OUT for note in effect.doubts)
    return effect.interval is not None or min(effect.launches) < FEWEST_LAUNCHES or disturbed


def hardly_counts(effect: Effect, made: int) -> bool:
    """Whether most of the pairs made do not count for it, so that the next hardly will."""
    disturbed = any(note.kind == LEFT_OUT for note in effect.doubts)
    return disturbed and made >= _ENOUGH_TO_DESPAIR and len(effect.pairs) < _FEWEST_COUNTING * made


def _looked_rows(
    run: Run,
    decision: Decision,
    course: Course,
    both: tuple[Result, Result],
    metrics: Metrics,
    needed: Collection[str],
) -> tuple[list[ComparedRow], list[NotCompared]]:
    disturbed, both = disturbed_pairs(both, run.workers)
    positions = tuple({x.block: x.position for x in result.counted} for result in both)

    def estimating(effect: Effect, values: Values) -> ComparedRow:
        pairs = [
            Pair(math.log(a), math.log(b), positions[0][block] < positions[1][block])
            for a, b, block in zip(values.control, values.treatment, values.blocks, strict=True)
        ]
        test = PairedTest(pairs)
        ratios = tuple(b / a for a, b in zip(values.control, values.treatment, strict=True))
        effect = replace(effect, ratio=exp_or_inf(test.estimate), pairs=ratios)
        if trend_chance(ratios) <= ALARM:
            drifted = Note(text="the ratio drifted over the blocks", kind="drift")
            effect = replace(effect, doubts=(*effect.doubts, drifted))
        return ComparedRow(effect, looked=Looked(test, levels_at(_shares(decision, course, values.blocks))))

    def of_counting_pairs(effect: Effect, values: Values) -> ComparedRow:
        if len(values.blocks) < FEWEST_LAUNCHES:
            return ComparedRow(effect)
        return estimating(effect, values)

    rows, missing = rows_of(
        *both, run.workers, metrics, needed, of_counting_pairs, lambda m: disturbed.blocks(m.metric, m.unit)
    )
    return [_with_left_out(row, disturbed, course) for row in rows], [*failures(*map(named_ending, both)), *missing]


def _shares(decision: Decision, course: Course, used: Sequence[int]) -> list[float]:
    """How much was used at each look, the one at the end included; looks at too few pairs could not decide."""
    shares = []
    for look in (*(x for x in looks_of(decision) if x < course.blocks), course.blocks):
        usable = sum(block < look for block in used)
        if usable >= FEWEST_LAUNCHES:
            shares.append(course.share(decision, look, usable))
    return shares


def _with_left_out(row: ComparedRow, disturbed: DisturbedPairs, course: Course) -> ComparedRow:
    """Says which pairs do not count, and whether too few do."""
    effect, note = disturbed.judged(row.effect, course.blocks)
    counting = min(*effect.launches, course.blocks - len(disturbed.blocks(effect.metric, effect.unit)))
    if row.looked is None and effect.verdict is Verdict.INCONCLUSIVE and counting < FEWEST_LAUNCHES:
        effect = replace(effect, advice=_too_few(counting, course, left=note is not None))
    return row._replace(effect=effect)


def _too_few(count: int, course: Course, *, left: bool) -> str:
    """`left`: other pairs do not count."""
    if left:
        return f"{too_few_left(count)}; use {_more(course)} or a quieter machine"
    if count < course.blocks:
        return f"only {count} of {course.blocks} pairs have it, and a verdict takes {FEWEST_LAUNCHES}"
    made = "1 pair was made" if count == 1 else f"{count} pairs were made"
    return f"{made}, and a verdict takes {FEWEST_LAUNCHES}; use {_more(course)}"


def _more(course: Course) -> str:
    """The option that allows more pairs: a larger budget only if this one was used up."""
    return "a larger --budget" if course.is_over_budget else "a larger --repeat"


def _judged(effect: Effect, looked: Looked, q_value: float, level: float, margin: float, more: str) -> Effect:
    low, high = looked.bounds(level)
    limit = math.log1p(margin_for(effect.metric, margin, effect.control))
    effect = replace(
        effect, interval=Interval(exp_or_inf(low), exp_or_inf(high)), p_value=looked.p_value, q_value=q_value
    )
    if -limit <= low and high <= limit:
        return replace(effect, verdict=Verdict.SAME)
    if low <= 0 <= high:
        return replace(effect, advice=_needs(effect, looked.test.estimate, (high - low) / 2, limit, more))
    if effect.direction is Direction.NEITHER:
        return replace(effect, advice="it differs, but this metric has no better direction")
    worse = (low > 0) is (effect.direction is Direction.LOWER)
    return replace(effect, verdict=Verdict.REGRESSED if worse else Verdict.IMPROVED)


def _needs(effect: Effect, estimate: float, reach: float, limit: float, more: str) -> str:
    """How many pairs a verdict would take, if the noise and the difference stay as they are."""
    wanted = max(abs(estimate), limit - abs(estimate))
    pairs = math.inf if wanted <= 0 else min(effect.launches) * (reach / wanted) ** 2 * 1.2
    about = f"about {math.ceil(pairs / 5) * 5} pairs" if pairs <= 1000 else "more than 1000 pairs"
    return f"undecided at ± {_percent(reach)} %: {about} would decide; use {more} or a quieter machine, or a larger --min-effect"


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.2g}" if fraction < 1 else f"{fraction * 100:.0f}"
