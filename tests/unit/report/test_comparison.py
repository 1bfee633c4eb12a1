"""What is said about a comparison on a terminal, in markdown and to scripts."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import builders
import msgspec
import pytest

from benchwright.core.comparison import Comparison, Difference, Effect, Verdict
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.summary import Interval
from benchwright.report.comparison import comparison_body, comparison_csv, comparison_markdown, comparison_text
from benchwright.report.html.comparison import comparison_html
from benchwright.results.compare import failing

EFFECT = Effect(
    benchmark="train",
    metric="rate",
    unit="items/s",
    direction=Direction.HIGHER,
    labels={},
    control=1234567.0,
    treatment=987654.0,
    ratio=0.8,
    interval=Interval(0.78, 0.82),
    p_value=0.001,
    q_value=0.001,
    verdict=Verdict.REGRESSED,
    launches=(10, 10),
    paired=False,
)
COMPARISON = Comparison(
    control="a.1", treatment="b.1", margin=0.02, effects=(EFFECT,), remarks=(Note(text="one after the other"),)
)


def with_effect(**changes: object) -> Comparison:
    return msgspec.structs.replace(COMPARISON, effects=(msgspec.structs.replace(EFFECT, **changes),))


@pytest.mark.parametrize("width", [80, 200])
def test_numbers_are_never_cut_and_lines_fit(width: int) -> None:
    text = comparison_text(with_effect(unit="long-named items/s", benchmark="n" * 300), width=width)
    assert "1,234,567 long-named items/s → 987,654 long-named items/s" in text
    assert "10 + 10 launches" in text
    assert all(len(line) <= width for line in text.splitlines())


def every_format(comparison: Comparison) -> dict[str, str]:
    """Each without the line breaks that wrapping puts into it."""
    texts = {
        "screen": comparison_text(comparison),
        "markdown": comparison_markdown(comparison),
        "csv": comparison_csv([comparison]),
        "json": json.dumps(comparison_body(comparison), indent=1),
        "html": comparison_html([comparison], [builders.run(), builders.run()]),
    }
    return {name: " ".join(text.split()) for name, text in texts.items()}


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_doubt_stands_in_every_format_whatever_the_verdict(verdict: Verdict) -> None:
    doubts = (
        Note(text="the control drifted by +3.0 %"),
        Note(text="treatment: 8 of 8 launches ran while the machine was busy", evidence="got 50 %", remedy="repeat"),
    )
    told = msgspec.structs.replace(
        with_effect(doubts=doubts, basis="compared at value 90", advice="repeat more", verdict=verdict),
        doubts=(Note(text="a.1: the machine was busy before this run began"),),
        missing=("sort: only in control",),
    )
    for name, text in every_format(told).items():
        for said in (*map(str, (*doubts, *told.doubts)), *told.missing, "compared at value 90", "repeat more"):
            assert said in text, f"{said!r} is not in {name}"
        if name != "csv":  # which has no room for what holds for all
            assert "one after the other" in text, name


def test_a_csv_is_empty_where_the_json_has_null() -> None:
    unknown = with_effect(ratio=math.nan, interval=Interval(-math.inf, math.inf), p_value=math.nan, q_value=math.nan)
    (row,) = csv.DictReader(io.StringIO(comparison_csv([unknown])))
    assert [name for name, cell in row.items() if cell.lstrip("'-") in ("nan", "inf")] == []
    (effect,) = comparison_body(unknown)["effects"]
    assert (effect["ratio"], row["ratio"]) == (None, "")


def test_a_csv_has_a_row_for_what_is_not_compared_and_says_whether_that_is_a_loss() -> None:
    lost = msgspec.structs.replace(COMPARISON, missing=("a: gone", "b: new"), lost=("a: gone",))
    rows = list(csv.DictReader(io.StringIO(comparison_csv([lost]))))
    assert [(row["verdict"], row["doubts"]) for row in rows] == [
        ("regressed", ""),
        ("lost", "a: gone"),
        ("not compared", "b: new"),
    ]
    assert (rows[0]["ratio"], rows[0]["low"], rows[0]["high"], rows[0]["paired"]) == ("0.8", "0.78", "0.82", "no")


def test_pairs_are_counted_as_pairs_and_memory_reads_well() -> None:
    text = comparison_text(with_effect(paired=True, unit="B", control=12664832.0))
    assert "10 pairs" in text
    assert "12.1 MiB" in text


def test_names_of_others_cannot_paint_on_the_terminal_or_break_the_table() -> None:
    odd = "\x1b[31m<b>|\n"
    comparison = msgspec.structs.replace(
        with_effect(benchmark=odd),
        control=odd,
        differences=(Difference(what=odd, control=odd, treatment=odd, severe=False),),
        missing=(odd,),
    )
    assert "\x1b" not in comparison_text(comparison)
    assert "<b>" not in re.sub(r"`[^`]*`", "", comparison_markdown(comparison))


def test_json_has_no_bare_nan() -> None:
    body = json.loads(json.dumps(comparison_body(with_effect(ratio=math.nan))), parse_constant=pytest.fail)
    assert (body["format"], body["version"]) == ("benchwright-comparison", 1)
    assert body["effects"][0]["ratio"] is None


def test_what_has_no_ratio_is_said_and_not_drawn() -> None:
    comparison = with_effect(ratio=math.nan, interval=None)
    assert "no ratio" in comparison_text(comparison)
    page = comparison_html([comparison], [builders.run(), builders.run()])
    assert "no ratio" in page
    assert '"nan"' not in page


def test_what_is_missing_fails_only_where_the_treatment_lost_something() -> None:
    same = with_effect(verdict=Verdict.SAME)
    assert not failing(msgspec.structs.replace(same, missing=("new: only in treatment",)), "regressed")
    lost = "old: only in control"
    assert failing(msgspec.structs.replace(same, missing=(lost,), lost=(lost,)), "regressed")


def test_nothing_to_compare_is_no_success() -> None:
    nothing = msgspec.structs.replace(COMPARISON, effects=())
    assert failing(nothing, "regressed")
    assert "nothing to compare" in comparison_text(nothing)


def test_each_word_of_fail_on_fails_on_what_it_says() -> None:
    for verdict, words in {
        Verdict.REGRESSED: {"regressed", "inconclusive", "changed"},
        Verdict.INCONCLUSIVE: {"inconclusive"},
        Verdict.IMPROVED: {"changed"},
        Verdict.SAME: set(),
    }.items():
        found = {
            word for word in ("regressed", "inconclusive", "changed") if failing(with_effect(verdict=verdict), word)
        }
        assert found == words


def test_the_same_note_of_several_is_one_text_with_their_names() -> None:
    notes = (
        Note(text="a: ran while the machine was busy", evidence="got 36 %"),
        Note(text="b: ran while the machine was busy", evidence="got 40 %"),
        Note(text="a: throttled"),
    )
    text = " ".join(comparison_text(msgspec.structs.replace(COMPARISON, doubts=notes)).split())
    assert "⚠ ran while the machine was busy: a (got 36 %); b (got 40 %)" in text
    assert "⚠ a: throttled" in text
    assert text.index("items/s →") < text.index("ran while the machine")
