"""Profiled launches of both sides of a comparison: a run of their own, so that they never mix with the timed ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchwright.app.run import RunOrder, run
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import BenchwrightError, CannotMeasure, InvalidInput
from benchwright.core.inputs.specification import CONTROL, TREATMENT
from benchwright.core.run import Result, Run, why
from benchwright.core.status import Status
from benchwright.executors.observer import Observer
from benchwright.kinds.base import Resolved
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options
from benchwright.regress.explain import Profiled
from benchwright.regress.explain_functions import with_functions
from benchwright.regress.explain_operators import has_operators
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

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
    def run_name(self) -> str:
        """The same for the same two benchmarks: their profile is found by it."""
        parts = (*(each.unique_id or each.id for each in self.runs), self.control, self.treatment)
        return _NAME + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def folder(self, side: str) -> Path:
        """For profiles of Python functions."""
        return self.base.path / "profiles" / self.run_name / side

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
            name=order.run_name,
            labels={OF_CONTROL: order.runs[0].id, OF_TREATMENT: order.runs[1].id},
            resolved=Resolved(benchmarks=benchmarks, options=_settings(order), name=order.run_name),
        ),
        observer,
    )
    found = _profiled(order, made)
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
    for path in sorted(order.base.runs.glob(f"{order.run_name}.*"), reverse=True):
        try:
            found = _profiled(order, read_run(RunFolder(path), kind_of))
        except BenchwrightError:
            continue
        if found is not None:
            return found
    return None


def _profiled(order: ProfileOrder, made: Run) -> Profiled | None:
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
    """Those of the treatment's run, with a few launches by turns."""
    options = RunFolder(Path(order.runs[1].folder)).read_plan().options
    return replace(
        options, repeat=order.launches, enough=None, decision=None, warmup_runs=0, interleave=True, turns=None
    )
