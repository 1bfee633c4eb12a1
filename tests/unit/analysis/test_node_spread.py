"""Which node is out: the arithmetic against numpy, false alarms and power on noise that was recorded."""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from benchwright.analysis.statistics.node_spread import (
    ALARM,
    NodeTest,
    judged_nodes,
    median_deviation,
    node_tests,
)

PERFORMANCE = Path(__file__).parents[3] / "performance"


def gaussian(
    seed: int, nodes: int, *, noise: float = 0.01, rounds: int = 12, slow: float = 1.0
) -> dict[str, list[float]]:
    chance = random.Random(seed)
    return {
        f"n{i}": [math.exp(chance.gauss(0, noise)) * (slow if i == 0 else 1.0) for _ in range(rounds)]
        for i in range(nodes)
    }


def named(*families: list[NodeTest]) -> list[str]:
    return sorted({test.node for test in judged_nodes(families) if test.is_slow})


def test_the_median_deviation_is_that_of_numpy_and_right_on_average():
    generator = np.random.default_rng(1)
    values = generator.normal(size=64)
    by_numpy = 1.4826 * np.median(np.abs(values - np.median(values))) * 64 / 63.2
    assert median_deviation(values.tolist()) == pytest.approx(by_numpy)
    for count in (2, 3, 4, 9, 20):
        found = np.mean([median_deviation(row.tolist()) for row in generator.normal(size=(4000, count))])
        assert found == pytest.approx(1.0, abs=0.06), count
    assert median_deviation([3.0]) == 0.0


def test_a_test_is_the_moderated_t_as_numpy_computes_it():
    costs = gaussian(3, 8, slow=1.06)
    [test] = [test for test in node_tests("time", costs) if test.node == "n0"]
    logs = np.log(np.array(list(costs.values())))
    logs -= np.median(logs, axis=0)
    levels = np.median(logs, axis=1)
    others = levels[1:]
    away = levels[0] - np.median(others)
    spread = 1.4826 * 1.140 * np.median(np.abs(others - np.median(others)))
    noise = np.median(np.pi / 2 * logs.var(axis=1, ddof=1) / 12) / (1 - 2 / 99) ** 3
    freedom = 4 + 0.37 * 6
    variance = (4 * (0.01**2 + noise) + 0.37 * 6 * spread**2) / freedom
    t = away / np.sqrt(variance * (1 + np.pi / 2 / 7))
    # Student's t by integration of its density: beyond |t| on both sides.
    grid = np.tan(np.linspace(np.arctan(abs(t)), np.pi / 2, 400_001)[:-1])
    density = (1 + grid**2 / freedom) ** (-(freedom + 1) / 2)
    constant = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    chance = 2 * constant * np.trapezoid(density, grid)
    assert (test.ratio, test.p_value) == pytest.approx((math.exp(away), chance), rel=1e-3)
    assert test.interval is not None
    assert test.interval.low < test.ratio < test.interval.high


def test_what_all_nodes_saw_in_a_round_is_no_difference():
    costs = gaussian(5, 6)
    slow_round = {node: [v * (3.0 if i == 4 else 1.0) for i, v in enumerate(values)] for node, values in costs.items()}
    assert [t.ratio for t in node_tests("t", slow_round)] == pytest.approx([t.ratio for t in node_tests("t", costs)])


@pytest.mark.parametrize("nodes", [2, 3, 4, 16])
def test_alike_nodes_are_hardly_ever_named(nodes: int):
    alarms = sum(
        bool(named(*(node_tests(m, gaussian(97 * s + n, nodes)) for n, m in enumerate("abc")))) for s in range(100)
    )
    assert alarms <= 5  # the prior makes it rarer still
    assert ALARM <= 0.05


@pytest.mark.parametrize(("nodes", "slow"), [(2, 1.5), (3, 1.25), (16, 1.1), (64, 1.05)])
def test_a_slow_node_is_named_and_nobody_else(nodes: int, slow: float):
    assert named(node_tests("a", gaussian(1, nodes, slow=slow)), node_tests("b", gaussian(2, nodes, slow=slow))) == [
        "n0"
    ]


def test_a_small_difference_is_no_reason_however_certain():
    exact = {f"n{i}": [1.0] * 12 for i in range(64)} | {"slow": [1.019] * 12}
    assert named(node_tests("a", exact)) == []


def test_nodes_in_a_long_tail_are_not_named_because_of_their_like():
    chance = random.Random(8)
    tail = {f"n{i}": [math.exp(chance.gauss(0.4 if i % 6 == 0 else 0.0, 0.01)) for _ in range(12)] for i in range(60)}
    assert named(node_tests("a", tail)) == []


def test_two_bad_nodes_do_not_hide_each_other():
    costs = gaussian(4, 16)
    costs |= {node: [1.3 * v for v in costs[node]] for node in ("n3", "n9")}
    assert named(node_tests("a", costs)) == ["n3", "n9"]


@pytest.mark.parametrize("costs", [{}, {"a": [1.0]}, {"a": [1.0, 1.0], "b": [0.0, 1.0]}, {"a": [1.0], "b": [math.nan]}])
def test_nothing_to_compare(costs: dict[str, list[float]]):
    assert node_tests("t", costs) == []


def test_of_a_single_round_there_is_no_interval():
    assert [test.interval for test in node_tests("t", {"a": [1.0], "b": [1.1], "c": [1.0]})] == [None] * 3


def test_with_recorded_noise_one_slow_node_of_64_is_named(monkeypatch: pytest.MonkeyPatch):
    """A small form of performance/cluster_doctor.py, which has 200 trials."""
    monkeypatch.syspath_prepend(str(PERFORMANCE))
    import cluster_doctor

    monkeypatch.delitem(sys.modules, "cluster_doctor")
    noise = json.loads(cluster_doctor.RECORDED.read_text())
    chance = random.Random(5)
    assert [cluster_doctor.simulated(chance, noise) for _ in range(4)] == [[]] * 4
    assert [cluster_doctor.simulated(chance, noise, 1.05) for _ in range(4)] == [["n0"]] * 4
