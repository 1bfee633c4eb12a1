"""From the first measurement of a commit to what is said about it: what looks bad is measured again before it is called.

The function that measures is handed in: the command line's makes real A/B runs, that of the tests draws numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from benchwright.core.comparison import Verdict
from benchwright.core.errors import CannotMeasure
from benchwright.regress.watch.records import CommitOutcome, EarlierCall, EffectKey, EffectRecord, RunMade, RunType
from benchwright.report.text.metrics import metric_name


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One A/B run. `broken`: benchmarks that failed in the treatment only, with the reason; `control_broken`: in the control
    only."""

    run: str  # its id; empty if it never began
    effects: tuple[EffectRecord, ...] = ()
    broken: dict[str, str] = {}
    control_broken: dict[str, str] = {}
    notes: tuple[str, ...] = ()


Measure = Callable[[RunType, tuple[EffectKey, ...]], Measured]
"""Makes a run; the keys are those of the regressions to mark. CannotMeasure if there is nothing to judge by."""


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a commit. `control_broken`: the control cannot be run, so nothing was compared."""

    outcome: CommitOutcome
    runs: tuple[RunMade, ...] = ()
    effects: tuple[EffectRecord, ...] = ()
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    control_broken: tuple[str, ...] = ()


def examine(measure: Measure, known: Mapping[EffectKey, EarlierCall], *, same_commit: bool = False) -> Examined:
    """`known`: regressions that were called before; they are not measured again unless they got worse.

    `same_commit`: control and treatment are the same, so nothing is called.
    """
    first = measure(RunType.BENCHMARK, ())
    runs = _made(RunType.BENCHMARK, first)
    if same_commit:
        return _same_commit(first, runs)
    if first.control_broken and not first.effects and not first.broken:
        return Examined(
            outcome=CommitOutcome.INCONCLUSIVE, runs=tuple(runs), control_broken=_reasons(first.control_broken)
        )
    suspects = _suspects(first, known)
    if not suspects and not first.broken:
        return _examined(runs, first, known, called=())
    second = measure(RunType.VERIFY, ())
    runs += _made(RunType.VERIFY, second)
    called = suspects & _regressed(second)
    broken = {name: why for name, why in second.broken.items() if name in first.broken}
    if not called and not broken:
        looked = sorted({f"{benchmark}: {metric}" for benchmark, metric, _ in suspects}) + sorted(first.broken)
        note = f"looked bad at first, but not when measured again: {', '.join(looked)}"
        return _examined(runs, second, known, called=(), notes=(note,), unless=CommitOutcome.NOT_CONFIRMED)
    figures, notes = _regress_run(measure, runs, second, tuple(sorted(called))) if called else (second, ())
    return _examined(runs, figures, known, called=called, broken=broken, notes=notes)


def _made(purpose: RunType, measured: Measured) -> list[RunMade]:
    return [RunMade(purpose=purpose, run=measured.run)] if measured.run else []


def _regress_run(
    measure: Measure, runs: list[RunMade], second: Measured, called: tuple[EffectKey, ...]
) -> tuple[Measured, tuple[str, ...]]:
    """The run whose figures are reported, and what to say about it."""
    try:
        third = measure(RunType.REGRESS, called)
    except CannotMeasure as error:
        return second, (f"the figures are those of the verify run: the regress run failed ({error})",)
    runs += _made(RunType.REGRESS, third)
    silent = set(called) - _regressed(third)
    lost = silent - {effect.key for effect in third.effects}
    figures = msgspec.structs.replace(third, effects=(*third.effects, *(e for e in second.effects if e.key in lost)))
    words = ", ".join(sorted(f"{benchmark}: {metric}" for benchmark, metric, _ in silent))
    return figures, (f"two runs out of three show it: {words}",) if silent else ()


def _suspects(measured: Measured, known: Mapping[EffectKey, EarlierCall]) -> set[EffectKey]:
    return {
        effect.key
        for effect in measured.effects
        if effect.verdict is Verdict.REGRESSED and not _is_known(effect, known)
    }


def _is_known(effect: EffectRecord, known: Mapping[EffectKey, EarlierCall]) -> bool:
    """Whether it may be what an earlier commit was called for."""
    call = known.get(effect.key)
    return call is not None and effect.continues(call.effect)


def _ended(effects: Sequence[EffectRecord], known: Mapping[EffectKey, EarlierCall]) -> list[str]:
    """Corrections of earlier verdicts that no longer hold."""
    found = []
    for effect in effects:
        call = known.get(effect.key)
        if call is not None and effect.excludes(call.effect):
            name = metric_name(effect.metric, effect.labels, beside=effect.beside)
            lost = 100 * (call.effect.ratio - 1)
            what = f"{effect.benchmark}: {name} {lost:+.1f} %, since {call.commit[:10]}"
            rest = " in part, or is a new loss" if effect.verdict is Verdict.REGRESSED else ""
            found.append(f"{what}, was repaired{rest}")
    return found


def _regressed(measured: Measured) -> set[EffectKey]:
    return {effect.key for effect in measured.effects if effect.verdict is Verdict.REGRESSED}


def _examined(
    runs: Sequence[RunMade],
    measured: Measured,
    known: Mapping[EffectKey, EarlierCall],
    *,
    called: Collection[EffectKey],
    broken: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
    unless: CommitOutcome | None = None,
) -> Examined:
    """`unless`: the outcome where nothing is worse than that."""
    effects = tuple(_marked(effect, called, known) for effect in measured.effects)
    reasons = _reasons(measured.control_broken)
    notes = (
        *measured.notes,
        *_ended(effects, known),
        *notes,
        *(f"cannot be compared, the control fails: {reason}" for reason in reasons),
    )
    outcome = _outcome(effects, bool(broken))
    if unless is not None and outcome is not CommitOutcome.REGRESSED:
        outcome = unless
    return Examined(outcome=outcome, runs=tuple(runs), effects=effects, broken=_reasons(broken or {}), notes=notes)


def _marked(
    effect: EffectRecord, called: Collection[EffectKey], known: Mapping[EffectKey, EarlierCall]
) -> EffectRecord:
    if effect.key in called:
        return msgspec.structs.replace(effect, called=True)
    if effect.verdict is Verdict.REGRESSED and _is_known(effect, known):
        call = known[effect.key]
        return msgspec.structs.replace(effect, called=True, since=call.commit, acknowledged=call.effect.acknowledged)
    return effect


def _outcome(effects: Sequence[EffectRecord], broken: bool) -> CommitOutcome:
    verdicts = {effect.verdict for effect in effects}
    if any(effect.called and not effect.acknowledged for effect in effects):
        return CommitOutcome.REGRESSED
    if broken:
        return CommitOutcome.BROKEN
    if any(effect.verdict is Verdict.REGRESSED and not effect.called for effect in effects):
        return CommitOutcome.NOT_CONFIRMED
    if any(effect.called for effect in effects):
        return CommitOutcome.ACKNOWLEDGED
    if Verdict.IMPROVED in verdicts:
        return CommitOutcome.IMPROVED
    own = {effect.verdict for effect in effects if not effect.beside}
    return CommitOutcome.SAME if own == {Verdict.SAME} else CommitOutcome.INCONCLUSIVE


def _same_commit(measured: Measured, runs: Sequence[RunMade]) -> Examined:
    differing = [e for e in measured.effects if e.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)]
    notes = tuple(
        f"{e.benchmark}: {e.metric} differs by {e.ratio - 1:+.1%} although both sides are the same commit; "
        "the machine is less steady than the test assumes"
        for e in differing
    )
    failed = measured.broken | measured.control_broken
    notes += tuple(f"fails: {reason}" for reason in _reasons(failed))
    return Examined(
        outcome=CommitOutcome.SAME_COMMIT, runs=tuple(runs), effects=measured.effects, notes=(*measured.notes, *notes)
    )


def _reasons(failed: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}: {why}" for name, why in failed.items())
