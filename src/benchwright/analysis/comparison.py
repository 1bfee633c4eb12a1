"""Two runs, or two interleaved benchmarks of one run, compared metric by metric."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from benchwright.analysis.aggregate import AggregateError
from benchwright.analysis.dependence import resemblance_chance, trend_chance
from benchwright.analysis.differences import differences
from benchwright.analysis.noticing import ALARM, relative_spread
from benchwright.analysis.ratio_tests import (
    FEWEST_FOR_RANKS,
    RatioEstimate,
    benjamini_hochberg,
    paired_ratio,
    pairs_agree,
    unpaired_ratio,
)
from benchwright.analysis.summary import launch_value
from benchwright.analysis.verdicts import FEWEST_LAUNCHES, advice_for, judged, too_few
from benchwright.domain.comparison import Comparison, Effect, Verdict
from benchwright.domain.measurement import Measurement
from benchwright.domain.run import Launch, Result, Run
from benchwright.domain.status import Status

# Below 2 % the layout of memory and code decides as much as the change does, and 20 launches that spread by 2 % are
# just enough to call two runs the same.
DEFAULT_MARGIN = 0.02
_SEPARATE_RUNS = (
    "measured one after the other: whatever changed on the machine in between looks like a difference; "
    "commands measured in one interleaved run are compared as pairs and free of that"
)
MetricKey = tuple[str, tuple[tuple[str, str], ...]]
Chosen = tuple[str, str]  # a benchmark of the control and a metric


class _Side(NamedTuple):
    """One metric of one benchmark: a value for each launch, in order, under its place (block, or number of the launch)."""

    measurement: Measurement
    values: dict[int, float]


class _Missing(NamedTuple):
    """What is not compared, in words; `lost`: the treatment lacks what the control has."""

    text: str
    lost: bool


class _Row(NamedTuple):
    """An effect on its way: compared, not yet judged."""

    effect: Effect
    estimate: RatioEstimate | None
    wandered: float = 0.0  # how far a side wandered by itself, as a logarithm, where its launches are not independent
    disagree: bool = False


def compare(
    control: Run,
    treatment: Run,
    *,
    margin: float = DEFAULT_MARGIN,
    confidence: float = 0.95,
    metrics: Collection[str] | Collection[Chosen] | None = None,
    needed: Collection[str] = (),
) -> Comparison:
    """All that both runs measured, benchmark by benchmark of the same name.

    Two runs of one benchmark each are compared whatever the names. `metrics`: only these, by name or by the control's
    benchmark and name. `needed`: metrics whose absence from one side is listed. What a side measured in another unit,
    or with another idea of what is better, is not compared but listed.
    """
    matched, missing = _matched(control, treatment)
    rows = []
    for before, after in matched:
        sides = _by_place(before, control.workers), _by_place(after, treatment.workers)
        rows += _rows(before, *sides, metrics, confidence)
        missing += _gaps(before, after, *sides, metrics, needed)
    return Comparison(
        control=control.id,
        treatment=treatment.id,
        margin=margin,
        effects=_judged_rows(rows, margin, confidence),
        differences=differences(control, treatment),
        missing=tuple(gap.text for gap in missing),
        lost=tuple(gap.text for gap in missing if gap.lost),
        confidence=confidence,
        remarks=(_SEPARATE_RUNS,),
    )


def compare_interleaved(
    run: Run,
    control: str,
    treatment: str,
    *,
    margin: float = DEFAULT_MARGIN,
    confidence: float = 0.99,
    metrics: Collection[str] | Collection[Chosen] | None = None,
    needed: Collection[str] = (),
) -> Comparison:
    """Two benchmarks of one run whose launches alternated, compared block by block; KeyError if one is not in the run.

    The names stand for control and treatment in the result. Blocks in which either failed are left out, and said.
    `metrics` and `needed` as for `compare`.
    """
    before, after = run.result(control), run.result(treatment)
    sides = _by_place(before, run.workers, True), _by_place(after, run.workers, True)
    missing = [
        *_failures(before, "", of_treatment=False),
        *_failures(after, "", of_treatment=True),
        *_gaps(before, after, *sides, metrics, needed),
    ]
    return Comparison(
        control=control,
        treatment=treatment,
        margin=margin,
        effects=_judged_rows(_rows(before, *sides, metrics, confidence, paired=True), margin, confidence),
        missing=tuple(gap.text for gap in missing),
        lost=tuple(gap.text for gap in missing if gap.lost),
        confidence=confidence,
    )


def interleaved(run: Run, control: str, treatment: str) -> bool:
    """Whether these two benchmarks of the run have launches in common blocks, so that they can be compared as pairs."""
    blocks = [{x.block for x in run.result(name).counted if x.block is not None} for name in (control, treatment)]
    return bool(blocks[0] & blocks[1])


def _matched(control: Run, treatment: Run) -> tuple[list[tuple[Result, Result]], list[_Missing]]:
    if len(control.results) == len(treatment.results) == 1:
        before, after = control.results[0], treatment.results[0]
        return [(before, after)], _both_failures(before, after)
    others = {r.benchmark.name: r for r in treatment.results}
    pairs, missing = [], []
    for before in control.results:
        found = others.pop(before.benchmark.name, None)
        if found is None:
            missing.append(_Missing(f"{before.benchmark.name}: only in control", lost=True))
            continue
        missing += _both_failures(before, found)
        pairs.append((before, found))
    missing += [_Missing(f"{name}: only in treatment", lost=False) for name in others]
    return pairs, missing


def _both_failures(before: Result, after: Result) -> list[_Missing]:
    return [
        *_failures(before, " in control", of_treatment=False),
        *_failures(after, " in treatment", of_treatment=True),
    ]


def _failures(result: Result, where: str, *, of_treatment: bool) -> list[_Missing]:
    """Where the control failed a comparison is not possible either, and that is no success."""
    launches = [x for x in result.launches if not x.warmup]
    bad = [x for x in launches if x.status is not Status.OK]
    name = result.benchmark.name
    if not result.counted:
        reason = result.reason.value if result.reason else result.status.value
        return [_Missing(f"{name}: nothing was measured{where} ({reason})", lost=True)]
    if bad:
        text = f"{name}: {len(bad)} of {len(launches)} launches did not end well{where}; the others are compared"
        return [_Missing(text, lost=of_treatment)]
    return []


def _gaps(
    before: Result,
    after: Result,
    controls: dict[MetricKey, _Side],
    treatments: dict[MetricKey, _Side],
    metrics: Collection[str] | Collection[Chosen] | None,
    needed: Collection[str],
) -> list[_Missing]:
    """Metrics that cannot be compared. A side that measured nothing at all is said elsewhere."""
    name, found = before.benchmark.name, []
    if not before.counted or not after.counted:
        return []
    for key in dict.fromkeys((*controls, *treatments)):
        words = f"{name} {_key_words(key)}"
        if key not in controls or key not in treatments:
            if key[0] in needed:
                lost = key in controls
                found.append(_Missing(f"{words}: only in {'control' if lost else 'treatment'}", lost))
        elif _is_wanted(name, key, metrics) and not _alike(controls[key], treatments[key]):
            ours, theirs = _unlike(controls[key].measurement, treatments[key].measurement)
            found.append(_Missing(f"{words}: {ours} in control, {theirs} in treatment; not compared", lost=True))
    return found


def _alike(control: _Side, treatment: _Side) -> bool:
    ours, theirs = control.measurement, treatment.measurement
    return (ours.unit, ours.direction) == (theirs.unit, theirs.direction)


def _unlike(ours: Measurement, theirs: Measurement) -> list[str]:
    if ours.unit != theirs.unit:
        return [f"measured in {m.unit or 'no unit'}" for m in (ours, theirs)]
    return [f"{m.direction.value} is better" for m in (ours, theirs)]


def _key_words(key: MetricKey) -> str:
    labels = ", ".join(f"{label} {value}" for label, value in key[1] if label != "loop")
    return f"{key[0]} [{labels}]" if labels else key[0]


def _is_wanted(benchmark: str, key: MetricKey, metrics: Collection[str] | Collection[Chosen] | None) -> bool:
    return metrics is None or key[0] in metrics or (benchmark, key[0]) in metrics


def _by_place(result: Result, workers: int | None, paired: bool = False) -> dict[MetricKey, _Side]:
    sides: dict[MetricKey, _Side] = {}
    for number, launch in enumerate(result.counted):
        place = launch.block if paired else number
        if place is None:
            continue
        _add_launch(sides, launch, place, workers)
    return sides


def _add_launch(sides: dict[MetricKey, _Side], launch: Launch, place: int, workers: int | None) -> None:
    for m in launch.measurements:
        if m.samples:
            key = (m.metric, tuple(sorted(m.labels.items())))
            with suppress(AggregateError):  # a method that needs workers, of a run that was told of none
                value = launch_value(m, workers)
                sides.setdefault(key, _Side(m, {})).values[place] = value


def _rows(
    before: Result,
    controls: dict[MetricKey, _Side],
    treatments: dict[MetricKey, _Side],
    metrics: Collection[str] | Collection[Chosen] | None,
    confidence: float,
    *,
    paired: bool = False,
) -> list[_Row]:
    rows = []
    for key, control in controls.items():
        treatment = treatments.get(key)
        if treatment is None or not _is_wanted(before.benchmark.name, key, metrics) or not _alike(control, treatment):
            continue
        places = sorted(control.values.keys() & treatment.values.keys()) if paired else []
        ours = [control.values[p] for p in places] if paired else list(control.values.values())
        theirs = [treatment.values[p] for p in places] if paired else list(treatment.values.values())
        if ours and theirs:
            rows.append(_row(before.benchmark.name, control.measurement, ours, theirs, confidence, paired))
    return rows


def _row(
    benchmark: str,
    measurement: Measurement,
    control: Sequence[float],
    treatment: Sequence[float],
    confidence: float,
    paired: bool,
) -> _Row:
    middles = statistics.median(control), statistics.median(treatment)
    effect = Effect(
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
        launches=(len(control), len(treatment)),
        paired=paired,
    )
    if min(len(control), len(treatment)) < FEWEST_LAUNCHES:
        return _Row(msgspec.structs.replace(effect, advice=too_few(len(control), len(treatment))), None)
    both = [*control, *treatment]
    if min(both) == max(both) <= 0:
        return _Row(msgspec.structs.replace(effect, ratio=1.0, verdict=Verdict.SAME), None)
    if not all(math.isfinite(v) and v > 0 for v in both):
        return _Row(msgspec.structs.replace(effect, advice="a ratio needs positive numbers; look at the values"), None)
    if paired:
        return _paired_row(effect, control, treatment, confidence)
    return _unpaired_row(effect, control, treatment, confidence)


def _unpaired_row(effect: Effect, control: Sequence[float], treatment: Sequence[float], confidence: float) -> _Row:
    estimate = unpaired_ratio(control, treatment, confidence)
    wandered = max(_wandering(control), _wandering(treatment))
    doubt = None
    if wandered:
        doubt = f"launches of a side are not independent; it wandered by {math.expm1(wandered) * 100:.1f} % by itself"
    elif _lopsided(control, treatment) or _lopsided(treatment, control):
        doubt = "the side with fewer launches is much noisier; give both the same number of launches"
    return _Row(_with_estimate(effect, estimate, doubt), estimate, wandered)


def _paired_row(effect: Effect, control: Sequence[float], treatment: Sequence[float], confidence: float) -> _Row:
    estimate = paired_ratio(control, treatment, confidence)
    ratios = [b / a for a, b in zip(control, treatment, strict=True)]
    doubt = "the ratio changed while the blocks ran" if trend_chance(ratios) <= ALARM else None
    disagree = len(ratios) < FEWEST_FOR_RANKS and not pairs_agree(control, treatment)
    return _Row(_with_estimate(effect, estimate, doubt), estimate, disagree=disagree)


def _with_estimate(effect: Effect, estimate: RatioEstimate, doubt: str | None) -> Effect:
    return msgspec.structs.replace(
        effect, ratio=estimate.ratio, interval=estimate.interval, p_value=estimate.p_value, doubt=doubt
    )


def _judged_rows(rows: Sequence[_Row], margin: float, confidence: float) -> tuple[Effect, ...]:
    q_values = iter(benjamini_hochberg([r.estimate.p_value for r in rows if r.estimate is not None]))
    return tuple(r.effect if r.estimate is None else _judged_row(r, next(q_values), margin, confidence) for r in rows)


def _judged_row(row: _Row, q_value: float, margin: float, confidence: float) -> Effect:
    effect = row.effect
    assert effect.interval is not None
    verdict = judged(effect.direction, effect.ratio, effect.interval, q_value, margin=margin, confidence=confidence)
    advice = None
    called = verdict in (Verdict.REGRESSED, Verdict.IMPROVED)
    if called and abs(math.log(effect.ratio)) <= row.wandered:
        verdict, advice = Verdict.INCONCLUSIVE, "measure both in one interleaved run: then drift cancels out"
    elif called and row.disagree:
        verdict, advice = Verdict.INCONCLUSIVE, "a few blocks carry the difference; more blocks would tell"
    elif verdict is Verdict.INCONCLUSIVE:
        advice = advice_for(
            effect.direction,
            effect.ratio,
            effect.interval,
            q_value,
            launches=min(effect.launches),
            margin=margin,
            confidence=confidence,
            paired=effect.paired,
        )
    return msgspec.structs.replace(effect, q_value=q_value, verdict=verdict, advice=advice)


def _wandering(values: Sequence[float]) -> float:
    """The range of the launches, as a logarithm, if they are not independent; else 0."""
    if trend_chance(values) > ALARM and resemblance_chance(values) > ALARM:
        return 0.0
    return math.log(max(values)) - math.log(min(values))


def _lopsided(few: Sequence[float], many: Sequence[float]) -> bool:
    """Mann and Whitney's test takes a noisier, smaller side for a different one too often (15 % at 6 against 20)."""
    return len(many) >= 1.5 * len(few) and relative_spread(few) > 2 * relative_spread(many)


def _plain_ratio(control: float, treatment: float) -> float:
    if control == treatment:
        return 1.0
    return treatment / control if control else math.nan
