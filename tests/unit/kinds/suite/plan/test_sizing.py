"""Which batch size is chosen."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.errors import InvalidInput
from benchwright.core.system import Observation, Scaling, Sizing
from benchwright.kinds.suite.plan.filled_words import batch_at, choose_batch_size, rounded
from benchwright.kinds.suite.suites import suite_paths_of
from benchwright.options.table import Options

GB = 10**9
STRAIGHT = Scaling(
    observations=tuple(Observation(batch_size=n, memory_bytes=m * GB) for n, m in [(64, 12), (128, 24), (256, 48)]),
    optimized=138,
)


def chosen(sizing: Sizing, *, default: int = 12, device_bytes: int | None = None) -> int:
    return choose_batch_size("b", default, sizing, device_bytes).size


@pytest.mark.parametrize(
    ("capacity", "multiple", "size"),
    [
        (5 * GB, 1, 27),
        (5 * GB, 8, 24),
        (6 * GB, 8, 32),
        (12 * GB, 1, 64),
        (30 * GB, 1, 160),
        (72 * GB, 1, 384),
        (41920 << 20, 8, 232),
        (GB // 10, 8, 1),
    ],
)
def test_the_fit_gives_what_milabench_gives(capacity: int, multiple: int, size: int) -> None:
    sizing = Sizing(auto=True, multiple=multiple, capacity_bytes=capacity, scaling={"b": STRAIGHT})
    assert chosen(sizing) == size


def test_the_device_counts_where_no_capacity_is_given() -> None:
    sizing = Sizing(auto=True, scaling={"b": STRAIGHT})
    assert chosen(sizing, device_bytes=48 * GB) == 256
    assert chosen(sizing) == 12


def test_no_size_is_chosen_that_is_known_not_to_fit_unless_for_another_device() -> None:
    tried = Scaling(observations=(*STRAIGHT.observations, Observation(batch_size=250, memory_bytes=None)))
    fitted = choose_batch_size("b", 12, Sizing(auto=True, scaling={"b": tried}), 48 * GB)
    assert (fitted.size, "below 250, which did not fit" in (fitted.note or "")) == (248, True)
    assert chosen(Sizing(auto=True, scaling={"b": tried}), device_bytes=30 * GB) == 160
    assert chosen(Sizing(auto=True, scaling={"b": tried}, capacity_bytes=48 * GB), device_bytes=30 * GB) == 256


def test_without_a_wish_the_default_stands_and_needs_no_note() -> None:
    assert choose_batch_size("b", 12, Sizing(scaling={"b": STRAIGHT}), 48 * GB).note is None
    assert chosen(Sizing(scaling={"b": STRAIGHT}), device_bytes=48 * GB) == 12


def test_one_size_for_all_goes_before_everything() -> None:
    assert chosen(Sizing(batch_size=64, auto=True, mult=2.0, scaling={"b": STRAIGHT}), device_bytes=GB) == 64


@pytest.mark.parametrize(("add", "mult", "size"), [(None, 2.0, 24), (8, None, 20), (8, 0.5, 14), (-50, None, 1)])
def test_the_default_can_be_changed_by_a_sum_or_a_factor(add: int | None, mult: float | None, size: int) -> None:
    assert chosen(Sizing(auto=True, add=add, mult=mult)) == size


def test_the_optimized_size_is_the_one_of_the_file_else_the_fastest_that_fits() -> None:
    seen = tuple(
        Observation(batch_size=n, memory_bytes=m, perf=p)
        for n, m, p in [(8, GB, 10.0), (16, 2 * GB, 30.0), (32, 9 * GB, 50.0), (24, None, 99.0)]
    )
    assert chosen(Sizing(optimized=True, scaling={"b": STRAIGHT})) == 138
    measured = Sizing(optimized=True, scaling={"b": Scaling(observations=seen)})
    assert chosen(measured, device_bytes=4 * GB) == 16
    assert chosen(measured, device_bytes=10 * GB) == 32
    assert chosen(measured, device_bytes=9 * GB) == 16, "it must need less than there is"
    assert chosen(measured, device_bytes=100) == 12


def test_of_sizes_that_are_equally_fast_the_first_is_taken_and_no_rate_is_a_rate() -> None:
    seen = tuple(
        Observation(batch_size=n, memory_bytes=m * GB, perf=p)
        for n, m, p in [(8, 1, 0.0), (16, 4, 30.0), (32, 4, 30.0)]
    )
    measured = Sizing(optimized=True, scaling={"b": Scaling(observations=seen)})
    assert chosen(measured, device_bytes=9 * GB) == 16
    assert chosen(measured, device_bytes=2 * GB) == 8


@pytest.mark.parametrize(
    ("scaling", "why"),
    [
        ({}, "no scaling data for b"),
        ({"b": Scaling()}, "at least two observations"),
        ({"b": Scaling(observations=(Observation(batch_size=8, memory_bytes=GB),))}, "at least two observations"),
    ],
)
def test_too_little_data_gives_one_as_in_milabench_and_says_so(scaling: dict[str, Scaling], why: str) -> None:
    made = choose_batch_size("b", 12, Sizing(auto=True, scaling=scaling), 48 * GB)
    assert made.size == 1
    assert why in (made.note or "")


def test_what_did_not_fit_or_was_not_seen_does_not_bend_the_line() -> None:
    unseen = (Observation(batch_size=512, memory_bytes=None), Observation(batch_size=4, memory_bytes=0))
    spoilt = Scaling(observations=(*STRAIGHT.observations, *unseen))
    assert chosen(Sizing(auto=True, scaling={"b": spoilt}), device_bytes=30 * GB) == 160


def test_a_choice_beyond_what_was_observed_says_so() -> None:
    sizing = Sizing(auto=True, scaling={"b": STRAIGHT})
    far, near = (choose_batch_size("b", 12, sizing, gb * GB).note or "" for gb in (72, 30))
    assert "beyond the largest one observed, 256" in far
    assert "beyond" not in near


@given(
    st.lists(st.tuples(st.integers(1, 10**5), st.integers(1, 10**5)), min_size=2, max_size=12),
    st.integers(1, 2 * 10**5),
)
def test_the_fit_is_numpys(seen: list[tuple[int, int]], capacity: int) -> None:
    memory, batch = [float(m) for m, _ in seen], [float(b) for _, b in seen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all at the same memory
        expected = np.polyval(np.polyfit(memory, batch, 1), capacity)
    assert batch_at(capacity, list(zip(memory, batch, strict=True))) == pytest.approx(expected, rel=1e-6, abs=1e-3)


observations = st.lists(
    st.tuples(st.integers(1, 4096), st.integers(0, 1 << 40) | st.none()).map(
        lambda pair: Observation(batch_size=pair[0], memory_bytes=pair[1])
    ),
    max_size=12,
)


@given(observations, st.integers(0, 1 << 42), st.integers(1, 64), st.none() | st.integers(2, 4))
def test_any_observations_give_a_size_of_at_least_one(
    seen: list[Observation], capacity: int, multiple: int, power: int | None
) -> None:
    scaling = {"b": Scaling(observations=tuple(seen))}
    assert chosen(Sizing(auto=True, multiple=multiple, power=power, capacity_bytes=capacity + 1, scaling=scaling)) >= 1


@given(st.floats(-10, 1e12), st.integers(1, 100))
def test_a_size_is_a_multiple_or_one_and_not_above_what_fits(items: float, multiple: int) -> None:
    size = rounded(items, multiple=multiple)
    assert size == 1 or size % multiple == 0
    assert size == 1 or size <= items + 0.5


@given(st.floats(1, 1e12), st.integers(2, 10))
def test_a_power_is_the_largest_that_fits(items: float, power: int) -> None:
    size = rounded(items, power=power)
    assert size <= items + 0.5 < size * power + 1
    while size > 1:
        size, rest = divmod(size, power)
        assert rest == 0


def test_a_wrong_option_of_the_sizer_is_named() -> None:
    options = Options(base="/base", system_options={"sizer.add": "lots"})
    with pytest.raises(InvalidInput, match=r"options.sizer.add: 'lots' is not a number"):
        suite_paths_of(options, [])
