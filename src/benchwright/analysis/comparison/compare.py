"""Two runs, or two interleaved benchmarks of one run, compared metric by metric."""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from benchwright.analysis.comparison.alternation import ALTERNATE, alternate
from benchwright.analysis.comparison.comparable import (
    ComparableMetric,
    ComparableResult,
    ComparableRun,
    common_values,
    comparable,
)
from benchwright.analysis.comparison.differences import differences_between
from benchwright.analysis.comparison.disturbances import DisturbedPairs, disturbed_pairs
from benchwright.analysis.comparison.not_compared import (
    Metrics,
    NotCompared,
    are_positive,
    failures,
    gaps,
    is_bound,
    is_part,
    is_wanted,
    matched,
    named_ending,
    no_common_steps,
    not_numbers,
    unlike_sides,
)
from benchwright.analysis.comparison.separate_runs import RUN_TO_RUN, Steadiness, allowance, steadinesses
from benchwright.analysis.comparison.sides import (
    MeasuredMetric,
    Side,
    Values,
    key_words,
    names_of_sides,
    noted,
    sides_of,
    values_of,
)
from benchwright.analysis.comparison.verdicts import (
    FEWEST_LAUNCHES,
    Evidence,
    advice_for,
    judged,
    too_few,
    too_few_left,
)
from benchwright.analysis.remarks import relative_spread, remarks_within
from benchwright.analysis.statistics.dependence import trend_chance
from benchwright.analysis.statistics.drift import ALARM
from benchwright.analysis.statistics.ratio_tests import (
    FEWEST_FOR_RANKS,
    RatioEstimate,
    benjamini_hochberg,
    paired_ratio,
    pairs_agree,
    unpaired_ratios,
)
from benchwright.analysis.statistics.sequential import Looked
from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.core.conditions import AFFINITY, unlike_conditions
from benchwright.core.measurement import Measurement
from benchwright.core.metric import CPU_TIME, Direction, is_of_the_machine, is_rounding, margin_for
from benchwright.core.note import Note
from benchwright.core.provenance import revision_words
from benchwright.core.run import Result, Run

# Below 2 %, the layout of memory and code matters as much as the change, and 20 launches with a spread of 2 % are just
# enough to call two runs the same.
DEFAULT_MARGIN = 0.02
_LOPSIDED = Note(text="the side with fewer launches is much noisier", remedy="give both the same number of launches")


class ComparedRow(NamedTuple):
    """An effect that is compared but not yet judged. `estimate` None: it cannot be judged, and its advice says why."""

    effect: Effect
    estimate: RatioEstimate | None = None
    allowance: float = 0.0
    wandered: bool = False  # the allowance is how far its launches drifted on their own
    drift: float = 0.0
    disagree: bool = False  # a few pairs account for the difference
    disturbed: bool = False  # its launches cannot decide
    looked: Looked | None = None  # by the rule of an A/B
    alternate: str = ALTERNATE  # how to measure both in one run


Estimating = Callable[[Effect, Values], ComparedRow]


Whole = Callable[[], tuple[Run, Run]]  # both runs with their samples


class _Waiting(NamedTuple):
    """A row whose ratio is estimated together with all others."""

    effect: Effect
    values: Values
    disturbed: Sequence[Note]
    unlike: Note | None
    alternate: str


def compare(
    control: Run,
    treatment: Run,
    *,
    margin: float = DEFAULT_MARGIN,
    confidence: float = 0.95,
    run_to_run: float = RUN_TO_RUN,
    metrics: Metrics = None,
    needed: Collection[str] = (),
) -> Comparison:
    """Everything both runs measured, matching benchmarks by name.

    Two runs of one benchmark each are compared whatever the names. `run_to_run`: how much two runs of an unchanged program
    may differ, as a fraction. `metrics`: only these, by name or by the control's benchmark and name. `needed`: metrics to
    list if one side lacks them. Metrics with different units or directions are listed, not compared.
    """
    only = None if metrics is None else {chosen if isinstance(chosen, str) else chosen[1] for chosen in metrics}
    return compare_comparable(
        comparable(control, only),
        comparable(treatment, only),
        lambda: (control, treatment),
        margin=margin,
        confidence=confidence,
        run_to_run=run_to_run,
        metrics=metrics,
        needed=needed,
    )


def compare_comparable(
    control: ComparableRun,
    treatment: ComparableRun,
    whole: Whole,
    *,
    margin: float = DEFAULT_MARGIN,
    confidence: float = 0.95,
    run_to_run: float = RUN_TO_RUN,
    metrics: Metrics = None,
    needed: Collection[str] = (),
) -> Comparison:
    """The same of what was kept of both runs; `whole` is called only for metrics that depend on how long launches ran."""
    pairs, missing = matched(control.results, treatment.results, _failed)
    rows: list[ComparedRow | _Waiting] = []
    ways: list[str] = []  # to measure both sides of a pair in one run
    runs = control.run, treatment.run
    for before, after in pairs:
        ways.append(alternate(runs, (before.benchmark, after.benchmark)))
        found = _separate_rows(before, after, whole, metrics, needed, ways[-1])
        rows += found[0]
        missing += found[1]
    return Comparison(
        control=runs[0].id,
        treatment=runs[1].id,
        revisions=(revision_words(runs[0].revisions), revision_words(runs[1].revisions)),
        margin=margin,
        effects=_judged_rows(_estimated(rows, confidence, run_to_run), margin, confidence),
        differences=differences_between(control, treatment),
        missing=tuple(gap.text for gap in missing),
        lost=tuple(gap.text for gap in missing if gap.lost),
        doubts=tuple([note.about(run.id) for run in runs for note in run.notes] + _noted(pairs)),
        confidence=confidence,
        run_to_run=run_to_run,
        remarks=(
            Note(
                text=f"measured one after the other: an unchanged program can differ by {run_to_run * 100:g} % "
                "between runs, so smaller differences get no verdict",
                severity="info",
                remedy=f"to detect them, {ways[0] if len(ways) == 1 else ALTERNATE}",
            ),
        ),
    )


def _failed(before: ComparableResult, after: ComparableResult) -> list[NotCompared]:
    return failures((before.benchmark.name, before.ending), (after.benchmark.name, after.ending))


def _noted(pairs: Sequence[tuple[ComparableResult, ComparableResult]]) -> list[Note]:
    found = []
    for pair in pairs:
        if pair[0].notes or pair[1].notes:
            names = names_of_sides(pair[0].benchmark.name, pair[1].benchmark.name)
            found += [note.about(name) for name, side in zip(names, pair, strict=True) for note in side.notes]
    return found


def _separate_rows(
    before: ComparableResult,
    after: ComparableResult,
    whole: Whole,
    metrics: Metrics,
    needed: Collection[str],
    alternate: str,
) -> tuple[list[ComparedRow | _Waiting], list[NotCompared]]:
    """Every metric that both have, and what cannot be compared."""
    name, controls, treatments = before.benchmark.name, before.sides, after.sides
    disturbed = [
        side.undecided.about(word)
        for word, side in (("control", before), ("treatment", after))
        if side.undecided is not None
    ]
    # The treatment itself may make a GPU lower its clock: a doubt, but no reason to withhold a verdict.
    other = unlike_conditions(before.conditions, after.conditions)
    if other is not None and other.kind == AFFINITY:
        disturbed.append(other)
    other = None if disturbed else other
    rows: list[ComparedRow | _Waiting] = []
    missing = gaps(name, controls, treatments, needed) if before.ending.counted and after.ending.counted else []
    for key, control in controls.items():
        treatment = treatments.get(key)
        if treatment is None or not is_wanted(name, key[0], metrics) or is_part(key, controls):
            continue
        if len({*control.terms, *treatment.terms}) > 1:
            missing.append(unlike_sides(f"{name} {key_words(key)}", control.terms, treatment.terms))
            continue
        values = _values(control, treatment, before.number, after.number, whole)
        if values is None:
            missing.append(no_common_steps(f"{name} {key_words(key)}"))
            continue
        missing += not_numbers(name, key, control, values)
        drifts = (("control", control.drift), ("treatment", treatment.drift))
        doubts = [drift.about(word) for word, drift in drifts if drift is not None]
        effect = _effect(name, control, values, doubts, paired=False)
        decided = _without_estimate(effect, values)
        rows.append(decided or _Waiting(effect, values, disturbed, other, alternate))
    return rows, missing


def _values(
    control: ComparableMetric, treatment: ComparableMetric, before: int, after: int, whole: Whole
) -> Values | None:
    """`before`, `after`: the numbers of their results. None if no step was measured by all launches."""
    if (common := common_values(control, treatment)) is not None:
        return Values(*common)
    runs, key = whole(), control.key
    ours, theirs = (sides_of(run.results[at], run.workers)[key] for run, at in zip(runs, (before, after), strict=True))
    return values_of(ours, theirs, paired=False)


def compare_interleaved(
    run: Run,
    control: str,
    treatment: str,
    *,
    margin: float = DEFAULT_MARGIN,
    confidence: float = 0.99,
    metrics: Metrics = None,
    needed: Collection[str] = (),
) -> Comparison:
    """Two benchmarks of one run whose launches alternated, compared block by block; KeyError if one is not in the run.

    In the result their names stand for control and treatment. Blocks in which either failed or was disturbed are left out and
    listed. `metrics` and `needed` as for `compare`.
    """
    disturbed, both = disturbed_pairs((run.result(control), run.result(treatment)), run.workers)
    before, after = both
    rows, missing = rows_of(
        *both, run.workers, metrics, needed, _of_pairs(confidence), lambda m: disturbed.blocks(m.metric, m.unit)
    )
    made = len({x.block for x in before.counted} & {x.block for x in after.counted})
    by_cpu_time = shlex.join(["bw", "compare", run.id, "--between", control, treatment, "--metric", CPU_TIME])
    rows = [_with_left_out(row, disturbed, made, by_cpu_time) for row in rows]
    missing = [*failures(*map(named_ending, both)), *missing]
    return Comparison(
        control=control,
        treatment=treatment,
        margin=margin,
        effects=_judged_rows(rows, margin, confidence),
        missing=tuple(gap.text for gap in missing),
        lost=tuple(gap.text for gap in missing if gap.lost),
        doubts=(*run.notes, *noted(before, after)),
        confidence=confidence,
    )


def _with_left_out(row: ComparedRow, disturbed: DisturbedPairs, made: int, by_cpu_time: str) -> ComparedRow:
    """Says which pairs do not count, and whether too few do; `by_cpu_time`: the command that judges without them."""
    effect, note = disturbed.judged(row.effect, made)
    if note is None:
        return row._replace(effect=effect)
    left = made - len(disturbed.blocks(effect.metric, effect.unit))
    if row.estimate is None and effect.verdict is Verdict.INCONCLUSIVE and left < FEWEST_LAUNCHES:
        advice = (
            f"{too_few_left(left)}; use a larger --repeat or a quieter machine, or judge by CPU time: {by_cpu_time}"
        )
        effect = msgspec.structs.replace(effect, advice=advice)
    return row._replace(effect=effect)


def interleaved(run: Run, control: str, treatment: str) -> bool:
    """Whether the two benchmarks share blocks, so that they can be compared as pairs."""
    both = [run.result(name) for name in (control, treatment)]
    blocks = [{x.block for x in result.counted if x.block is not None} for result in both]
    return both[0].benchmark.pair == both[1].benchmark.pair and bool(blocks[0] & blocks[1])


def rows_of(
    before: Result,
    after: Result,
    workers: int | None,
    metrics: Metrics,
    needed: Collection[str],
    estimating: Estimating,
    left_out: Callable[[Measurement], Collection[int]],
) -> tuple[list[ComparedRow], list[NotCompared]]:
    """Every metric that both of a pair have, and what cannot be compared. `left_out`: blocks that must not count for a metric."""
    name = before.benchmark.name
    controls, treatments = (sides_of(result, workers, paired=True) for result in (before, after))
    rows: list[ComparedRow] = []
    missing = gaps(name, controls, treatments, needed) if before.counted and after.counted else []
    for key, control in controls.items():
        treatment = treatments.get(key)
        if treatment is None or not is_wanted(name, key[0], metrics) or is_part(key, controls) or is_bound(key):
            continue
        words = f"{name} {key_words(key)}"
        if len({*control.terms, *treatment.terms}) > 1:
            missing.append(unlike_sides(words, control.terms, treatment.terms))
            continue
        if not control.launches.keys() & treatment.launches.keys():
            continue
        values = values_of(control, treatment, paired=True, left_out=left_out(control.first))
        if values is None:
            missing.append(no_common_steps(words))
            continue
        missing += not_numbers(name, key, control.first, values)
        effect = _effect(name, control.first, values, _drifts_within(control, treatment), paired=True)
        rows.append(_without_estimate(effect, values) or estimating(effect, values))
    return rows, missing


def _drifts_within(control: Side, treatment: Side) -> list[Note]:
    """Loops whose steps get slower or faster within a launch: their result depends on how long they ran."""
    found = []
    for name, side in (("control", control), ("treatment", treatment)):
        if side.first.source == "loop":
            remarks = remarks_within([m.samples for m in side.launches.values()])
            found += [remark.about(name) for remark in remarks if remark.kind == "drift_within"]
    return found


def _effect(
    benchmark: str, measurement: MeasuredMetric, values: Values, doubts: Sequence[Note], *, paired: bool
) -> Effect:
    middles = statistics.median(values.control), statistics.median(values.treatment)
    return Effect(
        benchmark=benchmark,
        metric=measurement.metric,
        unit=measurement.unit,
        direction=measurement.direction,
        labels=measurement.labels,
        control=middles[0],
        treatment=middles[1],
        ratio=_plain_ratio(*middles),
        interval=None,
        p_value=None,
        q_value=None,
        verdict=Verdict.INCONCLUSIVE,
        launches=(len(values.control), len(values.treatment)),
        paired=paired,
        basis=values.basis,
        doubts=tuple(doubts),
    )


def _without_estimate(effect: Effect, values: Values) -> ComparedRow | None:
    """The row if no test is needed, or none is possible."""
    both = [*values.control, *values.treatment]
    if min(effect.launches) < FEWEST_LAUNCHES:
        return ComparedRow(msgspec.structs.replace(effect, advice=too_few(*effect.launches)))
    # Not by min and max: NaN has no order.
    no_change = both[0] <= 0 and all(value == both[0] for value in both)
    if no_change or is_rounding(effect.metric, *both):
        return ComparedRow(msgspec.structs.replace(effect, ratio=1.0, verdict=Verdict.SAME))
    if not are_positive(both):
        return ComparedRow(_without_ratio(effect, values))
    return None


def _without_ratio(effect: Effect, values: Values) -> Effect:
    """Some values are not positive. If each side gave one and the same in every launch, such as an error that was 0 and no
    longer is, the difference is certain all the same; what other load affects is never so exact."""
    exact = len({*values.control}) == len({*values.treatment}) == 1 and not is_of_the_machine(
        effect.metric, effect.unit
    )
    before, after = values.control[0], values.treatment[0]
    if not exact or not math.isfinite(before - after) or effect.direction is Direction.NEITHER:
        return msgspec.structs.replace(effect, advice="no ratio: not all values are positive")
    worse = (after > before) is (effect.direction is Direction.LOWER)
    return msgspec.structs.replace(effect, verdict=Verdict.REGRESSED if worse else Verdict.IMPROVED)


def _estimated(rows: Sequence[ComparedRow | _Waiting], confidence: float, run_to_run: float) -> Iterator[ComparedRow]:
    """All ratios of a table together: one by one, thousands take seconds."""
    waiting = [row for row in rows if isinstance(row, _Waiting)]
    estimates = iter(unpaired_ratios([(row.values.control, row.values.treatment) for row in waiting], confidence))
    steady = iter(steadinesses([side for row in waiting for side in (row.values.control, row.values.treatment)]))
    for row in rows:
        if isinstance(row, _Waiting):
            yield _estimated_row(row, next(estimates), (next(steady), next(steady)), run_to_run)
        else:
            yield row


def _estimated_row(
    row: _Waiting, estimate: RatioEstimate, sides: tuple[Steadiness, Steadiness], run_to_run: float
) -> ComparedRow:
    effect, values = row.effect, row.values
    of_machine = is_of_the_machine(effect.metric, effect.unit)
    doubts = [*row.disturbed, *([row.unlike] if row.unlike else [])] if of_machine else []
    drifting = [(name, side) for name, side in zip(("control", "treatment"), sides, strict=True) if side.drift]
    doubts += [Note(text=f"the {name} {side.drift}", kind="drift") for name, side in drifting]
    if _lopsided(values.control, values.treatment) or _lopsided(values.treatment, values.control):
        doubts.append(_LOPSIDED)
    allowed = allowance(sides, run_to_run if of_machine else None)
    return ComparedRow(
        _with_estimate(effect, estimate, doubts),
        estimate,
        allowance=allowed,
        wandered=allowed > (math.log1p(run_to_run) if of_machine else 0.0),
        drift=max(side.spread for _, side in drifting) if drifting else 0.0,
        disturbed=of_machine and bool(row.disturbed),
        alternate=row.alternate,
    )


def _of_pairs(confidence: float) -> Estimating:
    def estimating(effect: Effect, values: Values) -> ComparedRow:
        if len(values.blocks) < FEWEST_LAUNCHES:
            return ComparedRow(effect)
        estimate = paired_ratio(values.control, values.treatment, confidence)
        ratios = [b / a for a, b in zip(values.control, values.treatment, strict=True)]
        drifted = Note(text="the ratio drifted over the blocks", kind="drift")
        doubts = [drifted] if trend_chance(ratios) <= ALARM else []
        disagree = len(ratios) < FEWEST_FOR_RANKS and not pairs_agree(values.control, values.treatment)
        effect = msgspec.structs.replace(_with_estimate(effect, estimate, doubts), pairs=tuple(ratios))
        return ComparedRow(effect, estimate, disagree=disagree)

    return estimating


def _with_estimate(effect: Effect, estimate: RatioEstimate, doubts: Sequence[Note]) -> Effect:
    return msgspec.structs.replace(
        effect,
        ratio=estimate.ratio,
        interval=estimate.interval,
        p_value=estimate.p_value,
        doubts=(*effect.doubts, *doubts),
    )


def _judged_rows(compared: Iterable[ComparedRow], margin: float, confidence: float) -> tuple[Effect, ...]:
    """Disturbed launches are left out of the false-discovery control, where they would hide other effects."""
    rows = list(compared)
    deciding = [r.estimate.p_value for r in rows if r.estimate is not None and not r.disturbed]
    q_values = iter(benjamini_hochberg(deciding))
    found = []
    for row in rows:
        if row.estimate is None:
            found.append(row.effect)
        elif row.disturbed:
            remedy = f"no verdict from disturbed launches; measure again on a quieter machine, or {row.alternate}"
            found.append(msgspec.structs.replace(row.effect, advice=remedy))
        else:
            found.append(_judged_row(row, row.estimate, next(q_values), len(deciding), margin, confidence))
    return tuple(found)


def _judged_row(
    row: ComparedRow, estimate: RatioEstimate, q_value: float, comparisons: int, margin: float, confidence: float
) -> Effect:
    effect = msgspec.structs.replace(row.effect, q_value=q_value)
    evidence = Evidence(
        direction=effect.direction,
        ratio=estimate.ratio,
        interval=estimate.interval,
        p_value=estimate.p_value,
        q_value=q_value,
        comparisons=comparisons,
        margin=margin_for(effect.metric, margin, effect.control),
        confidence=confidence,
        launches=min(effect.launches),
        paired=effect.paired,
        allowance=row.allowance,
        wandered=row.wandered,
        drift=row.drift,
        alternate=row.alternate,
    )
    verdict = judged(evidence)
    if verdict in (Verdict.REGRESSED, Verdict.IMPROVED) and row.disagree:
        return msgspec.structs.replace(effect, advice="a few pairs account for the difference; use more launches")
    advice = advice_for(evidence) if verdict is Verdict.INCONCLUSIVE else None
    return msgspec.structs.replace(effect, verdict=verdict, advice=advice)


def _lopsided(few: Sequence[float], many: Sequence[float]) -> bool:
    """Mann and Whitney's test too often mistakes a noisier, smaller side for a different one (15 % at 6 against 20)."""
    return len(many) >= 1.5 * len(few) and relative_spread(few) > 2 * relative_spread(many)


def _plain_ratio(control: float, treatment: float) -> float:
    if control == treatment:
        return 1.0
    return treatment / control if control else math.nan
