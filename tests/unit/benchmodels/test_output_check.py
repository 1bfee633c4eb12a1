"""Outputs checked against a reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from benchmodels.check.output_check import CEILING, TOLERANCES, OutputError, compare, error_of

numbers = st.floats(-1e6, 1e6).map(lambda x: x if abs(x) > 1e-6 else 0.0)
reals = arrays.arrays(np.float64, arrays.array_shapes(max_dims=3, max_side=6), elements=numbers)


def pairs() -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    return reals.flatmap(lambda a: st.tuples(st.just(a), arrays.arrays(np.float64, a.shape, elements=numbers)))


@given(reals)
def test_the_same_numbers_have_no_error(array: np.ndarray) -> None:
    error = error_of(array, array)
    assert (error.max_abs, error.relative_l2, error.trouble) == (0, 0, None)
    assert error.cosine == (pytest.approx(1) if np.any(array) else None)
    found = compare({"y": array}, {"y": array}, "fp32")
    assert found.ok
    assert found.claimed == (np.unique(array).size > 1 or (array.size == 1 and bool(np.any(array))))


@given(pairs(), st.integers(-20, 20))
def test_the_relative_error_does_not_depend_on_the_scale(pair: tuple[np.ndarray, np.ndarray], power: int) -> None:
    got, wanted = pair
    assume(np.any(wanted))
    plain, scaled = error_of(got, wanted), error_of(got * 2.0**power, wanted * 2.0**power)
    assert scaled.relative_l2 == pytest.approx(plain.relative_l2, rel=1e-9)
    assert scaled.cosine == pytest.approx(plain.cosine, rel=1e-9, abs=1e-9)


@given(pairs())
def test_cosine_and_greatest_difference_are_symmetric(pair: tuple[np.ndarray, np.ndarray]) -> None:
    assume(np.any(pair[0]) and np.any(pair[1]))
    one, other = error_of(*pair), error_of(*pair[::-1])
    assert one.cosine == pytest.approx(other.cosine, rel=1e-9, abs=1e-12)
    assert one.max_abs == pytest.approx(other.max_abs)


@given(pairs())
def test_the_order_of_elements_does_not_matter(pair: tuple[np.ndarray, np.ndarray]) -> None:
    plain = error_of(*pair)
    turned = error_of(*(array.reshape(-1)[::-1] for array in pair))
    assert turned.relative_l2 == pytest.approx(plain.relative_l2, rel=1e-9)


def test_a_large_output_does_not_hide_a_small_one_that_is_wrong() -> None:
    reference = {"logits": np.full(1000, 1e6), "score": np.array([0.5])}
    found = compare({"logits": np.full(1000, 1e6), "score": np.array([0.4])}, reference, "fp32")
    assert not found.ok
    assert "score" in found.detail
    assert found.figures["relative_l2"] == pytest.approx(0.2)


def test_each_precision_has_its_tolerance() -> None:
    reference = {"y": np.linspace(1, 2, 100)}
    outputs = {"y": reference["y"] * (1 + 3e-2 * np.where(np.arange(100) % 2, 1, -1))}
    assert [compare(outputs, reference, p).ok for p in ("fp32", "fp16", "bf16", "int8-dynamic")] == [
        False,
        False,
        True,
        True,
    ]
    assert all(compare({"y": reference["y"] * 1.5}, reference, p).ok is False for p in TOLERANCES)


@pytest.mark.parametrize(
    ("outputs", "reference", "words"),
    [
        ({"y": np.zeros((2, 3))}, {"y": np.zeros((3, 2))}, "its shape is 2×3"),
        ({"y": np.zeros(2, np.int64)}, {"y": np.zeros(2)}, "its type is int64"),
        ({"y": np.zeros(2)}, {"y": np.zeros(2), "z": np.zeros(2)}, "1 outputs where the reference has 2"),
        ({"y": np.array([1.0, math.nan])}, {"y": np.ones(2)}, "50.00% of it is NaN"),
        ({"y": np.array([math.nan, math.nan])}, {"y": np.array([1.0, math.nan])}, "100.00% of it is NaN, 50.00% of"),
        ({"y": np.array([1.0, 2.0j])}, {"y": np.ones(2)}, "its type is complex128, that of the reference float64"),
        ({"y": np.array([True, False])}, {"y": np.array([False, False])}, "50.00% of its whole numbers"),
        ({"y": np.array([1.0, math.inf])}, {"y": np.array([1.0, 1e5])}, "infinite"),
        ({"y": np.array([1.0, math.inf])}, {"y": np.array([1.0, -math.inf])}, "infinite"),
        ({"y": np.ones(2)}, {"y": np.array([1.0, math.inf])}, "infinite"),
        ({"y": np.ones(2)}, {}, "1 outputs where the reference has 0"),
    ],
)
def test_what_is_wrong_by_all_means_is_said(outputs: dict, reference: dict, words: str) -> None:
    found = compare(outputs, reference, "int8-dynamic")
    assert (found.ok, found.claimed) == (False, False)
    assert words in found.detail


NAN = np.array([1.0, 2.0, math.nan])


@pytest.mark.parametrize(
    ("outputs", "reference", "words"),
    [
        ({}, {}, "the model returns nothing that could be compared"),
        ({"y": np.zeros((0, 3))}, {"y": np.zeros((0, 3))}, "output y is empty (0×3)"),
        ({"y": np.zeros(0, np.int64)}, {"y": np.zeros(0, np.int64)}, "is empty (0)"),
        ({"y": np.zeros(3)}, {"y": np.zeros(3)}, "is 0 everywhere"),
        ({"y": np.ones((4, 1))}, {"y": np.ones((4, 1))}, "is 1 everywhere: it cannot tell right from wrong"),
        ({"y": np.array([True, True])}, {"y": np.array([True, True])}, "is 1 everywhere"),
        ({"y": np.full(3, 7)}, {"y": np.full(3, 7)}, "is 7 everywhere"),
        ({"y": np.array(0.0)}, {"y": np.array(0.0)}, "is 0 everywhere"),
        ({"y": np.full(3, -math.inf)}, {"y": np.full(3, -math.inf)}, "has no finite number"),
        ({"y": np.full(3, math.nan)}, {"y": np.full(3, math.nan)}, "100.00% of it is NaN in the model itself"),
        ({"y": NAN}, {"y": NAN}, "33.33% of it is NaN in the model itself"),
        ({"y": np.arange(3.0)}, {"y": NAN - 1}, "33.33% of it is NaN in the model itself"),
        ({"a": np.zeros(2), "b": np.zeros(0)}, {"a": np.zeros(2), "b": np.zeros(0)}, "none of the 1 others does"),
    ],
)
def test_outputs_that_cannot_tell_right_from_wrong_claim_nothing(outputs: dict, reference: dict, words: str) -> None:
    found = compare(outputs, reference, "fp32")
    assert (found.ok, found.claimed) == (True, False)
    assert words in found.detail
    assert found.detail.endswith("so nothing is claimed")


def test_one_telling_output_is_enough() -> None:
    reference = {"mask": np.zeros(4), "none": np.zeros((0, 2)), "score": np.array([0.5])}
    assert compare(dict(reference), reference, "fp32").claimed
    assert not compare({**reference, "mask": np.ones(4)}, reference, "fp32").ok


def test_masks_of_the_least_number_agree_across_types() -> None:
    least = {"y": np.array([np.finfo(np.float64).min, 1.0])}
    assert compare({"y": np.array([np.finfo(np.float32).min, 1.0], np.float32)}, least, "fp32").ok
    assert compare({"y": np.array([np.finfo(np.float16).min, 1.0], np.float16)}, least, "fp16").ok


def test_whole_numbers_are_judged_by_the_share_of_equal_ones() -> None:
    reference = {"class": np.arange(100)}
    outputs = {"class": np.where(np.arange(100) < 3, 7, np.arange(100))}
    assert not compare(outputs, reference, "fp32").ok
    assert compare(outputs, reference, "bf16").ok
    assert compare(outputs, reference, "bf16").figures["equal"] == 0.97
    assert compare({"class": np.arange(100, dtype=np.int32)}, reference, "fp32").ok


def test_names_that_differ_are_compared_in_their_order() -> None:
    assert compare({"a": np.ones(2), "b": np.zeros(3)}, {"x": np.ones(2), "y": np.zeros(3)}, "fp32").ok
    assert compare({"b": np.zeros(3), "a": np.ones(2)}, {"a": np.ones(2), "b": np.zeros(3)}, "fp32").ok


def test_of_an_ill_conditioned_model_nothing_is_claimed() -> None:
    reference = {"y": np.linspace(1e-17, 2e-17, 4)}  # what is left when large numbers cancel
    outputs = {"y": np.linspace(2e-9, 1e-9, 4)}
    assert not compare(outputs, reference, "fp32").ok
    own = [error_of(np.linspace(1e-9, 2e-9, 4), reference["y"])]
    found = compare(outputs, reference, "fp32", own)
    assert (found.ok, found.claimed) == (True, False)
    assert "ill-conditioned (output y: relative L2 error" in found.detail
    assert found.figures["relative_l2"] > 1e7
    assert not compare({"y": np.full(4, 1e-3)}, reference, "fp32", own).ok, "beyond what eager itself loses"
    exact = [OutputError(0.0, 0.0, 1.0)]
    assert not compare(outputs, reference, "fp32", exact).ok


@given(pairs(), st.sampled_from(sorted(TOLERANCES)), st.floats(0, 1e9), st.floats(-1, 1), st.floats(0, 1))
def test_whatever_the_model_itself_loses_only_a_small_error_is_right(
    pair: tuple[np.ndarray, np.ndarray], precision: str, own_l2: float, own_cosine: float, own_equal: float
) -> None:
    got, wanted = pair
    own = [OutputError(1.0, own_l2, own_cosine)]
    found = compare({"y": got}, {"y": wanted}, precision, own)
    if found.claimed and found.ok:
        assert found.figures["relative_l2"] <= CEILING.relative_l2
        assert found.figures["cosine"] >= CEILING.cosine
    whole = compare({"y": got.round().astype(int)}, {"y": wanted.round().astype(int)}, precision, [OutputError(1.0, equal=own_equal)])  # fmt: skip
    if whole.claimed and whole.ok:
        assert whole.figures["equal"] >= CEILING.equal


def test_the_issue_s_own_case_is_no_success() -> None:
    rng = np.random.default_rng(0)
    wanted, own, got = rng.standard_normal(64) * 1e-9, rng.standard_normal(64), rng.standard_normal(64)
    found = compare({"y": got}, {"y": wanted}, "fp32", [error_of(own, wanted)])
    assert found.figures["relative_l2"] > 1e8
    assert abs(found.figures["cosine"]) < 0.5
    assert not found.claimed


def test_a_little_more_than_usual_is_tolerated_where_the_model_itself_loses_it() -> None:
    wanted = np.linspace(1, 2, 64)
    own = [error_of(wanted * (1 + 1e-3 * np.cos(np.arange(64))), wanted)]
    found = compare({"y": wanted * (1 + 2e-3 * np.cos(np.arange(64)))}, {"y": wanted}, "fp32", own)
    assert (found.ok, found.claimed) == (True, True)
    assert found.figures["tolerance"] == pytest.approx(4 * own[0].relative_l2)
    assert "tolerance raised to the model's own error" in found.detail


def test_zeros_are_compared_absolutely() -> None:
    near = compare({"y": np.full(4, 1e-9)}, {"y": np.zeros(4)}, "fp32", [OutputError(1e-9, 1e-9)])
    assert (near.ok, near.claimed) == (True, False)
    assert not compare({"y": np.full(4, 1.0)}, {"y": np.zeros(4)}, "fp32").ok


def test_complex_numbers_are_compared() -> None:
    turned = compare({"y": np.array([1j, 2.0])}, {"y": np.array([1.0, 2.0 + 0j])}, "fp32")
    assert not turned.ok
    assert compare({"y": np.array([1j], np.complex64)}, {"y": np.array([1j])}, "fp32").ok
