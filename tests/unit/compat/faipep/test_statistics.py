"""The statistics of FAI-PEP's records, checked against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.compat.faipep.records import USUAL, RecordSide, difference, summary_of

samples = st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=40)


def by_numpy(name: str, values: list[float]) -> float:
    array = np.array(values)
    if name.startswith("p"):
        return float(np.percentile(array, float(name[1:])))
    median = np.median(array)
    other = {
        "mean": array.mean(),
        "stdev": array.std(),
        "MAD": np.median(np.abs(array - median)),
        "cv": array.std() / array.mean(),
    }
    return float(other[name])


@given(values=samples)
def test_every_statistic_is_numpys(values: list[float]) -> None:
    found = summary_of(values)
    assert tuple(found) == USUAL
    spread = max(values)
    for name, value in found.items():
        scale = 1.0 if name == "cv" else spread
        assert value == pytest.approx(by_numpy(name, values), rel=1e-9, abs=scale * 1e-9), name


@given(treatment=samples, control=samples)
def test_a_percentile_is_compared_with_its_opposite(treatment: list[float], control: list[float]) -> None:
    found = difference(
        RecordSide(treatment), RecordSide(control), ["p0", "p10", "p50", "p90", "p95", "p100", "mean", "stdev", "cv"]
    )
    scale = max(*treatment, *control)
    for name in ("p0", "p10", "p50", "p90", "p95", "p100"):
        opposite = f"p{100 - int(name[1:])}"
        wanted = by_numpy(name, treatment) - by_numpy(opposite, control)
        assert found[name] == pytest.approx(wanted, rel=1e-9, abs=scale * 1e-9)
    for name in ("stdev", "cv"):
        wanted = by_numpy(name, treatment) - by_numpy(name, control)
        assert found[name] == pytest.approx(wanted, rel=1e-9, abs=(1 if name == "cv" else scale) * 1e-9)
    assert found["mean"] == pytest.approx(np.mean(treatment) - np.mean(control), rel=1e-9, abs=scale * 1e-9)


def test_the_statistics_of_a_test_are_its_own_and_the_median() -> None:
    assert summary_of([1.0, 2.0, 3.0], ["p95", "mean"]) == {"p95": 2.9, "mean": 2.0, "p50": 2.0}
    assert summary_of([98.4], ["p95"], {"mean": 98.4, "stdev": 7.0}) == {"mean": 98.4, "stdev": 7.0}


def test_what_has_no_value_is_null_and_nothing_has_no_summary() -> None:
    assert summary_of([]) == {}
    assert summary_of([-1.0, 1.0])["cv"] is None
    assert summary_of([math.nan, 1.0])["p50"] is None
    assert summary_of([1.0], ["harmonic"])["harmonic"] is None
