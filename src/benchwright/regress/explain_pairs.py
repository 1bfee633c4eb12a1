"""Explains what a comparison found: chooses the pairs, profiles them on request, and collects their differences."""

from __future__ import annotations

import hashlib
import os
import pstats
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchwright.analysis.comparison.compare import compare, compare_interleaved
from benchwright.analysis.comparison.differences import differences
from benchwright.analysis.comparison.not_compared import matched
from benchwright.analysis.operator_times import OP_TIME, OTHER, has_operators
from benchwright.core.benchmark import REVISION, Benchmark
from benchwright.core.comparison import Comparison, Difference, Verdict
from benchwright.core.errors import BenchwrightError, CannotMeasure, InvalidInput
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.revision import CONTROL, TREATMENT
from benchwright.core.run import Launch, Result, Run, why
from benchwright.core.status import Status
from benchwright.executors.observer import Observer
from benchwright.kinds.base import Resolved
from benchwright.kinds.function_profile import ENDING
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options
from benchwright.regress.explain import Explanation, Profiled, RevisionsBetween, explain, profile_in
from benchwright.regress.repository import GitRepository
from benchwright.results.compare import compare_commands, compare_runs
from benchwright.results.kept_runs import Results
from benchwright.runner.run import RunOrder, run
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

# Profiles of Python functions, as cProfile writes them: each launch with the own time of its functions.


_MOST = 40  # functions of a launch; the others are summed
_LIBRARY = re.compile(r".*/(?:site-packages|lib/python[0-9.]+)/")
_BUILT_IN = re.compile(r"<(?:built-in method |method ')?(.*?)'?(?: of '(.*)' objects)?>")


def with_functions(result: Result, folder: Path, root: str) -> Result | None:
    """`result` with the profiles in `folder` for its launches; None unless there is one for each. `root`: paths are shown
    relative to it."""
    launches = [launch for path in sorted(folder.glob(f"*{ENDING}")) if (launch := _launch(path, root)) is not None]
    return replace(result, launches=tuple(launches)) if 0 < len(launches) == len(result.counted) else None


def _launch(path: Path, root: str) -> Launch | None:
    """None for a file that its program could not finish."""
    try:
        stats = pstats.Stats(str(path)).stats  # type: ignore[attr-defined]  # which is all that it documents of the file
    except (OSError, ValueError, EOFError, TypeError):
        return None
    times: dict[str, tuple[float, int]] = {}
    for (file, _, function), (_, calls, own_s, _, _) in stats.items():
        name = _name(file, function, root)
        before = times.get(name, (0.0, 0))
        times[name] = (before[0] + own_s, before[1] + calls)
    ordered = sorted(times.items(), key=lambda each: (-each[1][0], each[0]))
    rest = sum(seconds for _, (seconds, _) in ordered[_MOST:])
    found = [_measured(name, seconds, str(calls)) for name, (seconds, calls) in ordered[:_MOST]]
    found += [_measured(OTHER, rest, "")] if len(ordered) > _MOST else []
    return Launch(job=path.stem, status=Status.OK, measurements=tuple(found))


def _measured(name: str, seconds: float, calls: str) -> Measurement:
    return Measurement(
        metric=OP_TIME,
        unit="s",
        direction=Direction.LOWER,
        samples=(seconds,),
        source="model",
        labels={"op": name, "calls": calls},
    )


def _name(file: str, function: str, root: str) -> str:
    """The same on both sides, whose folders differ, and after lines were moved: `pkg/module.py:function`."""
    if file == "~":
        found = _BUILT_IN.fullmatch(function)
        if found is None:
            return function
        return f"{found[2]}.{found[1]}" if found[2] else str(found[1])
    if found := _LIBRARY.match(file):
        return f"{file[found.end() :]}:{function}"
    inner = os.path.relpath(file, root) if os.path.isabs(file) else file
    return f"{os.path.basename(file) if inner.startswith('..') else inner}:{function}"


# Profiled launches of both sides of a comparison: a run of their own, so that they never mix with the timed ones.


_NAME = "profile-"
OF_CONTROL, OF_TREATMENT = "profile of control", "profile of treatment"  # labels of a run: whose launches it profiled


class ProfileOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The benchmarks `control` and `treatment` of two runs, which may be the same one."""

    runs: tuple[Run, Run]
    control: str
    treatment: str
    name: str
    base: BaseFolder
    store: str | None = None
    launches: int = 3

    @property
    def profile_name(self) -> str:
        """The same for the same two benchmarks: their profile is found by it."""
        parts = (*(each.unique_id or each.id for each in self.runs), self.control, self.treatment)
        return _NAME + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def folder(self, side: str) -> Path:
        """For profiles of Python functions."""
        return self.base.path / "profiles" / self.profile_name / side

    @property
    def is_possible(self) -> bool:
        """Whether both sides can be launched again, with something to profile."""
        try:
            return bool(_benchmarks(self))
        except BenchwrightError:
            return False


def profile_sides(order: ProfileOrder, observer: Observer) -> Profiled:
    """Launches both sides by turns, profiled. InvalidInput if that cannot be done, CannotMeasure if it failed."""
    benchmarks = _benchmarks(order)
    if not benchmarks:
        raise InvalidInput(
            f"{order.name} has no operators or Python functions to profile",
            where="--profile",
            remedy="leave it out; models, and commands that start with python, can be profiled",
        )
    _clear(order)
    made = run(
        RunOrder(
            options=Options(store=order.store),
            base=order.base,
            name=order.profile_name,
            labels={OF_CONTROL: order.runs[0].id, OF_TREATMENT: order.runs[1].id},
            resolved=Resolved(benchmarks=benchmarks, options=_settings(order), name=order.profile_name),
        ),
        observer,
    )
    found = _profile_of(order, made)
    if found is None:
        _clear(order)
        bad = [why(launch) for r in made.results for launch in r.launches if launch.status is not Status.OK]
        failed = bad[0] if bad else "they reported no operators"
        raise CannotMeasure(f"the profiled launches failed: {failed}; see 'benchwright show {made.id}'")
    return found


def _clear(order: ProfileOrder) -> None:
    """No profile of other launches may be taken for one of these."""
    for side in (CONTROL, TREATMENT):
        folder = order.folder(side)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for earlier in folder.iterdir():
            earlier.unlink()


def known_profile(order: ProfileOrder) -> Profiled | None:
    """The newest profile that was made of these two; None if there is none, or it failed."""
    for path in sorted(order.base.runs.glob(f"{order.profile_name}.*"), reverse=True):
        try:
            found = _profile_of(order, read_run(RunFolder(path), kind_of))
        except BenchwrightError:
            continue
        if found is not None:
            return found
    return None


def _profile_of(order: ProfileOrder, made: Run) -> Profiled | None:
    sides: dict[str, Result] = {r.benchmark.side: r for r in made.results if r.benchmark.side}
    control, treatment = sides.get(CONTROL), sides.get(TREATMENT)
    if control is None or treatment is None:
        return None
    if has_operators(control) and has_operators(treatment):
        return Profiled(control, treatment, made.id)
    if any(len(r.counted) < len(r.launches) for r in (control, treatment)):
        return None  # a launch that failed leaves a profile, too, of half its work
    functions = [with_functions(r, order.folder(side), r.benchmark.workload.cwd) for side, r in sides.items()]
    if len(functions) < 2 or functions[0] is None or functions[1] is None:
        return None
    by_side = dict(zip(sides, functions, strict=True))
    old, new = by_side[CONTROL], by_side[TREATMENT]
    return None if old is None or new is None else Profiled(old, new, made.id, "launch")


def _benchmarks(order: ProfileOrder) -> tuple[Benchmark, ...]:
    """Both sides as they were planned; nothing if one has nothing to profile."""
    found = []
    for side, each, name in zip((CONTROL, TREATMENT), order.runs, (order.control, order.treatment), strict=True):
        plan = RunFolder(Path(each.folder)).read_plan()
        if plan.left_out:
            what = f"{each.id} cannot be launched again: {', '.join(plan.left_out)}: secrets are not stored"
            raise InvalidInput(what, where="--profile", remedy="measure again with --profile")
        benchmark = next((b for b in plan.benchmarks if b.name == name), None)
        profiled = None if benchmark is None else kind_of(benchmark).profiled(benchmark, str(order.folder(side)))
        if profiled is None:
            return ()
        revision = profiled.labels.get("revision", each.id)
        found.append(replace(profiled, name=order.name, launches=1).on_side(side, revision))
    return tuple(found)


def _settings(order: ProfileOrder) -> Options:
    """Options of the treatment's run, with a few launches by turns."""
    return RunFolder(Path(order.runs[1].folder)).read_plan().options.launched(order.launches, interleave=True)


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
    """The named runs; for a run of profiled launches, such as the last one, the runs it was made for."""
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
        for before, after in matched(control.results, treatment.results)[0]
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
    """Of the machine, the settings and the packages. The two sides of one run share all but the intended change."""
    before, after = (_alone(run, result) for run, result in zip(pair.runs, (pair.control, pair.treatment), strict=True))
    found = [d for d in differences(before, after) if _of_both_places(pair, d.control) != d.treatment]
    both = f"{pair.control.benchmark.name} → {pair.treatment.benchmark.name}: "
    return tuple(msgspec.structs.replace(d, what=d.what.removeprefix(both)) for d in found)


def _of_both_places(pair: _Pair, text: str) -> str:
    """Each side of an A/B may have its own folder and environment, which explains nothing."""
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
