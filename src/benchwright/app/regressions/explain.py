"""Explains what a comparison found: chooses the pairs, profiles them on request, and collects their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from benchwright.analysis.comparison.compare import compare, compare_interleaved
from benchwright.analysis.comparison.differences import differences
from benchwright.analysis.comparison.not_compared import matched
from benchwright.app.regressions.profiles import OF_CONTROL, OF_TREATMENT, ProfileOrder, known_profile, profile_sides
from benchwright.app.results.compare import compare_commands, compare_runs
from benchwright.app.results.kept_runs import Results
from benchwright.core.benchmark import REVISION
from benchwright.core.errors import BenchwrightError, CannotMeasure, InvalidInput
from benchwright.core.results.comparison import Comparison, Difference, Verdict
from benchwright.core.run import Result, Run
from benchwright.executors.observer import Observer
from benchwright.regress.explain import Explanation, Profiled, RevisionsBetween, explain, profile_in
from benchwright.regress.repository import GitRepository
from benchwright.runs.base_folder import BaseFolder

_FEW = 3  # pairs that are explained although none regressed
_MOST_COMMITS = 12
_COMMIT = "commit"  # a label: the whole hash of a side's commit


class ExplainOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One run with two sides, or a control and a treatment. `profile`: make profiled launches of both sides."""

    runs: tuple[Run, ...]
    base: BaseFolder
    store: str | None = None
    between: tuple[str, str] | None = None
    margin: float = 0.02
    every: bool = False  # all pairs, not only those that regressed
    anyway: bool = False  # runs of different machines, too
    profile: bool = False
    profile_or_fail: bool = True  # an error if it cannot be profiled; else it is explained without
    launches: int = 3  # profiled ones of each side


class _Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two results, the comparison with the verdict on them, and one of all their metrics."""

    name: str
    verdict: Comparison
    every: Comparison
    runs: tuple[Run, Run]
    control: Result
    treatment: Result

    @property
    def regressed(self) -> bool:
        own = [e for e in self.verdict.effects if e.benchmark == self.control.benchmark.name]
        return any(effect.verdict is Verdict.REGRESSED for effect in own)


def runs_to_explain(words: Sequence[str], results: Results) -> tuple[Run, ...]:
    """Those named; for a run of profiled launches, such as the last one, those it was made for."""
    found = tuple(results.run(word) for word in words)
    if len(found) == 1 and OF_CONTROL in found[0].labels and OF_TREATMENT in found[0].labels:
        names = dict.fromkeys((found[0].labels[OF_CONTROL], found[0].labels[OF_TREATMENT]))
        return tuple(results.run(name) for name in names)
    return found


def explanations(order: ExplainOrder, observer: Observer | None = None) -> list[Explanation]:
    """Of each pair that regressed; of all, if `every`, or if none did and there are few."""
    observer = observer or Observer()
    pairs = _pairs(order)
    regressed = [pair for pair in pairs if pair.regressed]
    chosen = pairs if order.every or (not regressed and len(pairs) <= _FEW) else regressed
    return [_explained(pair, order, observer) for pair in chosen]


def _pairs(order: ExplainOrder) -> list[_Pair]:
    if len(order.runs) == 2:
        return _pairs_of_runs(order)
    run = order.runs[0]
    if order.between is not None:
        found = compare_runs(
            [run], between=order.between, margin=order.margin, metrics=(), all_metrics=False, anyway=order.anyway
        )
    else:
        found = compare_commands(run)
    if not found:
        remedy = "name the run to compare it with, or make an A/B: benchwright ab --control main TARGET"
        raise InvalidInput(f"{run.id} has no two sides to compare", where="explain", remedy=remedy)
    return [_pair_of(run, comparison) for comparison in found]


def _pair_of(run: Run, verdict: Comparison) -> _Pair:
    control, treatment = run.result(verdict.control), run.result(verdict.treatment)
    every = _with_all_metrics(run, verdict)
    same = control.benchmark.pair and control.benchmark.pair == treatment.benchmark.pair
    name = control.benchmark.pair if same else f"{verdict.treatment} vs {verdict.control}"
    return _Pair(name=name, verdict=verdict, every=every, runs=(run, run), control=control, treatment=treatment)


def _with_all_metrics(run: Run, verdict: Comparison) -> Comparison:
    """All that both sides measured, by the rule of the run; what has a verdict already keeps it."""
    both = verdict.control, verdict.treatment
    if run.decision is None:
        return compare_interleaved(run, *both, margin=verdict.margin)
    (every,) = compare_runs([run], between=both, margin=None, metrics=(), all_metrics=True, anyway=True)
    known = {(e.metric, *sorted(e.labels.items())): e for e in verdict.effects}
    effects = tuple(known.get((e.metric, *sorted(e.labels.items())), e) for e in every.effects)
    return msgspec.structs.replace(every, effects=effects)


def _pairs_of_runs(order: ExplainOrder) -> list[_Pair]:
    control, treatment = order.runs
    (verdict,) = compare_runs(
        order.runs, between=None, margin=order.margin, metrics=(), all_metrics=False, anyway=order.anyway
    )
    every = compare(control, treatment, margin=order.margin)
    return [
        _Pair(
            name=before.benchmark.name,
            verdict=verdict,
            every=every,
            runs=(control, treatment),
            control=before,
            treatment=after,
        )
        for before, after in matched(control, treatment)[0]
        if any(effect.benchmark == before.benchmark.name for effect in verdict.effects)
    ]


def _explained(pair: _Pair, order: ExplainOrder, observer: Observer) -> Explanation:
    profiled, advice = _profiled(pair, order, observer)
    return explain(
        pair.verdict,
        pair.every,
        pair.control,
        pair.treatment,
        name=pair.name,
        profiled=profiled,
        differences=_differences(pair),
        revisions=_revisions(pair),
        advice=advice,
    )


def _profiled(pair: _Pair, order: ExplainOrder, observer: Observer) -> tuple[Profiled | None, tuple[str, ...]]:
    """Launches that are profiled now, or were: on purpose, or in the same runs. Else how to get them."""
    wanted = ProfileOrder(
        runs=pair.runs,
        control=pair.control.benchmark.name,
        treatment=pair.treatment.benchmark.name,
        name=pair.name,
        base=order.base,
        store=order.store,
        launches=order.launches,
    )
    if not pair.control.counted or not pair.treatment.counted:
        return None, ()
    if order.profile and (order.profile_or_fail or wanted.is_possible):
        try:
            return profile_sides(wanted, observer), ()
        except CannotMeasure as error:
            if order.profile_or_fail:
                raise
            observer.on_trouble(f"{pair.name} is explained without operators: {error}")
            return None, ()
    if (known := known_profile(wanted)) is not None:
        return known, ()
    sides = [
        profile_in(result, run.results) for result, run in zip((pair.control, pair.treatment), pair.runs, strict=True)
    ]
    if sides[0] is not None and sides[1] is not None:
        return Profiled(sides[0], sides[1], pair.runs[1].id), ()
    how = "The same command with --profile launches both sides again, and shows which operators or Python functions changed."
    return None, (how,) if wanted.is_possible else ()


def _differences(pair: _Pair) -> tuple[Difference, ...]:
    """Of the machine, the settings and the packages. The two sides of one run share all but what they were told to differ in."""
    before, after = (_alone(run, result) for run, result in zip(pair.runs, (pair.control, pair.treatment), strict=True))
    found = [d for d in differences(before, after) if _of_both_places(pair, d.control) != d.treatment]
    both = f"{pair.control.benchmark.name} → {pair.treatment.benchmark.name}: "
    return tuple(msgspec.structs.replace(d, what=d.what.removeprefix(both)) for d in found)


def _of_both_places(pair: _Pair, text: str) -> str:
    """Each side of an A/B may have a folder and an environment of its own, which explains nothing."""
    old, new = pair.control.benchmark, pair.treatment.benchmark
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        before, after = old.env.get(name), new.env.get(name)
        text = text.replace(before, after) if before and after else text
    return text.replace(old.workload.cwd, new.workload.cwd)


def _alone(run: Run, result: Result) -> Run:
    """The run as if it had measured nothing else, with the packages of the interpreter that the result used."""
    python = next((launch.facts.get("python") for launch in result.counted if launch.facts.get("python")), None)
    packages: Mapping[str, Mapping[str, str]] = run.packages
    if isinstance(python, Mapping):
        own = {key: found for key, found in packages.items() if key in (python.get("prefix"), python.get("executable"))}
        packages = own or packages
    return msgspec.structs.replace(run, results=(result,), packages=dict(packages))


def _revisions(pair: _Pair) -> RevisionsBetween | None:
    """With the commits in between, where both are commits of a repository that is still there."""
    labels = pair.control.benchmark.labels, pair.treatment.benchmark.labels
    old, new = (each.get(REVISION, "") for each in labels)
    if old and new:
        commits = [each.get(_COMMIT, "") for each in labels]
        return None if old == new else _between(pair.treatment.benchmark.workload.cwd, (old, new), commits)
    before = {revision.root: revision for revision in pair.runs[0].revisions}
    for revision in pair.runs[1].revisions:
        earlier = before.get(revision.root)
        if earlier is not None and earlier.short != revision.short:
            return _between(revision.root, (earlier.words, revision.words), [earlier.commit, revision.commit])
    return None


def _between(folder: str, shown: tuple[str, str], commits: Sequence[str]) -> RevisionsBetween:
    if not all(commits):
        return RevisionsBetween(control=shown[0], treatment=shown[1])
    try:
        repository = GitRepository.open(folder)
        first, last = map(repository.commit, commits)
        found = repository.commits(first, last)
    except BenchwrightError:  # gone, or no git repository: the two revisions are known all the same
        return RevisionsBetween(control=shown[0], treatment=shown[1])
    newest = tuple(f"{commit.short} {commit.subject}" for commit in found[-_MOST_COMMITS:])
    return RevisionsBetween(control=shown[0], treatment=shown[1], commits=newest, total=len(found))
