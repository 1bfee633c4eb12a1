"""What the report of a specification adds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import benchmark, launch, measurement, result, run

from benchwright.analysis.summary import summarize
from benchwright.core.aggregates import aggregate
from benchwright.core.errors import InvalidInput
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.kinds.spec.results.report import contribution
from benchwright.kinds.spec.results.statistics import check_statistics, statistic
from benchwright.kinds.spec.spec_test import SpecTest, with_spec
from benchwright.report.base import Contribution, Report

SAMPLES = (3e-3, 1e-3, 2e-3, 10e-3)


def test_statistics_are_those_of_numpy() -> None:
    values = list(SAMPLES)
    assert statistic("mean", values) == pytest.approx(np.mean(values))
    assert statistic("p95", values) == pytest.approx(np.percentile(values, 95))
    assert statistic("p0", values) == min(values)
    assert statistic("stdev", values) == pytest.approx(np.std(values))
    assert statistic("MAD", values) == pytest.approx(np.median(np.abs(values - np.median(values))))
    assert statistic("cv", values) == pytest.approx(np.std(values) / np.mean(values))


@pytest.mark.parametrize("name", ["p101", "avg", "p", "P50"])
def test_an_unknown_statistic_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a statistic"):
        check_statistics(["mean", name])


def printed(metric: str, *samples: float, unit: str | None = "s", **fields: Any) -> Measurement:
    return measurement(*samples, metric=metric, unit=unit, **({"source": "log"} | fields))


def added(*measurements: Measurement, facts: dict[str, object] | None = None, **fields: Any) -> Contribution:
    test = SpecTest(**({"path": "/s.json", "line": 3, "model": "net", "identifier": "0"} | fields))
    duration = measurement(1.0, metric="process.duration", unit="s", source="process")
    tested = with_spec(benchmark("net-0", kind="spec"), test)
    made = run(result(tested, launch(duration, *measurements, facts=facts or {})))
    return contribution(Report(run=made, summaries={"net-0": summarize(made.results[0].launches)}, aggregate=aggregate))


def test_the_nets_latency_is_the_headline_and_operators_are_a_table() -> None:
    ops = [printed("op.time", k * 1e-3, labels={"op": f"Conv_{k}"}) for k in range(1, 15)]
    found = added(printed("latency", *SAMPLES), printed("latency.min", 1e-3), *ops)
    assert found.headline[0] == ("latency",)
    assert found.shown_metrics == {"op.time"}
    [table] = found.sections[0].tables
    assert [row.cells[0].text for row in table.rows][:2] == ["Conv_14", "Conv_13"]
    assert table.rows[0].cells[2].value == pytest.approx(14 / sum(range(1, 15)))
    assert table.rest is not None
    assert table.rest.cells[0].text.startswith("4 others")


@pytest.mark.parametrize(
    ("metric", "measured", "headline"),
    [
        ("accuracy", [printed("percent_of_top1_corrects", 75.0, unit="%", direction=Direction.HIGHER)], "percent_of_top1_corrects"),
        ("power", [measurement(9.0, metric="power", unit="W", source="sampler")], "power"),
        ("error", [measurement(0.1, metric="error.max_abs", unit=None, source="model")], "error.max_abs"),
        ("delay", [printed("op.time", 1.0, labels={"op": "A"})], "process.duration"),
    ],
)  # fmt: skip
def test_the_headline_is_what_the_test_is_about(metric: str, measured: list[Measurement], headline: str) -> None:
    assert added(*measured, metric=metric).headline[0] == (headline,)


def test_statistics_that_the_test_asks_for_are_in_the_table_and_the_json() -> None:
    found = added(printed("latency", *SAMPLES), statistics=("mean", "p95"))
    figures = found.bodies[0]["statistics"]["latency"]
    assert list(figures) == ["mean", "p95", "p50"]
    assert figures["p95"] == pytest.approx(np.percentile(SAMPLES, 95))
    [table] = found.sections[0].tables
    assert [c.title for c in table.columns] == ["metric", "mean", "p95", "p50"]
    assert found.bodies[0]["spec"]["identifier"] == "0"


def test_outputs_against_golden_ones_show_the_worst_element() -> None:
    compared = {
        "softmax": {
            "figures": {"max_abs": 0.5, "cosine": 0.99},
            "worst": {"index": [0, 7], "expected": 1.0, "got": 1.5},
        }
    }
    [table] = (
        added(
            measurement(0.5, metric="error.max_abs", unit=None, source="model"),
            metric="error",
            facts={"goldens": compared},
        )
        .sections[0]
        .tables
    )
    assert [cell.text for cell in table.rows[0].cells] == [
        "softmax",
        "0.5",
        "",
        "0.99",
        "",
        "",
        "[0, 7]: 1.5 instead of 1",
    ]
