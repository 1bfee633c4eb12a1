"""The picture of a run: what shares an axis, and where things lie on it."""

from __future__ import annotations

import math

import msgspec
import pytest
from example_reports import measurement, ordinary_report, report, result

from benchwright.analysis.roofline import rooflines
from benchwright.core.comparison import Comparison, Difference, Effect, Verdict
from benchwright.core.efficiency import Efficiency, Peak, Work
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Result
from benchwright.core.score import SuiteScore
from benchwright.core.status import Reason, Status
from benchwright.core.summary import Interval
from benchwright.report.base import Report
from benchwright.report.document import Figure
from benchwright.report.figures.axis import log_ticks, ticks
from benchwright.report.figures.html import html_picture
from benchwright.report.figures.run import comparison_picture, run_picture
from benchwright.report.tables.ab import ab_text


def measured(name: str, *values: float, metric: str = "rate", unit: str = "items/s") -> Result:
    launches = [
        Launch(job=f"{name}.R{i}", status=Status.OK, position=i, measurements=(measurement(metric, [v], unit),))
        for i, v in enumerate(values)
    ]
    return result(name, launches)


def picture(shown: Report) -> Figure:
    found = run_picture(shown)
    assert found is not None
    return found


def test_benchmarks_of_one_metric_share_an_axis_with_every_launch() -> None:
    figure = picture(report([measured("a", 100, 102, 104, 101, 103, 99), measured("b", 110, 111)]))
    assert figure.title == "Rate, items/s, higher is better"
    assert [row.dots for row in figure.rows] == [(100, 102, 104, 101, 103, 99), (110, 111)]
    assert [row.low is None for row in figure.rows] == [False, True]
    assert figure.low <= 99 < 111 <= figure.high
    assert "the axis does not begin at 0" in figure.notes[0]
    assert 0 < figure.at(99) < figure.at(104) < figure.at(111) < 1


def test_units_that_differ_are_each_drawn_around_their_own_median() -> None:
    figure = picture(report([measured("a", 90, 100, 110), measured("b", 1, 1, 1.3, unit="s", metric="latency")]))
    assert figure.title == "How much launches differ"
    assert figure.line == 1.0
    assert figure.rows[0].dots == pytest.approx((0.9, 1.0, 1.1))
    assert figure.at(1.3) < 1


def test_a_suites_throughputs_are_not_drawn_as_if_items_were_the_same() -> None:
    made = report([measured("a", 90, 100, 110), measured("b", 1, 1, 1.3)])
    score = SuiteScore(value=1.0, benchmarks=(), expected=1, counted=1, failed=0)
    assert picture(msgspec.structs.replace(made, score=score)).title == "How much launches differ"


def of_peak(share: float, name: str = "matmul", why: str | None = None) -> Efficiency:
    work = Work("flops", "fp32", "cpu")
    return Efficiency(work=work, per_item=1.0, achieved=share, peak=Peak(value=1.0, benchmark=name), why_no_share=why)


def test_shares_of_a_trusted_peak_come_before_everything_else() -> None:
    made = report([measured("resnet", 9, 10, 11), measured("matmul", 5, 5)])
    efficiency = {"resnet": (of_peak(0.4),), "matmul": (of_peak(1.0),)}
    figure = picture(msgspec.structs.replace(made, efficiency=efficiency))
    assert figure.bars
    assert (figure.low, figure.line) == (0.0, 1.0)
    assert figure.rows[0].value == pytest.approx(0.4)
    assert figure.rows[0].dots == pytest.approx((0.36, 0.4, 0.44))
    assert figure.rows[1].small == "the peak itself"


def test_a_share_that_cannot_be_trusted_is_not_drawn() -> None:
    made = report([measured("resnet", 9, 10, 11), measured("bert", 5, 5)])
    efficiency = {"resnet": (of_peak(0.4, why="matmul was disturbed"),), "bert": (of_peak(0.2),)}
    assert picture(msgspec.structs.replace(made, efficiency=efficiency)).title == "Rate, items/s, higher is better"


def test_what_failed_is_in_the_picture_with_its_reason() -> None:
    figure = picture(ordinary_report())
    assert [(row.name, row.value is None, row.text) for row in figure.rows[2:]] == [
        ("llama", True, "failed: out of memory"),
        ("moe-8x", True, "skipped: lacks devices"),
    ]


def test_a_run_that_measured_nothing_has_no_picture() -> None:
    assert run_picture(report([result("a", (), Status.FAILED, reason=Reason.CRASHED)])) is None
    assert run_picture(report([])) is None
    assert run_picture(report([measured("a", math.nan)])) is None


def test_values_far_apart_have_a_logarithmic_axis() -> None:
    figure = picture(report([measured("a", 0.01), measured("b", 10)]))
    assert figure.logarithmic
    assert figure.at(0.01 * math.sqrt(1000)) == pytest.approx((figure.at(0.01) + figure.at(10)) / 2)


def effect(name: str, ratio: float, low: float, high: float, verdict: Verdict = Verdict.REGRESSED) -> Effect:
    return Effect(
        benchmark=name,
        metric="rate",
        unit="items/s",
        direction=Direction.HIGHER,
        labels={},
        control=100.0,
        treatment=100.0 * ratio,
        ratio=ratio,
        interval=Interval(low, high),
        p_value=0.01,
        q_value=0.01,
        verdict=verdict,
        launches=(8, 8),
        paired=False,
    )


def test_a_baseline_is_what_everything_is_compared_with() -> None:
    severe = Difference(what="machine", control="x", treatment="y", severe=True)
    comparison = Comparison(
        control="old", treatment="new", margin=0.02, effects=(effect("a", 0.9, 0.85, 0.95),), differences=(severe,)
    )
    figure = picture(
        msgspec.structs.replace(report([measured("a", 9, 10, 11), measured("new one", 1)]), against=comparison)
    )
    assert figure.title == "Compared with old"
    row, other = figure.rows
    assert (other.name, other.value, other.text) == ("new one", None, "not compared")
    assert (row.value, row.low, row.high) == pytest.approx((-10, -15, -5))
    assert figure.at(0) == 0.5
    assert figure.margin == (-2, 2)
    assert "machine differs: x → y" in figure.notes[1]
    assert 'class="row regressed"' in html_picture(figure)


def test_an_effect_beyond_the_axis_lies_at_its_end() -> None:
    effects = (effect("a", 40.0, 30.0, 50.0), effect("b", math.inf, math.nan, math.nan))
    figure = comparison_picture(Comparison(control="c", treatment="t", margin=0.02, effects=effects))
    assert figure is not None
    assert figure.at(3900.0) == 1.0
    assert 'class="dot off"' in html_picture(figure)
    assert "beyond the axis" in html_picture(figure)
    assert [row.value is None for row in figure.rows] == [False, True]
    assert "nan" not in html_picture(figure)


def test_in_a_terminal_an_effect_beyond_the_axis_lies_at_its_end_and_an_infinite_one_is_not_drawn() -> None:
    far = msgspec.structs.replace(effect("a", 40.0, 30.0, 50.0), pairs=(40.0, 41.0))
    endless = msgspec.structs.replace(effect("b", math.inf, math.nan, math.nan), pairs=(math.inf, math.inf))
    text = ab_text(Comparison(control="c", treatment="t", margin=0.02, effects=(far, endless)))
    _, _, drawn = text.partition("paired differences")
    assert "a rate" in drawn
    assert all(line.endswith("›") for line in drawn.splitlines()[1:3])
    assert "b rate" not in drawn
    assert "paired" not in ab_text(Comparison(control="c", treatment="t", margin=0.02, effects=(endless,)))


@pytest.mark.parametrize("ends", [(0, 1), (199, 281), (-0.3, 0.3), (1e-9, 3e-9), (5, 5.0001), (0, 1e12)])
def test_marks_are_round_few_and_inside(ends: tuple[float, float]) -> None:
    marks = ticks(*ends)
    assert 2 <= len(marks) <= 6
    assert all(ends[0] - 1e-12 <= value <= ends[1] * (1 + 1e-9) for value, _ in marks)
    assert len({text for _, text in marks}) == len(marks)


def test_marks_of_a_logarithmic_axis_are_few_and_inside() -> None:
    for low, high in ((0.9, 12), (1e-6, 1e6), (3, 30)):
        marks = log_ticks(low, high, str)
        assert 2 <= len(marks) <= 6
        assert all(low <= value <= high for value, _ in marks)


class TestRoofline:
    """In the HTML report: every point inside the drawing, under its roof, with its row below."""

    def page(self, name: str = "prefill") -> str:
        from benchwright.report.html.reporter import HtmlReporter

        peaks = {"flops": Peak(value=600e12, benchmark="peak-bf16"), "bytes": Peak(value=4e12, benchmark="triad")}
        told = (
            Efficiency(work=Work("flops", "bf16", "device"), per_item=1.0, achieved=450e12, peak=peaks["flops"]),
            Efficiency(work=Work("bytes", "", "device"), per_item=1.0, achieved=1e12, peak=peaks["bytes"]),
        )
        shown = report([measured(name, 100, 102)])
        return HtmlReporter().render(
            msgspec.structs.replace(shown, efficiency={name: told}, rooflines=tuple(rooflines({name: told})))
        )

    def test_it_says_which_roof_limits_and_how_near_it_is(self) -> None:
        page = self.page()
        assert "Roofline of this machine" in page
        assert "<td>bf16: 600 TFLOP/s</td>" in page
        assert "75 %" in page
        assert "bf16: 600 TFLOP/s by peak-bf16; memory: 4 TB/s by triad" in page

    def test_points_lie_inside_and_below_their_roof(self) -> None:
        drawing = self.page().partition('aria-label="Roofline')[2].partition("</svg>")[0]
        x, y = (float(drawing.partition(f'{name}="')[2].partition('"')[0]) for name in ("cx", "cy"))
        assert 74 < x < 704
        assert 14 < y < 300
        roofs = [
            float(part.partition('"')[0])
            for part in drawing.split('class="median"')[1:]
            for part in part.split('y2="')[1:2]
        ]
        assert all(y > roof for roof in roofs), "y grows downwards"

    def test_names_are_escaped(self) -> None:
        assert "<script>alert" not in self.page("<script>alert(1)</script>")

    def test_without_work_told_there_is_none(self) -> None:
        from benchwright.report.html.reporter import HtmlReporter

        assert "roofline" not in HtmlReporter().render(report([measured("a", 1, 2)])).lower()
