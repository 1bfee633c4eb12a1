"""How far a model got on a runtime, and why no further."""

from __future__ import annotations

import re
from typing import NamedTuple

from benchwright.core.model import DEFAULT_RUNTIME, PRECISIONS
from benchwright.core.run import Launch, Result, culprit
from benchwright.core.status import Reason, Status
from benchwright.kinds.models.benchmarks import BEFORE_A_MODEL
from benchwright.kinds.models.report.facts import checked
from benchwright.kinds.models.report.fields import NOT_MEASURED
from benchwright.kinds.models.report.rows import ModelRow
from benchwright.kinds.models.report.speedup import MARGIN
from benchwright.kinds.models.time_breakdown import (
    AFTER_A_STEP,
    AFTER_CHECK,
    BUILDING,
    CHECKING,
    LOADING,
    MEASURED_CALLS,
)

# What a model passes on its way, in this order.
FOUND, BUILT, EXPORTED, COMPILED, RAN, CORRECT, FASTER = STAGES = (
    *("found", "built", "exported", "compiled", "ran", "correct"),
    "faster",
)
ONLY_BUILT = "built"  # a status of our own, beside those of results
# What a failure in a stage of benchmodels keeps a model from.
_KEPT_FROM = {
    **dict.fromkeys(("script", "capture", "build"), BUILT),
    "export": EXPORTED,
    **dict.fromkeys(("optimise", "convert", "compile"), COMPILED),
    **dict.fromkeys(("load", "first_run", "run"), RAN),
    "check": CORRECT,
}
# The same by the stage in which a launch that reported nothing ended or crashed.
_ENDED_IN = {
    **_KEPT_FROM,
    BUILDING: BUILT,
    "reference": EXPORTED,
    **dict.fromkeys((LOADING, AFTER_A_STEP, MEASURED_CALLS), RAN),
    **dict.fromkeys((CHECKING, AFTER_CHECK), CORRECT),
}
_LAST_PART = re.compile(r"(?:[(,] ?|in: )([a-z ]+?)(?: [\d.e+]+ s\))?$")
BY_VALUES = "the model's Python code reads values of its tensors"  # as benchmodels says it of an export
WRONG = "wrong outputs"
_LONGEST = 160
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_PLACES = re.compile(r"(?:/[\w.+-]+){2,}/?|\b0x[0-9a-f]+\b")
_CLASSES = re.compile(r"\b[A-Z]\w+(?= (?:needs|takes|has|is) )")
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


class ModelEnding(NamedTuple):
    """`passed`: how many of the stages. `kept_from`: the stage it did not reach, None if it passed all that there are.
    `cause`: in words that are the same for models with the same trouble; `detail`: in its own words."""

    passed: int
    kept_from: str | None = None
    cause: str = ""
    detail: str = ""
    status: str = Status.OK.value

    @property
    def waiting(self) -> bool:
        """It has not been measured yet, so it counts neither for nor against its runtime."""
        return self.status in (Status.PENDING.value, Status.INTERRUPTED.value, ONLY_BUILT)


def ending_of(row: ModelRow) -> ModelEnding:
    result = row.result
    if result.benchmark.withheld is not None:
        return _kept(BUILT, f"not measured: {result.benchmark.withheld}", result)
    if result.status in (Status.PENDING, Status.INTERRUPTED):
        return _kept(BUILT, "not measured yet", result)
    if result.status is Status.SKIPPED:
        return _kept(BUILT, f"skipped: {result.detail or 'no reason given'}", result)
    if result.status is Status.FAILED:
        return _failed(row)
    if row.model.stops_after:
        return _kept(RAN, NOT_MEASURED, result)._replace(status=ONLY_BUILT)
    return _measured(row)


def ending_of_script(result: Result) -> ModelEnding:
    """Of a script in which no model was found."""
    if result.status is Status.OK:
        return _kept(FOUND, "no model was found in it", result)
    text = (result.detail or "").removesuffix(BEFORE_A_MODEL)
    return _kept(FOUND, text or (result.reason.words if result.reason else "it failed"), result)


def _failed(row: ModelRow) -> ModelEnding:
    result = row.result
    bad = culprit(result.launches)
    failure = {} if bad is None else bad.facts.get("failure") or {}
    if result.reason is Reason.INVALID and not failure:
        found = checked(result)
        detail = found.detail if found else result.detail or ""
        return _kept(CORRECT, f"{WRONG}: {detail}", result, cause=WRONG)
    stage = _KEPT_FROM.get(str(failure.get("stage")), _last_seen(bad, result.detail))
    if row.model.zoo and failure.get("stage") == "load" and _last_seen(bad, result.detail) == BUILT:
        stage = BUILT  # the zoo could not make it
    text = str(failure.get("text") or result.detail or "it failed").removeprefix(f"in {failure.get('stage')}: ")
    if operator := failure.get("operator"):
        text = f"unsupported operator {operator}" + ("" if str(operator) in text else f": {text}")
        return _kept(stage, text, result, cause=f"unsupported operator {operator}")
    if result.reason is Reason.TIMED_OUT and not failure:  # the rest is what the time went into
        text = f"{result.reason.words}: {text}"
        return _kept(stage, text, result, cause=cause_words(text.partition(" (")[0]))
    if text.startswith(BY_VALUES):
        return _kept(stage, text, result, cause=BY_VALUES)
    reason = result.reason.words if result.reason else ""
    return _kept(stage, text if failure or not reason else f"{reason}: {text}", result)


def _last_seen(launch: Launch | None, detail: str | None) -> str:
    """The last known stage of a process that reported no failure."""
    if (part := _LAST_PART.search(detail or "")) is not None and part[1] in _ENDED_IN:
        return _ENDED_IN[part[1]]
    if launch is None:
        return BUILT
    if launch.facts.get("runtime") or launch.facts.get("build"):
        return RAN
    return BUILT


def _measured(row: ModelRow) -> ModelEnding:
    result, found = row.result, checked(row.result)
    if found is None or not found.claimed:
        why = found.detail if found is not None else "its outputs were not checked"
        return _kept(CORRECT, f"outputs not judged: {why}", result)
    if (row.model.runtime, row.model.precision) == (DEFAULT_RUNTIME, PRECISIONS[0]):
        return ModelEnding(passed=STAGES.index(FASTER))
    if row.speedup is None:
        return _kept(FASTER, "not compared: no right result of eager in the same run", result)
    if row.speedup_doubt is not None:
        return _kept(FASTER, f"not compared: {row.speedup_doubt.text}", result)
    if row.speedup <= 1 + MARGIN:
        slower = row.speedup < 1 - MARGIN
        cause = "slower than eager" if slower else f"as fast as eager, within {MARGIN * 100:g} %"
        return _kept(FASTER, f"{row.speedup:.2f} × eager's speed", result, cause=cause)
    return ModelEnding(passed=len(STAGES))


def _kept(stage: str, text: str, result: Result, *, cause: str | None = None) -> ModelEnding:
    return ModelEnding(
        STAGES.index(stage), stage, cause or cause_words(text), " ".join(text.split()), result.status.value
    )


def cause_words(text: str) -> str:
    """The first line without what differs from model to model: names in quotes, paths, classes that need or take something, numbers."""
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    line = _NUMBERS.sub("N", _PLACES.sub("…", _CLASSES.sub("…", _QUOTED.sub("'…'", line))))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
