"""Nodes beside nodes: pairs, makes, faults, reasons, what follows from them, and how it is shown and read again."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from benchwright.core.errors import InvalidInput
from benchwright.core.health import CpuHealth, DiskHealth, GpuHealth, Health, MemoryHealth
from benchwright.core.machine import Accelerator, Machine
from benchwright.core.note import Note
from benchwright.doctor.check import noise_of
from benchwright.doctor.checked_nodes import CheckedNode, ClusterCheckup, NodePair
from benchwright.doctor.cluster import PARTNERS, _with_pairs, rounds_of_pairs
from benchwright.doctor.cluster_report import read_cluster_json, rendered
from benchwright.doctor.cluster_verdict import ClusterVerdict, judged
from benchwright.doctor.judge_health import judge_gpus, judge_health
from benchwright.doctor.makes import makes_of

MACHINE = Machine(
    hostname="h", system="Linux", kernel="6", architecture="x86_64", cpu="Xeon", cores=8, cores_total=8,
    memory_bytes=64 << 30, python="3.11.7",
)  # fmt: skip


def machine(gpus: int = 0, **fields: Any) -> Machine:
    return replace(MACHINE, accelerators=tuple(Accelerator(index=i, name="H100") for i in range(gpus)), **fields)


def health(**cpu: Any) -> Health:
    return Health(cpu=CpuHealth(**cpu), memory=MemoryHealth(), disk=DiskHealth(folder="/"))


def node(name: str, *, slow: float = 1.0, state: Health | None = None, **fields: Any) -> CheckedNode:
    chance = random.Random(name)
    costs = {m: tuple(slow * math.exp(chance.gauss(0, 0.005)) for _ in range(16)) for m in ("wall time", "CPU time")}
    notes = () if state is None else (*judge_health(state, MACHINE), *judge_gpus(state.gpus, None))
    given = {"make": "Xeon, 8 cores", "machine": MACHINE, "notes": notes, "costs": costs}
    return CheckedNode(name=name, **(given | fields))


def cluster(*special: CheckedNode, count: int = 16, **fields: Any) -> ClusterCheckup:
    others = tuple(node(f"n{i}") for i in range(count))
    return ClusterCheckup(on="slurm", started="2026-11-18T08:00:00+00:00", nodes=(*others, *special), **fields)


def out(verdict: ClusterVerdict) -> list[str]:
    return [each.node.name for each in verdict.out]


@pytest.mark.parametrize("count", range(2, 18))
def test_every_node_meets_three_others_and_nobody_twice_in_a_round(count: int):
    names = [f"n{i}" for i in range(count)]
    rounds = rounds_of_pairs(names)
    assert all(max(Counter(n for pair in pairs for n in pair).values()) == 1 for pairs in rounds)
    met = [frozenset(pair) for pairs in rounds for pair in pairs]
    assert len(set(met)) == len(met)
    assert min(sum(name in pair for pair in met) for name in names) >= min(PARTNERS, count - 1)
    assert len(rounds) <= PARTNERS + 1


def test_a_missing_gpu_makes_no_other_make_but_another_design_does():
    makes = makes_of({"a": machine(8), "b": machine(8), "c": machine(7), "d": machine(8), "e": machine(0, cpu="EPYC")})
    assert makes["c"] == makes["a"] == "Xeon, 8 cores, 8 × H100"
    assert makes["e"] == "EPYC, 8 cores"
    half = makes_of({"a": machine(8), "b": machine(8), "c": machine(4), "d": machine(4)})
    assert half["c"] != half["a"]


def test_a_slow_node_is_out_with_the_reason_that_others_lack():
    limited = health(quota_cores=0.2, throttled_percent=90.0, governors={"powersave": 8})
    lazy = health(governors={"powersave": 8})  # all have it: no reason
    nodes = tuple(node(f"n{i}", state=lazy) for i in range(7))
    verdict = judged(replace(cluster(), nodes=(*nodes, node("bad", slow=1.2, state=limited))))
    assert out(verdict) == ["bad"]
    [bad] = verdict.out
    assert [note.kind for note in bad.reasons] == ["cpu.quota"]
    assert bad.slow[0].interval is not None
    assert bad.slow[0].interval.low > 1.15


def test_a_limit_of_the_clock_is_a_reason():
    [bad] = judged(cluster(node("bad", slow=1.2, state=health(clock_limit_mhz=2000.0, clock_most_mhz=3500.0)))).out
    assert "the clock is limited to 2,000 of 3,500 MHz" in bad.reasons[0].text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"machine": machine(0)}, "8 of 8 GPUs missing"),
        ({"machine": machine(8, memory_bytes=32 << 30)}, "32 GiB of memory, the others have 64 GiB"),
        ({"problem": "it does not answer"}, "it does not answer"),
        ({"notes": tuple(judge_gpus((GpuHealth(index=2, name="H100", uncorrected_errors=3),), None))}, "3 uncorrected"),
        ({"notes": tuple(judge_gpus((GpuHealth(index=2, name="H100", link_width=4, link_width_most=16),), None))}, "4 of 16 lanes"),
    ],
)  # fmt: skip
def test_broken_hardware_is_out_however_fast_it_is(fields: dict[str, Any], text: str):
    others = tuple(node(f"n{i}", machine=machine(8)) for i in range(4))
    bad = node("bad", **({"machine": machine(8)} | fields))
    verdict = judged(replace(cluster(), nodes=(*others, bad)))
    assert out(verdict) == ["bad"]
    assert text in str(verdict.out[0].faults[0])


def test_nodes_are_compared_within_their_make_only():
    old = tuple(node(f"old{i}", slow=2.0, make="old") for i in range(4))
    assert out(judged(cluster(*old))) == []


def pairs_of(names: list[str], slow: set[str]) -> tuple[NodePair, ...]:
    chance, found = random.Random(4), []
    for a, b in (pair for pairs in rounds_of_pairs(names) for pair in pairs):
        factor = 3.0 if {a, b} & slow or f"{a}{b}" in slow else 1.0
        found.append(NodePair(nodes=(a, b), seconds=tuple(factor * math.exp(chance.gauss(-5, 0.01)) for _ in range(8))))
    return tuple(found)


def test_slow_pairs_name_the_node_they_share():
    checkup = cluster(count=12)
    names = [each.name for each in checkup.nodes]
    pairs = pairs_of(names, {"n5"})
    verdict = judged(replace(checkup, nodes=_with_pairs(checkup.nodes, pairs), pairs=pairs))
    assert out(verdict) == ["n5"]
    assert {shared for _, shared in verdict.slow_pairs} == {"n5"}
    assert len(verdict.slow_pairs) == 3


def test_a_single_slow_pair_is_told_and_names_no_node():
    checkup = cluster(count=12)
    names = [each.name for each in checkup.nodes]
    [first, *_] = pairs_of(names, set())
    pairs = pairs_of(names, {"".join(first.nodes)})
    verdict = judged(replace(checkup, nodes=_with_pairs(checkup.nodes, pairs), pairs=pairs))
    assert out(verdict) == []
    assert [(test.node, shared) for test, shared in verdict.slow_pairs] == [(first.name, None)]


def test_a_node_that_became_slower_since_then_is_named_even_if_it_was_the_fastest():
    then = cluster(node("bad", slow=0.94))
    now = cluster(node("bad", slow=1.01))
    assert out(judged(now)) == []
    verdict = judged(now, then)
    assert out(verdict) == ["bad"]
    assert verdict.out[0].slow[0].metric.endswith(", since then")
    assert out(judged(now, cluster(node("bad", slow=1.01)))) == []


def test_what_is_written_can_be_read_again(tmp_path: Path):
    noise = noise_of("process.duration", [(1.0, 1.01), (1.02, 1.0), (1.0, 1.0), (1.01, 1.0), (0.99, 1.0), (1.0, 1.03)])
    bad = node("bad", slow=1.3, state=health(quota_cores=0.2), noise=(noise,))
    verdict = judged(cluster(bad, pairs=pairs_of(["n1", "n2"], set())))
    file = tmp_path / "then.json"
    file.write_text(rendered(verdict, "json", 80))
    assert read_cluster_json(str(file)) == verdict.checkup
    body = json.loads(file.read_text())
    assert (body["verdict"], [each["node"] for each in body["out"]]) == ("error", ["bad"])
    assert 0.003 > body["spreads"]["Xeon, 8 cores"]["wall time"] > 0


@pytest.mark.parametrize("text", ["", "[]", '{"format": "x"}', '{"format": "benchwright-cluster", "version": 9}',
    '{"format": "benchwright-cluster", "version": 1}', '{"format": "benchwright-cluster", "version": 1, "checkup": {}}'])  # fmt: skip
def test_a_file_that_is_no_checkup(tmp_path: Path, text: str):
    file = tmp_path / "then.json"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=r"then\.json"):
        read_cluster_json(str(file))


def test_a_file_that_is_not_there():
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_cluster_json("no/such.json")


def test_the_screen_fits_and_says_why():
    evil = node("<script>alert(1)</script>", slow=1.2, notes=(Note(kind="cpu.quota", text="<b>limited</b>"),))
    verdict = judged(
        cluster(evil, node("gone", problem="it does not answer", costs={}, make=""), skipped={"suite": "no torch"})
    )
    text = rendered(verdict, "screen", 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "→ <b>limited</b>" in text
    assert "suite not measured: no torch" in text
    assert "2 nodes out" in text
    page = rendered(verdict, "html", 80)
    assert "<script>alert" not in page
    assert "<b>limited" not in page
    assert "it does not answer" in page
    assert "every node is as fast" in rendered(judged(cluster()), "screen", 80)


def test_a_node_that_may_use_fewer_cores_is_out_even_if_the_others_are_as_busy():
    limited = node("bad", state=health(quota_cores=0.2, throttled_percent=90.0), machine=machine(0, cores=1))
    [bad] = judged(cluster(limited)).out
    assert bad.slow == []
    assert [note.kind for note in bad.faults] == ["cpu.quota", "cpu.missing"]


def test_a_benchmark_that_fails_everywhere_is_told_and_one_that_fails_on_one_node_is_its_fault():
    def failing(count: int) -> ClusterVerdict:
        note = Note(kind="launches.matmul-fp8.failed", text="matmul-fp8: crashed", severity="error")
        nodes = tuple(node(f"n{i}", notes=(note,) if i < count else ()) for i in range(6))
        return judged(replace(cluster(), nodes=nodes))

    assert out(failing(6)) == []
    assert "failed on 6 nodes: matmul-fp8: crashed" in rendered(failing(6), "screen", 80)
    assert out(failing(1)) == ["n0"]
