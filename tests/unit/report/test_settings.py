"""How something was set up, in words."""

from __future__ import annotations

import pytest

from benchwright.core.benchmark import Placement
from benchwright.core.stop_rule import StopRule, Warmup
from benchwright.options.table import Options
from benchwright.report.text.settings import placement_words, settings_rows, stop_words, warmup_words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (None, "runs to its end"),
        (StopRule(steps=100), "after 100 measured steps"),
        (StopRule(seconds=30), "after 30 s of measuring"),
        (StopRule(observations=5, interval_s=2), "after 5 rates, each over 2 s"),
        (
            StopRule(precision=0.01, max_seconds=60),
            "when the median is known within ± 1 %, after 30 steps or more, 60 s at most",
        ),
    ],
)
def test_a_stop_rule(rule: StopRule | None, words: str) -> None:
    assert stop_words(rule) == words


def test_a_warm_up() -> None:
    assert warmup_words(Warmup(steps=20)) == "20 steps"
    assert warmup_words(Warmup()).startswith("detected, ")


def test_a_placement() -> None:
    assert placement_words(Placement()) == ""
    assert placement_words(Placement(per_device=True, needs_devices=1)) == "one process on each device, needs 1 device"
    assert placement_words(Placement(jobs=4, cores=(0, 2))) == "4 processes side by side, pinned to cores 0, 2"


def test_the_settings_of_a_run_are_what_was_asked_for() -> None:
    rows = dict(settings_rows(Options(repeat=6, interleave=True)))
    assert rows["Launches of each"] == "6"
    assert rows["Order"] == "launches of all benchmarks alternate"
    assert "Warm-up launches" not in rows
