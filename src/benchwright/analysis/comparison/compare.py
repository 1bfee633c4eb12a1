"""Two runs, or two interleaved benchmarks of one run, compared metric by metric."""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from benchwright.analysis.comparison.alternation import ALTERNATE, alternate
from benchwright.analysis.comparison.differences import differences
from benchwright.analysis.comparison.disturbances import DisturbedPairs, disturbed_pairs
from benchwright.analysis.comparison.not_compared import (
    Metrics,
    NotCompared,
    failures,
    gaps,
    is_bound,
    is_part,
    is_wanted,
    matched,
    no_common_steps,
    not_numbers,
    unlike_sides,
)
from benchwright.analysis.comparison.separate_runs import RUN_TO_RUN, allowance, steadiness
from benchwright.analysis.comparison.sides import Side, Values, alike, key_words, noted, sides_of, values_of
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
    unpaired_ratio,
)
from benchwright.analysis.statistics.sequential import Looked
from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.core.conditions import AFFINITY, undecided, unlike
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
    pairs, missing = matched(control, treatment)
    rows: list[ComparedRow] = []
    ways: list[str] = []  # to measure both sides of a pair in one run
    for before, after in pairs:
        notes = control.notes, treatment.notes
        estimating = _of_separate_runs(before, after, notes, confidence, run_to_run)
        found = rows_of(before, after, (control.workers, treatment.workers), metrics, needed, estimating)
        ways.append(alternate((control, treatment), (before.benchmark, after.benchmark)))
        rows += [row._replace(alternate=ways[-1]) for row in found[0]]
        missing += found[1]
    return Comparison(
        control=control.id,
        treatment=treatment.id,
        revisions=(revision_words(control.revisions), revision_words(treatment.revisions)),
        margin=margin,
        effects=_judged_rows(rows, margin, confidence),
        differences=differences(control, treatment),
        missing=tuple(gap.text for gap in missing),
        lost=tuple(gap.text for gap in missing if gap.lost),
        doubts=tuple(
            [note.about(run.id) for run in (control, treatment) for note in run.notes]
            + [note for pair in pairs for note in noted(*pair, paired=False)]
        ),
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
        *both,
        (run.workers,) * 2,
        metrics,
        needed,
        _of_pairs(confidence),
        paired=True,
        left_out=lambda m: disturbed.blocks(m.metric, m.unit),
    )
    made = len({x.block for x in before.counted} & {x.block for x in after.counted})
    by_cpu_time = shlex.join(["bw", "compare", run.id, "--between", control, treatment, "--metric", CPU_TIME])
    rows = [_with_left_out(row, disturbed, made, by_cpu_time) for row in rows]
    missing = [*failures(before, after), *missing]
    return Comparison(
        control=control,
        treatment=treatment,
        margin=margin,
        effects=_judged_rows(rows, margin, confidence),
        missing=tuple(gap.text for gap in missing),
        lost=tuple(gap.text for gap in missing if gap.lost),
        doubts=(*run.notes, *noted(before, after, paired=True)),
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
    workers: tuple[int | None, int | None],
    metrics: Metrics,
    needed: Collection[str],
    estimating: Estimating,
    *,
    paired: bool = False,
    left_out: Callable[[Measurement], Collection[int]] | None = None,
) -> tuple[list[ComparedRow], list[NotCompared]]:
    """Every metric that both have, and what cannot be compared. `left_out`: blocks that must not count for a metric."""
    controls, treatments = (sides_of(r, w, paired) for r, w in zip((before, after), workers, strict=True))
    rows, missing = [], gaps(before, after, controls, treatments, needed)
    for key, control in controls.items():
        treatment = treatments.get(key)
        if treatment is None or not is_wanted(before.benchmark.name, key[0], metrics):
            continue
        if is_part(key, controls) or (paired and is_bound(key)):
            continue
        words = f"{before.benchmark.name} {key_words(key)}"
        if not alike(control, treatment):
            missing.append(unlike_sides(words, control, treatment))
            continue
        if paired and not control.launches.keys() & treatment.launches.keys():
            continue
        values = values_of(control, treatment, paired, left_out(control.first) if left_out else ())
        if values is None:
            missing.append(no_common_steps(words))
            continue
        missing += not_numbers(words, control.first, values)
        effect = _effect(before.benchmark.name, control.first, values, paired)
        rows.append(_row(effect, values, estimating, _drifts_within(control, treatment)))
    return rows, missing


def _drifts_within(control: Side, treatment: Side) -> list[Note]:
    """Loops whose steps get slower or faster within a launch: their result depends on how long they ran."""
    found = []
    for name, side in (("control", control), ("treatment", treatment)):
        if side.first.source == "loop":
            remarks = remarks_within([m.samples for m in side.launches.values()])
            found += [remark.about(name) for remark in remarks if remark.kind == "drift_within"]
    return found


def _effect(benchmark: str, measurement: Measurement, values: Values, paired: bool) -> Effect:
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
    )


def _row(effect: Effect, values: Values, estimating: Estimating, doubts: Sequence[Note]) -> ComparedRow:
    effect = msgspec.structs.replace(effect, doubts=tuple(doubts))
    both = [*values.control, *values.treatment]
    if min(effect.launches) < FEWEST_LAUNCHES:
        return ComparedRow(msgspec.structs.replace(effect, advice=too_few(*effect.launches)))
    no_change = both[0] <= 0 and all(value == both[0] for value in both)  # not by min and max: NaN has no order
    if no_change or is_rounding(effect.metric, *both):
        return ComparedRow(msgspec.structs.replace(effect, ratio=1.0, verdict=Verdict.SAME))
    if not all(math.isfinite(v) and v > 0 for v in both):
        return ComparedRow(_without_ratio(effect, values))
    return estimating(effect, values)


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


def _of_separate_runs(
    before: Result, after: Result, notes: tuple[Sequence[Note], Sequence[Note]], confidence: float, run_to_run: float
) -> Estimating:
    disturbed = [
        why.about(side)
        for side, result, of_run in zip(("control", "treatment"), (before, after), notes, strict=True)
        if (why := undecided(result.counted, of_run)) is not None
    ]

    # The treatment itself may make a GPU lower its clock: a doubt, but no reason to withhold a verdict.
    other = unlike(before.counted, after.counted)
    if other is not None and other.kind == AFFINITY:
        disturbed.append(other)
    other = None if disturbed else other

    def estimating(effect: Effect, values: Values) -> ComparedRow:
        of_machine = is_of_the_machine(effect.metric, effect.unit)
        estimate = unpaired_ratio(values.control, values.treatment, confidence)
        sides = steadiness(values.control), steadiness(values.treatment)
        doubts = [*disturbed, *([other] if other else [])] if of_machine else []
        drifts = zip(("control", "treatment"), sides, strict=True)
        doubts += [Note(text=f"the {name} {side.drift}", kind="drift") for name, side in drifts if side.drift]
        if _lopsided(values.control, values.treatment) or _lopsided(values.treatment, values.control):
            doubts.append(_LOPSIDED)
        allowed = allowance(sides, run_to_run if of_machine else None)
        return ComparedRow(
            _with_estimate(effect, estimate, doubts),
            estimate,
            allowance=allowed,
            wandered=allowed > (math.log1p(run_to_run) if of_machine else 0.0),
            drift=max((side.spread for side in sides if side.drift), default=0.0),
            disturbed=of_machine and bool(disturbed),
        )

    return estimating


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


def _judged_rows(rows: Sequence[ComparedRow], margin: float, confidence: float) -> tuple[Effect, ...]:
    """Disturbed launches are left out of the false-discovery control, where they would hide other effects."""
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
