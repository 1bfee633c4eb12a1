"""Which nodes of one make are slower than the others, over all nodes and metrics. Why so: docs/decisions/0051-doctor-on-clusters.md.

Each node is compared with all the others (leave one out), by the logarithm of its typical time. How much nodes differ without a
reason is estimated robustly from those others, moderated by what is usual for machines of one make (Smyth 2004): of three nodes, the
spread of two says next to nothing. Launches in rounds also tell the noise of a node's own figure, which no spread can fall below.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchwright.analysis.statistics.distributions import student_quantile, student_two_sided
from benchwright.analysis.statistics.ratio_tests import benjamini_hochberg
from benchwright.core.summary import Interval

ALARM = 0.05  # the false-discovery rate over nodes × metrics; if all nodes are alike, the chance that any is named
MARGIN = 0.02  # a smaller difference is no reason to return a node
USUAL_SPREAD = 0.01  # between machines of one make
_USUAL_FREEDOM = 4.0  # how much that counts: as much as so many degrees of freedom
_EFFICIENCY = 0.37  # of the median deviation, beside the standard deviation
_OF_MEDIANS = math.pi / 2  # the variance of a median, beside that of a mean
_FEW = 6
_MANY = 10  # nodes, from which on the tails of their spread can be seen
_OUTER, _OF_OUTER = 0.9, 1.645  # so many of a Gaussian sample are within as many standard deviations
# The median deviation of n values as an estimate of the standard deviation: its factor for small n (Croux and Rousseeuw 1992).
_SMALL = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}

Costs = Mapping[str, Sequence[float]]  # node → one positive value for each round; less is better


class NodeTest(NamedTuple):
    """A node beside the others of its make, by one metric. `ratio`: its cost ÷ theirs. `interval`: 95 %, from the noise of its rounds;
    None if there are too few. `spread`: standard deviation between the others, as a fraction."""

    metric: str
    node: str
    ratio: float
    interval: Interval | None
    spread: float
    p_value: float
    q_value: float = 1.0

    @property
    def is_slow(self) -> bool:
        return self.q_value <= ALARM and self.ratio >= 1 + MARGIN

    @property
    def is_fast(self) -> bool:
        return self.q_value <= ALARM and self.ratio <= 1 / (1 + MARGIN)


def judged_nodes(families: Sequence[Sequence[NodeTest]]) -> list[NodeTest]:
    """All tests with their q-values: false alarms are controlled over everything that is tested at once."""
    tests = [test for family in families for test in family]
    q_values = benjamini_hochberg([test.p_value for test in tests])
    return [test._replace(q_value=q) for test, q in zip(tests, q_values, strict=True)]


def node_tests(metric: str, costs: Costs) -> list[NodeTest]:
    """Each node beside the others; none if there is only one, or a value is not positive and finite."""
    known = {n: list(map(math.log, v)) for n, v in costs.items() if v and all(map(_is_positive, v))}
    if len(known) < 2:
        return []
    rounds = _without_common_rounds(known)
    levels = {node: statistics.median(values) for node, values in rounds.items()}
    noise = _noise(list(rounds.values()))
    return [_test(metric, node, rounds[node], levels, noise) for node in rounds]


def _is_positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _without_common_rounds(logs: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """Nodes ran at the same time: what all of them saw in a round, such as a slow file server, is no difference between them."""
    if len({len(values) for values in logs.values()}) > 1:
        return dict(logs)
    # Of few nodes the median is one of them, which would then seem to have no noise.
    middle = statistics.median if len(logs) >= _FEW else statistics.fmean
    common = [middle(values) for values in zip(*logs.values(), strict=True)]
    return {node: [v - c for v, c in zip(values, common, strict=True)] for node, values in logs.items()}


def _noise(rounds: Sequence[Sequence[float]]) -> float:
    """The variance of a node's median over rounds, as is typical of the nodes; 0 if there are too few rounds to tell."""
    found = [_variance_of_median(values) for values in rounds if len(values) > 2]
    if not found:
        return 0.0
    freedom = statistics.median(len(values) - 1 for values in rounds if len(values) > 2)
    return statistics.median(found) / (1 - 2 / (9 * freedom)) ** 3  # the median of variances lies below their mean


def _variance_of_median(values: Sequence[float]) -> float:
    return _OF_MEDIANS * statistics.variance(values) / len(values)


def _test(metric: str, node: str, own: Sequence[float], levels: Mapping[str, float], noise: float) -> NodeTest:
    others = [level for name, level in levels.items() if name != node]
    centre, spread = statistics.median(others), spread_between(others)
    freedom = _EFFICIENCY * (len(others) - 1)
    usual = USUAL_SPREAD**2 + noise
    variance = (_USUAL_FREEDOM * usual + freedom * spread**2) / (_USUAL_FREEDOM + freedom)
    of_centre = _OF_MEDIANS / len(others)
    away = levels[node] - centre
    chance = student_two_sided(away / math.sqrt(variance * (1 + of_centre)), _USUAL_FREEDOM + freedom)
    interval = None
    if len(own) > 2:
        error = math.sqrt(_variance_of_median(own) + max(spread**2, noise) * of_centre)
        reach = student_quantile(0.95, len(own) - 1) * error
        interval = Interval(math.exp(away - reach), math.exp(away + reach))
    return NodeTest(metric, node, math.exp(away), interval, math.expm1(spread), chance)


def spread_between(values: Sequence[float]) -> float:
    """The median deviation, or what the outer ones of many values suggest, if that is more: tails longer than Gauss's are usual, and
    none of them is named because of its like. A tenth of them may be broken."""
    if len(values) < _MANY:
        return median_deviation(values)
    middle = statistics.median(values)
    away = sorted(abs(value - middle) for value in values)
    return max(median_deviation(values), away[math.floor(_OUTER * (len(values) - 1))] / _OF_OUTER)


def median_deviation(values: Sequence[float]) -> float:
    """A robust standard deviation; 0 of a single value."""
    count = len(values)
    if count < 2:
        return 0.0
    middle = statistics.median(values)
    factor = _SMALL.get(count, count / (count - 0.8))
    return 1.4826 * factor * statistics.median(abs(value - middle) for value in values)
