"""A suite's report: one line for each benchmark, failures stated, the score never without what it leaves out."""

from __future__ import annotations

import json
import re
from typing import Any

import builders
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from suite_runs import failed, launch, measured, on_devices, result, run

from benchwright.core.note import Note
from benchwright.core.run import Check, CheckStatus, Result
from benchwright.core.status import Reason, Status
from benchwright.report.registry import reporter_named
from benchwright.report.score_rule import SCORES
from benchwright.results.after_run import report_of
from benchwright.results.scores import Scoring

WARNING = Check(layer="plausibility", status=CheckStatus.WARNED, explanation="one rate is odd")
PASSING = Check(layer="error", status=CheckStatus.PASSED, explanation="the one launch ended with exit code 0")
SKIPPED = result("nodes", status=Status.SKIPPED, reason=Reason.LACKS_CAPABILITY, detail="needs 2 nodes, there is 1")


def text(*results: Result, format_: str = "screen", width: int = 80, **scoring: Any) -> str:
    return reporter_named(format_).render(report_of(run(*results), width=width, scoring=Scoring(**scoring)))


def body(*results: Result, **scoring: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text(*results, format_="json", **scoring))
    return found


def test_a_suite_has_a_table_failures_and_one_line_that_sums_it_up() -> None:
    shown = text(on_devices("resnet", (2900.0, 3100.0)), failed("llama", "exit code 3"), SKIPPED)
    lines = shown.splitlines()
    assert lines[0].split() == ["benchmark", "status", "rate", "overlap", "score"]
    assert lines[1].split() == ["resnet", "ok", "3,000.0", "items/s", "99.7", "%", "6,000.0"]
    assert lines[2].split(maxsplit=2) == ["llama", "FAILED", "crashed: exit code 3"]
    assert "needs 2 nodes, there is 1" in lines[3]
    assert lines[4] == " In every row: weight 1, devices 2."
    assert lines[-2] == " 1 of 3 failed · 1 skipped · score 6,000.0 over 1 of 3"


def test_what_is_no_suite_has_no_score_unless_it_is_asked_for() -> None:
    plain = msgspec.structs.replace(
        on_devices("a", (5.0,)),
        benchmark=msgspec.structs.replace(on_devices("a").benchmark, folder=None, kind="command"),
    )
    assert "score" not in text(plain)
    assert "score" not in body(plain)
    assert "score 5" in text(plain, rule="ours")


def test_the_log_of_a_failed_benchmark_and_warnings_follow_the_table() -> None:
    warned = msgspec.structs.replace(on_devices("a", (5.0,)), checks=(PASSING, WARNING))
    lines = text(warned, failed("bad")).splitlines()
    assert lines.index(" bad  FAILED crashed: exit code 1") < lines.index("   ⚠ plausibility: one rate is odd")


def test_nothing_that_succeeded_is_no_number() -> None:
    assert "1 of 1 failed · no score: no benchmark with a weight succeeded" in text(failed("a"))
    assert body(failed("a"))["score"]["value"] is None


def test_a_suite_without_rates_shows_its_metrics_instead_of_a_table_of_scores() -> None:
    took = result("a", builders.launch(measured("took", 0.25, unit="s", source="log"), job="a.0"))
    alone = text(took)
    assert "took               250 ms" in alone
    assert "score" not in alone
    assert "score" not in text(took, format_="markdown").lower()
    both = text(took, on_devices("b", (5.0,)))
    assert "took               250 ms" in both
    assert "1 without a rate · score 5" in both
    assert "missing" not in both
    assert "1 of 2 failed, " not in text(took, failed("c"))


def test_a_suite_whose_weights_are_on_what_has_no_rate_says_so() -> None:
    took = result("a", builders.launch(measured("took", 0.25, unit="s", source="log"), job="a.0"))
    assert "1 without a rate · no score: no benchmark with a weight has a rate" in text(
        took, on_devices("b", (5.0,), weight=0.0)
    )


def test_devices_are_shown_against_the_best_of_them_if_asked_for() -> None:
    both = on_devices("a", (50.0, 100.0))
    assert "50.0 %" not in text(both)
    lines = text(both, per_device=True).splitlines()
    assert ["benchmark", "D0", "D1"] in [line.split() for line in lines]
    assert ["a", "50.0", "%", "100.0", "%"] in [line.split() for line in lines]
    assert "no benchmark ran on several devices" in text(on_devices("a", (1.0,)), per_device=True)


def test_the_price_of_a_point_is_shown() -> None:
    assert "price 500, 5 per point" in text(on_devices("a", (100.0,)), price=500.0)


STEADY = on_devices("a", *((10.0 + n / 10,) for n in (3, 1, 4, 0, 5, 2)))


@pytest.mark.parametrize("format_", ["screen", "markdown", "csv", "json", "html"])
def test_the_score_of_a_suite_has_no_interval_and_says_why(format_: str) -> None:
    """One run cannot show the level that all its benchmarks share; a benchmark's own is over launches."""
    shown = " ".join(
        text(STEADY, format_=format_, rule="ours")
        .replace("&#39;", "'")
        .replace("No ±", "no ±")
        .replace("\\u00b1", "±")
        .split()
    )
    assert "no ± for the score: all benchmarks share the machine's state during this run" in shown
    assert "no ± for the score" not in text(on_devices("a", (10.0,)), format_=format_, rule="ours")


@pytest.mark.parametrize("format_", ["screen", "markdown", "json", "html"])
def test_scores_of_separate_runs_are_compared_with_their_doubts(format_: str) -> None:
    note = Note(text="ran while the machine was busy", kind="busy")
    busy = msgspec.structs.replace(
        STEADY, launches=tuple(msgspec.structs.replace(x, notes=(note,)) for x in STEADY.launches)
    )
    shown = " ".join(text(busy, format_=format_, against=run(STEADY)).replace("\\u00b1", "±").split())
    assert "a: 6 of 6 launches ran while the machine was busy" in shown
    assert "no ± for ratios of separate runs" in shown


def test_another_runs_scores_are_set_beside() -> None:
    before = msgspec.structs.replace(run(on_devices("a", (50.0,)), on_devices("gone", (1.0,))), id="old.1")
    shown = text(on_devices("a", (100.0,)), against=before)
    assert " against old.1:" in shown
    assert ["a", "50", "100", "2.000"] in [line.split() for line in shown.splitlines()]
    assert "without gone: no score in the same unit in both runs" in shown
    assert body(on_devices("a", (100.0,)), against=before)["compared"]["score"]["ratio"] == pytest.approx(2.0)


def test_json_has_scores_weights_devices_and_checks() -> None:
    checked = msgspec.structs.replace(on_devices("a", (50.0, 100.0), weight=2.0), checks=(PASSING,))
    found = body(checked, failed("b"))
    (first, second) = found["score"]["benchmarks"]
    assert (first["score"], first["weight"], first["median"]) == (150.0, 2.0, 75.0)
    assert first["per_device"][0] == {"name": "D0", "value": 50.0, "relative": 0.5}
    assert (second["score"], second["why_none"]) == (None, "crashed: exit code 1")
    assert (found["score"]["expected"], found["score"]["failure_rate"]) == (2, 0.5)
    assert found["results"][0]["weight"] == 2.0
    assert found["results"][0]["checks"] == [
        {"layer": "error", "status": "passed", "explanation": "the one launch ended with exit code 0"}
    ]


def test_markdown_and_csv_have_the_score_too() -> None:
    shown = text(on_devices("a", (50.0, 100.0)), failed("b"), format_="markdown", per_device=True)
    assert "**1 of 2 failed · score 150 over 1 of 2**" in shown
    assert "| `a` | 50.0 % | 100.0 % |" in shown
    rows = [line.split(",") for line in text(on_devices("a", (50.0, 100.0)), format_="csv").splitlines()]
    assert [float(row[7]) for row in rows if row[4] == "score"] == pytest.approx([150.0, 150.0])


def test_html_has_sections_for_score_devices_and_checks() -> None:
    checked = msgspec.structs.replace(on_devices("a<b>", (50.0, 100.0)), checks=(WARNING,))
    page = text(checked, failed("bad"), format_="html")
    assert 'id="score"' in page
    assert "Each device against the best" in page
    assert re.search(r'<td title="50 items/s" data-label="\w+" class="n slow">50.0 %</td>', page)
    assert 'id="checks"' in page
    assert "one rate is odd" in page
    assert "a<b>" not in page


def test_joules_for_an_item_are_for_those_who_have_the_room() -> None:
    watts = measured("gpu.power", 300.0, unit="W", source="sampler", labels={"device": "0"})
    powered = result("a-benchmark-of-a-long-name", launch(100.0, devices=(0,), more=(watts,)))
    assert "J/item" not in text(powered, width=60)
    assert "J/item" in text(powered, width=120)


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=40), st.floats(1e-3, 1e6)), min_size=1, max_size=4),
    st.integers(40, 160),
    st.sampled_from(["ours", *SCORES.built_in]),
)
def test_no_line_of_the_table_is_wider_than_the_terminal(named: list[tuple[str, float]], width: int, rule: str) -> None:
    results = [on_devices(f"{i}{name}", (value, value / 2)) for i, (name, value) in enumerate(named)]
    table = text(*results, failed("bad", "x " * 200), width=width, rule=rule, per_device=True).splitlines()
    table = [line for line in table if not line.startswith(" saved:")]
    assert max(map(len, table)) <= width


def in_unit(name: str, rate: float, unit: str) -> Result:
    return result(name, launch(more=[measured("rate", rate, unit=unit)], position=0))


def test_a_score_of_one_unit_has_it() -> None:
    both = in_unit("gpt2", 100.0, "tokens/s"), in_unit("llama", 400.0, "tokens/s")
    assert " score 200 tokens/s\n" in text(*both)
    assert "geometric mean" in " ".join(text(*both).split())
    assert "mixes units" not in text(*both)
    assert body(*both)["score"]["unit"] == "tokens/s"


@pytest.mark.parametrize("format_", ["screen", "markdown", "html", "csv", "json"])
def test_a_score_of_mixed_units_says_that_only_ratios_of_it_mean_something(format_: str) -> None:
    both = in_unit("gpt2", 100.0, "tokens/s"), in_unit("resnet", 400.0, "images/s")
    shown = " ".join(text(*both, format_=format_).split())
    assert "mixes units (tokens/s, images/s), so only its ratio to another run's score has a meaning" in shown.replace(
        "&#x27;", "'"
    ).replace("&#39;", "'")
    assert body(*both)["score"]["unit"] is None


def test_the_score_of_arithmetic_has_its_prefix_and_one_benchmark_needs_no_explanation() -> None:
    shown = text(in_unit("matmul", 1.5e12, "FLOP/s"))
    assert " score 1.5 TFLOP/s\n" in shown
    assert shown.splitlines()[1].split()[-2:] == ["1.5", "TFLOP/s"]
    assert "geometric" not in shown


def test_launches_of_different_units_have_no_score_in_common() -> None:
    other = launch(more=[measured("rate", 5.0, unit="steps/s")], position=1)
    odd = result("gpt2", launch(more=[measured("rate", 100.0, unit="tokens/s")]), other)
    (scored,) = body(odd)["score"]["benchmarks"]
    assert (scored["score"], scored["why_none"]) == (None, "its launches measured in tokens/s and steps/s")


def test_items_that_have_no_name_are_not_taken_for_the_same_things() -> None:
    both = in_unit("gpt2", 100.0, "items/s"), in_unit("resnet", 400.0, "items/s")
    assert " score 200\n" in text(*both)
    assert "Their items are not the same things, so only its ratio" in " ".join(text(*both).split())
