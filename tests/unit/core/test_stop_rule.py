"""Stop rules and warm-ups as options, suites and the Python API write them."""

from __future__ import annotations

import pickle

import pytest

from benchprobe.rules.stop_rules import stop_rule
from benchwright.core.decision import Decision
from benchwright.core.stop_rule import (
    VERDICT_S,
    StopRule,
    Warmup,
    WrongRule,
    parse_repeat,
    parse_stop_rule,
    parse_warmup,
    probe_settings,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("100", StopRule(steps=100)),
        (100, StopRule(steps=100)),
        ("100 steps", StopRule(steps=100)),
        ("30s", StopRule(seconds=30.0)),
        (" 2m ", StopRule(seconds=120.0)),
        ("0.5%", StopRule(precision=0.005)),
        ({"steps": 3, "seconds": None}, StopRule(steps=3)),
        ({"seconds": 90}, StopRule(seconds=90.0)),
        ({"precision": 0.05}, StopRule(precision=0.05)),
        ({"observations": 4, "interval": "500ms"}, StopRule(observations=4, interval_s=0.5)),
    ],
)
def test_a_stop_rule_has_one_meaning_however_it_is_written(value: object, expected: StopRule) -> None:
    assert parse_stop_rule(value) == expected


@pytest.mark.parametrize(
    ("value", "message", "key"),
    [
        ("soon", "'soon' is not a stop rule; write 100 (steps), 30s (seconds), 1% (precision) or never", None),
        ("0", "0 steps are too few; write 1 or more", None),
        ("0s", "'0s' is not a stop rule", None),
        ("200%", "'200%' is not a percentage; write 1% or 0.5%", None),
        (True, "'True' is not a stop rule", None),
        ({}, "the map is empty; give one of steps, seconds, observations, precision", None),
        ({"steps": 1, "precision": "1%"}, "steps and precision exclude each other", None),
        ({"steps": "x"}, "steps is 'x', not a whole number; write 1 or more", "steps"),
        ({"seconds": "-1"}, "seconds is '-1', not a duration; write 600 (seconds), 90s, 10m or 2h", "seconds"),
        ({"precision": 2}, "'2' is not a percentage", "precision"),
        ({"steps": 3, "interval": "1s"}, "steps cannot have an interval; only observations can", "interval"),
    ],
)
def test_what_is_no_stop_rule_is_explained(value: object, message: str, key: str | None) -> None:
    with pytest.raises(WrongRule) as caught:
        parse_stop_rule(value)
    assert f"--stop: {message}" in str(caught.value)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("auto", Warmup()),
        (0, Warmup(steps=0)),
        ("20steps", Warmup(steps=20)),
        ("5s", Warmup(seconds=5.0)),
        ({"seconds": "1.5s"}, Warmup(seconds=1.5)),
    ],
)
def test_a_warm_up_has_one_meaning_however_it_is_written(value: object, expected: Warmup) -> None:
    assert parse_warmup(value) == expected


def test_what_is_no_warm_up_is_explained() -> None:
    with pytest.raises(WrongRule, match="--warmup: 'soon' is not a warm-up; write auto, 20"):
        parse_warmup("soon")


def test_launches_until_a_verdict_have_a_limit() -> None:
    assert parse_repeat("verdict") == Decision(budget_s=VERDICT_S)
    assert parse_repeat("verdict:30m") == Decision(budget_s=1800)
    for wrong in ("verdict:", "verdict:soon", "verdict:0s", "verdicts"):
        with pytest.raises(WrongRule, match="--repeat"):
            parse_repeat(wrong)


@pytest.mark.parametrize("stop", [StopRule(steps=5), StopRule(seconds=2.0), StopRule(precision=0.01, max_seconds=10.0)])
def test_a_rule_that_went_to_another_process_tells_the_probe_the_same(stop: StopRule) -> None:
    """Of several devices or nodes, each has a process."""
    warmup = Warmup(steps=2)
    settings = probe_settings(stop, warmup, "train")
    assert probe_settings(*pickle.loads(pickle.dumps((stop, warmup))), "train") == settings
    assert settings["warmup"] == {"steps": 2}
    assert stop_rule(settings["stop"]) is not None  # type: ignore[arg-type]
