"""The order of interleaved launches."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.decision import Decision
from benchwright.options.table import Options
from benchwright.plan.placement import balanced_blocks, order_of_launches, random_blocks, williams_rows


def test_two_commands_alternate_as_abba() -> None:
    assert balanced_blocks(2, 4) == [(0, 1), (1, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
def test_every_benchmark_stands_equally_often_in_every_place(count: int) -> None:
    rows = williams_rows(count)
    for place in range(count):
        assert set(Counter(row[place] for row in rows).values()) == {len(rows) // count}


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
def test_every_benchmark_follows_every_other_equally_often(count: int) -> None:
    follows = Counter(pair for row in williams_rows(count) for pair in pairwise(row))
    assert len(follows) == count * (count - 1)
    assert len(set(follows.values())) == 1


@given(st.integers(1, 8), st.integers(1, 30), st.integers(0, 100))
def test_each_block_holds_every_benchmark_once(count: int, blocks: int, start: int) -> None:
    made = balanced_blocks(count, blocks, start=start)
    assert len(made) == blocks
    assert all(sorted(block) == list(range(count)) for block in made)


def test_warm_up_launches_come_first_and_are_not_in_a_block() -> None:
    slots = order_of_launches(_benchmarks(2), Options(repeat=2, warmup_runs=1, interleave=True))
    assert [(s.benchmark, s.warmup, s.block) for s in slots] == [
        (0, True, None),
        (1, True, None),
        (0, False, 0),
        (1, False, 0),
        (1, False, 1),
        (0, False, 1),
    ]


def test_without_interleaving_one_benchmark_follows_the_other() -> None:
    slots = order_of_launches(_benchmarks(2), Options(repeat=2))
    assert [s.benchmark for s in slots] == [0, 0, 1, 1]
    assert [s.launch for s in slots] == [0, 1, 0, 1]
    assert all(s.block is None for s in slots)


def test_each_pair_alternates_by_itself() -> None:
    slots = order_of_launches(_benchmarks(4, pairs="aabb"), Options(repeat=2, interleave=True))
    assert [(s.benchmark, s.block) for s in slots] == [
        *((0, 0), (1, 0), (1, 1), (0, 1)),
        *((2, 0), (3, 0), (3, 1), (2, 1)),
    ]


def test_a_target_may_ask_for_launches_of_its_own_and_the_user_for_others() -> None:
    benchmarks = _benchmarks(2, launches=3)
    assert [s.launch for s in order_of_launches(benchmarks, Options())] == [0, 1, 2, None]
    assert [s.launch for s in order_of_launches(benchmarks, Options(repeat=2))] == [0, 1, 0, 1]
    interleaved = order_of_launches(benchmarks, Options(interleave=True))
    assert [(s.benchmark, s.block, s.launch) for s in interleaved] == [(0, 0, 0), (1, 0, None), (0, 1, 1), (0, 2, 2)]


def _benchmarks(count: int, *, pairs: str = "", launches: int = 1) -> list[Benchmark]:
    """`launches`: of the first."""
    return [
        Benchmark(
            name=str(n),
            workload=Command(argv=("true",), cwd="/"),
            source="test",
            pair=pairs[n] if pairs else "",
            launches=launches if n == 0 else 1,
        )
        for n in range(count)
    ]


@given(st.integers(1, 7), st.integers(1, 40), st.integers(0, 100))
def test_a_random_order_holds_every_benchmark_once_in_a_block_and_stays_balanced(
    count: int, blocks: int, seed: int
) -> None:
    made = random_blocks(count, blocks, seed=seed)
    assert len(made) == blocks
    assert all(sorted(block) == list(range(count)) for block in made)
    assert made == random_blocks(count, blocks, seed=seed)
    whole = 4 if count == 2 else len(williams_rows(count))
    for start in range(0, blocks - whole + 1, whole):
        places = Counter((place, number) for row in made[start : start + whole] for place, number in enumerate(row))
        assert len(set(places.values())) == 1


def test_the_order_of_a_verdict_depends_on_the_seed_and_is_as_often_repeated_as_not() -> None:
    orders = [random_blocks(2, 40, seed=seed) for seed in range(100)]
    assert len({tuple(order) for order in orders}) > 95
    repeated = [a == b for order in orders for a, b in pairwise(order)]
    assert 0.45 < sum(repeated) / len(repeated) < 0.55


def test_a_run_that_wants_a_verdict_is_ordered_at_random() -> None:
    def order(decision: Decision | None) -> list[int]:
        options = Options(repeat=12, interleave=True, decision=decision, seed=3)
        return [s.benchmark for s in order_of_launches(_benchmarks(2), options)]

    assert order(Decision()) == [place for row in random_blocks(2, 12, seed=3) for place in row] != order(None)


def test_a_side_whose_partner_cannot_be_started_is_launched_once() -> None:
    options = Options(repeat=12, interleave=True, decision=Decision(), seed=3)
    alone = [benchmark.on_side("control", "old") for benchmark in _benchmarks(1)]
    assert [(slot.benchmark, slot.block) for slot in order_of_launches(alone, options)] == [(0, 0)]
