"""The runs of a watch: where they are made, what they are told about the two commits, and what came out."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from benchwright.app.after_run import exit_code
from benchwright.app.lab.selection import orders_for_devices
from benchwright.app.regressions.ab import A_A, KIND, AbOutcome, outcome_of
from benchwright.app.regressions.sides import variation_of_build
from benchwright.app.reporting import NotReported
from benchwright.app.run import RunOrder, resolve_order, run
from benchwright.core.decision import Decision
from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.inputs.specification import CONTROL, TREATMENT, SpecRevision
from benchwright.core.results.comparison import Effect
from benchwright.core.run import Result, Run, why
from benchwright.core.status import Status
from benchwright.executors.observer import Observer
from benchwright.kinds.spec.options import spec_options_of
from benchwright.regress.repository import SourceRepository
from benchwright.regress.variation import Variation
from benchwright.regress.watch.examination import Measured
from benchwright.regress.watch.records import record_of_effect
from benchwright.regress.watch.work import BuiltCommit, WatchPlace, WatchTrial

_PARTS = ("op", "type", "output")  # labels that name a part of a model
_NET = "NET"


class WatchedRuns:
    """Makes the runs."""

    def __init__(
        self,
        order: RunOrder,
        platforms: Sequence[str],
        decision: Decision,
        repository: SourceRepository,
        observer: Observer,
    ) -> None:
        self._order = order
        self._platforms = platforms
        self._decision = decision
        self._repository = repository
        self._observer = observer
        self._at: dict[str, RunOrder] = {}

    @property
    def is_elsewhere(self) -> bool:
        """Whether measuring leaves this machine alone."""
        if self._platforms:
            return all(platform.lower().startswith("android") for platform in self._platforms)
        on = self._order.options.on
        return on is not None and on.partition(":")[0] != "local"

    def places(self) -> Sequence[WatchPlace]:
        """Every device that is meant, as long as it is attached; one place without a name if none is named."""
        self._at.clear()
        places = []
        for platform in self._platforms or (None,):
            options = replace(self._order.options, platform=platform)
            chosen = orders_for_devices(replace(self._order, options=options))
            for note in chosen.notes:
                self._observer.on_trouble(note)
            for each in chosen.orders:
                name = " ".join(word for word in (platform, each.name) if word)
                self._at[name] = each.order
                places.append(WatchPlace(name, platform))
        return places

    def measure(self, trial: WatchTrial) -> Measured:
        try:
            made = self._run(trial)
        except InvalidInput as error:
            return self._unreadable(trial, error)
        if trial.control is None:
            if exit_code(made) == CannotMeasure.exit_code:
                raise CannotMeasure(_reason(made))
            return Measured(run=made.id, broken={r.benchmark.name: why(r) for r in made.results if _has_failed(r)})
        outcome = outcome_of(made)
        broken, control_broken = _failures(made)
        if not outcome.comparisons and not broken and not control_broken:
            broken, control_broken = _lacking(made)
        if outcome.exit_code == CannotMeasure.exit_code and not broken and not control_broken:
            raise CannotMeasure(_reason(made, outcome.table.effects))
        return Measured(
            run=made.id,
            effects=tuple(record_of_effect(effect) for effect in outcome.table.effects),
            broken=broken,
            control_broken=control_broken,
            notes=_notes(outcome, broken),
        )

    def _unreadable(self, trial: WatchTrial, error: InvalidInput) -> Measured:
        """A target that only one side can read, such as a suite with a mistake, is that commit's fault; else the user's."""
        if trial.control is None:
            raise error
        order = self._ordered(trial)
        wrong: dict[str, InvalidInput] = {}
        for variation in order.variations:
            try:
                resolve_order(replace(order, variations=(variation,)))
            except InvalidInput as found:
                wrong[variation.side] = found
        if len(wrong) != 1:
            raise wrong.get(TREATMENT, error)
        reasons = {side: {"target": str(found)} for side, found in wrong.items()}
        return Measured(run="", broken=reasons.get(TREATMENT, {}), control_broken=reasons.get(CONTROL, {}))

    def _run(self, trial: WatchTrial) -> Run:
        try:
            return run(self._ordered(trial), self._observer)
        except NotReported as error:
            self._observer.on_trouble(str(error))
            return error.run

    def _ordered(self, trial: WatchTrial) -> RunOrder:
        order = self._at[trial.place.name]
        given = spec_options_of(order.options)
        options = replace(order.options, run_type=trial.run_type.value, regressed_types=_types(trial))
        variations = [self._variation(TREATMENT, trial.treatment, given.treatment)]
        labels = {"run_type": trial.run_type.value, "commit": trial.treatment.commit.hash}
        if trial.control is not None:
            variations.insert(0, self._variation(CONTROL, trial.control, given.control))
            labels["control_commit"] = trial.control.commit.hash
            if trial.control.commit.hash == trial.treatment.commit.hash:
                labels[KIND] = A_A
            options = options.until(self._decision)
        return replace(order, options=options, variations=tuple(variations), labels=order.labels | labels)

    def _variation(self, side: str, at: BuiltCommit, info: SpecRevision | None) -> Variation:
        """`info`: what the user's `--info` says about this side."""
        words = f"{at.commit.short} {at.commit.subject}".strip()
        told = info or SpecRevision()
        known = replace(
            told,
            commit=at.commit.hash,
            commit_time=at.commit.time.timestamp(),
            programs=told.programs | at.built.programs,
        )
        return replace(variation_of_build(side, words, self._repository, at.commit, at.built), info=known)


def _pairs(made: Run) -> list[tuple[Result, Result]]:
    """Control and treatment of each benchmark that both have."""
    sides: dict[str, dict[str, Result]] = {}
    for result in made.results:
        if result.benchmark.side is not None:
            sides.setdefault(result.benchmark.pair, {})[result.benchmark.side] = result
    return [(found[CONTROL], found[TREATMENT]) for found in sides.values() if len(found) == 2]


def _failures(made: Run) -> tuple[dict[str, str], dict[str, str]]:
    """Benchmarks that failed in the treatment only, and those that failed in the control only."""
    broken, control_broken = dict[str, str](), dict[str, str]()
    for control, treatment in _pairs(made):
        if _has_failed(treatment) and not _has_failed(control):
            broken[treatment.benchmark.pair] = why(treatment)
        elif _has_failed(control) and not _has_failed(treatment):
            control_broken[control.benchmark.pair] = why(control)
    return broken, control_broken


def _lacking(made: Run) -> tuple[dict[str, str], dict[str, str]]:
    """The same of two commits that have no benchmark in common. One that only brings new ones is not to blame."""
    alone = [result.benchmark for result in made.results if result.benchmark.withheld]
    new, removed = ({b.pair: b.withheld or "" for b in alone if b.side == side} for side in (TREATMENT, CONTROL))
    return ({}, new) if new else (removed, {})


def _has_failed(result: Result) -> bool:
    return result.status is Status.FAILED


def _types(trial: WatchTrial) -> tuple[str, ...]:
    """What FAI-PEP calls the metrics that regressed."""
    found = [
        next((dict(labels)[part] for part in _PARTS if part in dict(labels)), _NET) for _, _, labels in trial.regressed
    ]
    return tuple(dict.fromkeys(found))


def _notes(outcome: AbOutcome, broken: dict[str, str]) -> tuple[str, ...]:
    """What a reader of the verdicts should know, once."""
    told = [str(note) for note in (*outcome.table.doubts, *outcome.table.remarks)]
    told += [text for text in outcome.table.missing if text.partition(":")[0] not in broken]
    told += [f"{e.benchmark} {e.metric}: {e.advice}" for e in outcome.table.effects if e.advice and not e.beside]
    return tuple(dict.fromkeys(told))


def _reason(made: Run, effects: Sequence[Effect] = ()) -> str:
    """Why there is nothing to judge by."""
    failed = [f"{r.benchmark.name}: {why(r)}" for r in made.results if r.status is not Status.OK]
    undecided = (e for e in effects if e.interval is None and not e.beside)
    told = failed[:3] or [str(text) for e in undecided for text in (*e.doubts, e.advice) if text][:2]
    return f"nothing could be compared: {'; '.join(told) or 'too few launches'} (run {made.id})"
