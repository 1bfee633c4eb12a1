"""Which nodes of a cluster are out, by how much and why, and which pairs of nodes are slow."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from benchwright.analysis.statistics.node_spread import NodeTest, judged_nodes, node_tests, spread_between
from benchwright.core.note import Note
from benchwright.doctor.checked_nodes import CheckedNode, ClusterCheckup
from benchwright.doctor.makes import faults_of, reasons_for

PAIR = "all-reduce of a pair"
SINCE = ", since then"  # ends the name of a metric: its change


class NodeVerdict(NamedTuple):
    """`slow`: the tests that name it, the worst first. `faults`: it is out because of them, `reasons`: they may explain why it is slow.
    `slow_pairs`: with whom its all-reduce is slow."""

    node: CheckedNode
    tests: Sequence[NodeTest]
    faults: Sequence[Note]
    reasons: Sequence[Note]
    slow_pairs: Sequence[str]

    @property
    def slow(self) -> list[NodeTest]:
        return sorted((test for test in self.tests if test.is_slow), key=lambda test: -test.ratio)

    @property
    def is_out(self) -> bool:
        return bool(self.slow or self.faults or len(self.slow_pairs) > 1)


class ClusterVerdict(NamedTuple):
    """`slow_pairs`: with the node that several of them share, if there is one."""

    checkup: ClusterCheckup
    nodes: Sequence[NodeVerdict]
    slow_pairs: Sequence[tuple[NodeTest, str | None]]
    before: ClusterCheckup | None = None

    @property
    def out(self) -> list[NodeVerdict]:
        return [node for node in self.nodes if node.is_out]

    @property
    def makes(self) -> dict[str, list[NodeVerdict]]:
        found: dict[str, list[NodeVerdict]] = {}
        for each in self.nodes:
            found.setdefault(each.node.make, []).append(each)
        return found


def spreads_of(nodes: Sequence[NodeVerdict]) -> dict[str, float]:
    """Robust standard deviations between nodes, as logarithms, metric by metric."""
    metrics = dict.fromkeys(test.metric for each in nodes for test in each.tests)
    return {
        metric: spread_between([math.log(t.ratio) for each in nodes for t in each.tests if t.metric == metric])
        for metric in metrics
    }


def judged(checkup: ClusterCheckup, before: ClusterCheckup | None = None) -> ClusterVerdict:
    """`before`: an earlier checkup of the same nodes, whose changes are tested, too."""
    tests = node_and_pair_tests(checkup, before)
    pairs = {pair.name: pair.nodes for pair in checkup.pairs}
    slow = [test for test in tests if test.metric == PAIR and test.is_slow]
    shared = Counter(node for test in slow for node in pairs[test.node])
    common = {test.node: max(pairs[test.node], key=lambda n: shared[n]) for test in slow}
    nodes = []
    for node in checkup.nodes:
        others = [other for other in checkup.nodes if other is not node and other.make == node.make]
        own = [test for test in tests if test.metric != PAIR and test.node == node.name]
        partners = [next(n for n in pairs[t.node] if n != node.name) for t in slow if node.name in pairs[t.node]]
        blamed = partners if shared[node.name] > 1 else []
        nodes.append(NodeVerdict(node, own, faults_of(node, others), reasons_for(node, others), blamed))
    return ClusterVerdict(checkup, nodes, [(t, n if shared[n := common[t.node]] > 1 else None) for t in slow], before)


def node_and_pair_tests(checkup: ClusterCheckup, before: ClusterCheckup | None) -> list[NodeTest]:
    """Every node beside the others of its make, by every metric; every pair beside the other pairs; and, if there is an earlier
    checkup, how each node has changed since then, beside how the others have. One family: false alarms are controlled over all."""
    families = []
    for make in dict.fromkeys(node.make for node in checkup.nodes if node.costs):
        same = [node for node in checkup.nodes if node.make == make]
        for metric in dict.fromkeys(metric for node in same for metric in node.costs):
            costs = {node.name: node.costs[metric] for node in same if metric in node.costs}
            families.append(node_tests(metric, costs))
            if before is not None:
                then = {n.name: sorted(n.costs[metric]) for n in before.nodes if n.costs.get(metric)}
                changes = {n: [v / then[n][len(then[n]) // 2] for v in vs] for n, vs in costs.items() if n in then}
                families.append(node_tests(f"{metric}{SINCE}", changes))
    families.append(node_tests(PAIR, {pair.name: pair.seconds for pair in checkup.pairs if pair.seconds}))
    return judged_nodes(families)
