"""Facts from the launches of a model besides numbers: its check, its build, why it failed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from benchwright.core.benchmark import Command
from benchwright.core.model import Model, ModelScript
from benchwright.core.run import Launch, Result, culprit

USUAL_REFERENCE = "float64 eager"
NOTHING_CLAIMED = "nothing is claimed"  # in the text of a check that could not judge
_NO_BUILD = ("load", "reference", "verify", "capture", "script")  # steps that are not part of a build


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the outputs are right, over all launches: the worst counts. Not `claimed`: not judged."""

    ok: bool
    claimed: bool
    error: float | None  # relative L2
    equal: float | None  # share of equal ones among whole numbers
    reference: str | None
    detail: str


def is_model(result: Result) -> bool:
    return isinstance(result.benchmark.workload, Model)


def is_plain_script(result: Result) -> bool:
    """A script without a model: none was found in it, it failed before, or it is not Python and was run whole."""
    path = result.benchmark.source.partition("::")[0]
    return isinstance(result.benchmark.workload, Command | ModelScript) and path.endswith((".py", ".ipynb"))


def says_why(result: Result) -> bool:
    """Whether the probe reported what went wrong, so that the log adds nothing."""
    bad = culprit(result.launches)
    if bad is None:
        return True
    stage = (bad.facts.get("failure") or {}).get("stage")
    return stage not in (None, "script") or bool(bad.facts.get("check"))


def fact(result: Result, name: str) -> Any:
    """The launches' report of this name: from the first counted launch that has one, else from any."""
    return next((x.facts[name] for x in _launches(result) if x.facts.get(name)), None)


def checked(result: Result) -> Checked | None:
    """None if no launch checked its outputs against a reference."""
    found = [x.facts["check"] for x in (result.counted or result.launches) if x.facts.get("check")]
    if not found:
        return None
    errors, equals = _figures(found, "relative_l2"), _figures(found, "equal")
    unclaimed = next((c for c in found if not _claims(c)), found[0])
    worst = next((c for c in found if not c.get("ok")), unclaimed)
    figures = worst.get("figures") or {}
    return Checked(
        ok=all(c.get("ok") for c in found),
        claimed=all(map(_claims, found)),
        error=next((e for e in errors if not math.isfinite(e)), max(errors)) if errors else None,
        equal=min(equals, default=None),
        reference=figures.get("reference"),
        detail=str(worst.get("detail") or ""),
    )


def _claims(check: dict[str, object]) -> bool:
    """Whether it found outputs right or wrong."""
    return not check.get("ok") or bool(check.get("claimed", True))


def _figures(checks: Iterable[dict[str, Any]], name: str) -> list[float]:
    figures = ((check.get("figures") or {}).get(name) for check in checks)
    return [float(value) for value in figures if isinstance(value, int | float)]


def build_seconds(launches: Sequence[Launch]) -> float | None:
    """Seconds of the build steps: the median of the launches that built; 0: the build was cached; None: nothing to build."""
    steps = [_steps(launch) for launch in launches]
    took = [math.fsum(each) for each in (_done(of_launch) for of_launch in steps) if each]
    if took:
        return statistics.median(took)
    return 0.0 if any(steps) else None


def steps_done(launches: Sequence[Launch]) -> dict[str, float]:
    """Seconds of each step, in the first launch that built; empty if none did."""
    built = (s for s in (_steps(launch) for launch in launches) if _done(s))
    return {str(s.get("step")): float(s.get("seconds") or 0.0) for s in next(built, []) if not s.get("cached")}


def step_outcome(result: Result, *names: str) -> bool | None:
    """Whether a build step succeeded; None if there was none."""
    steps = [s for x in result.launches for s in x.facts.get("build") or () if s.get("step") in names]
    stages = [(x.facts.get("failure") or {}).get("stage") for x in result.launches]
    if any(stage in names for stage in stages):
        return False
    return all(s.get("ok", True) for s in steps) if steps else None


def _launches(result: Result) -> tuple[Launch, ...]:
    rest = tuple(x for x in result.launches if not x.warmup and x not in result.counted)
    return result.counted + rest


def _steps(launch: Launch) -> list[dict[str, Any]]:
    return [s for s in launch.facts.get("build") or () if s.get("step") not in _NO_BUILD]


def _done(steps: Iterable[dict[str, Any]]) -> list[float]:
    return [float(s.get("seconds") or 0.0) for s in steps if not s.get("cached") and s.get("ok", True)]
