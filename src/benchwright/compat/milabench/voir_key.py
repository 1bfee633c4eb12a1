"""The key `voir` of a suite's entry: its settings, and how much of the loop they measure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchwright.core.stop_rule import StopRule, Warmup, parse_stop_rule
from benchwright.kinds.suite.read.stop_rules import LoopRules, Wrong, parsed, seconds_of, whole_of
from benchwright.kinds.yaml.value_types import ANYTHING, DURATION, Either, Key, Table, count, number

_DEFAULT_INTERVAL = "1s"
VOIR = Table(
    "voir",
    {
        "options": Key(
            Table(
                "voir.options",
                {
                    "stop": Key(
                        Either(
                            (
                                count(0, "a number of observations"),
                                Table(
                                    "stop",
                                    {
                                        "steps": Key(count(1, "a number of steps"), "measured steps"),
                                        "seconds": Key(DURATION, "measured time"),
                                    },
                                ),
                            )
                        ),
                        "how many observations are measured; {steps: N} or {seconds: T} instead",
                    ),
                    "interval": Key(DURATION, 'how long one observation takes, such as "1s"; a number: so many steps'),
                    "skip": Key(number(says="a number of observations", example="0 or more", least=0), "warm-up"),
                    "gpu_poll": Key(
                        number(says="a number of seconds", example="0.5", least=0), "how often GPUs are looked at"
                    ),
                    "dash": Key(ANYTHING, "voir's own dashboard"),
                },
                open=True,
            ),
            "settings of the script's voirfile",
        )
    },
    open=True,
)


def loop_rules(options: Mapping[str, Any]) -> LoopRules:
    """From the options of voir; Wrong points at an invalid one."""
    at = ("voir", "options")
    given = options.get("interval")
    interval = _DEFAULT_INTERVAL if given is None else given
    in_steps = isinstance(interval, int | float) or str(interval).strip().isdecimal()
    each = whole_of(int(float(interval)), (*at, "interval"), 1) if in_steps else 1
    interval_s = 1.0 if in_steps else seconds_of(interval, (*at, "interval"))
    stop = options.get("stop")
    rule: StopRule | None = None
    notes: tuple[str, ...] = ()
    if isinstance(stop, dict):
        rule = parsed(parse_stop_rule, stop, (*at, "stop"))
    elif stop is not None and whole_of(stop, (*at, "stop"), 0) > 0:
        rule = StopRule(steps=stop * each) if in_steps else StopRule(observations=stop, interval_s=interval_s)
        if in_steps:
            notes = (f"{stop} observations of {each} steps are measured as {stop * each} steps",)
    return LoopRules(rule, _skipped(options.get("skip"), each, interval_s, in_steps), notes)


def _skipped(skip: object, each: int, interval_s: float, in_steps: bool) -> Warmup:
    """voir skips a number of observations."""
    if skip is None:
        return Warmup()
    at = ("voir", "options", "skip")
    if isinstance(skip, bool) or not isinstance(skip, int | float) or not 0 <= skip < float("inf"):
        raise Wrong(at, f"skip is '{skip}', not a number of observations", "write 0 or more")
    if in_steps or skip == 0:
        return Warmup(steps=int(skip * each))
    return Warmup(seconds=skip * interval_s)
