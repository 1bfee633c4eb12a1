"""Warm-up, growing queues and percentiles of requests that wait for each other."""

from __future__ import annotations

import math
import random

from benchwright.analysis.statistics.request_series import percentile_interval, queue_grew, settled_from


def served(load: float, count: int, seed: int) -> tuple[list[float], list[int], list[int]]:
    """Times in a queue with one server whose service takes 1 s on average, and when requests came and left."""
    source, wait, clock = random.Random(seed), 0.0, 0.0
    times, came, left = [], [], []
    for _ in range(count):
        service = source.expovariate(1.0)
        times.append(wait + service)
        came.append(round(clock * 1e9))
        left.append(round((clock + wait + service) * 1e9))
        gap = source.expovariate(load)
        clock, wait = clock + gap, max(0.0, wait + service - gap)
    return times, came, left


def test_dependent_requests_are_worth_fewer_and_their_interval_is_wider() -> None:
    together = served(0.8, 4000, 1)[0]
    shuffled = random.Random(1).sample(together, len(together))
    of_queue, of_shuffled = percentile_interval(together, 50), percentile_interval(shuffled, 50)
    assert of_queue is not None
    assert of_shuffled is not None
    assert of_queue.value == of_shuffled.value
    assert of_queue.independent < of_shuffled.independent / 4
    assert of_queue.high - of_queue.low > 2 * (of_shuffled.high - of_shuffled.low)


def test_intervals_cover() -> None:
    """At least 93 of 100 in performance/serving_statistics.py; here so many that fewer would be no chance."""
    covered = 0
    for seed in range(30):
        source = random.Random(seed)
        found = percentile_interval([source.expovariate(1.0) for _ in range(1000)], 90)
        assert found is not None
        covered += found.low <= -math.log(0.1) <= found.high
    assert covered >= 26


def test_a_tail_of_too_few_has_no_interval() -> None:
    assert percentile_interval([float(n % 17) for n in range(400)], 99) is None
    assert percentile_interval([1.0] * 5, 50) is None


def test_a_queue_grows_only_beyond_full_load() -> None:
    assert not any(queue_grew(*served(0.8, 600, seed)[1:]) for seed in range(10))
    assert all(queue_grew(*served(1.5, 600, seed)[1:]) for seed in range(10))


def test_warm_up_is_found_where_there_is_one_and_not_imagined() -> None:
    source = random.Random(3)
    steady = [source.gauss(1.0, 0.1) for _ in range(300)]
    assert settled_from(steady) == 0
    assert 30 <= settled_from([3.0] * 30 + steady) <= 165, "all of it, and at most half of everything"
    assert settled_from([3.0] * 10) == 0
