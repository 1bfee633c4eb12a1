"""Ranks of a distributed program leave their loop at the same step, whatever each of them measured."""

from __future__ import annotations

import socket

import pytest
from counters import CountersInMemory

from benchprobe.loop.measurement import STOPPED, LoopMeasurement
from benchprobe.rendezvous.ranks import RankLease

RULES = [
    {"steps": 40},
    pytest.param({"seconds": 0.7}, marks=pytest.mark.long),
    pytest.param({"precision": 0.2, "max_steps": 200}, marks=pytest.mark.long),
]


@pytest.mark.parametrize("stop", RULES, ids=lambda rule: next(iter(rule)))
def test_ranks_stop_at_the_same_step_though_each_measures_for_itself(programs, stop):
    pytest.importorskip("torch")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
    program = """
        import os, random, time
        import torch
        import torch.distributed as dist
        from benchprobe import iterate
        dist.init_process_group("gloo")
        random.seed(dist.get_rank())
        one, steps = torch.ones(1), 0
        for i in iterate("train", range(5000)):
            dist.all_reduce(one)
            steps += 1
            time.sleep(0.002 * random.random())
        dist.barrier()
        print(steps)
    """
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    started = [programs.start(program, env={**shared, "RANK": str(rank)}, stop=stop, warmup={}) for rank in range(2)]
    records = [programs.finish(process) for process in started]
    assert [record.code for record in records] == [0, 0], records[0].errors + records[1].errors
    assert records[0].output == records[1].output
    assert int(records[0].output) < 5000
    assert {e["how"] for e in records[1].all("loop_end")} == {"stopped"}
    assert records[1].messages() == ""


def test_the_last_rank_to_be_done_decides():
    store = CountersInMemory()
    ranks = [RankLease(store, rank, 2, "train") for rank in range(2)]
    steps, going = 0, [True, True]
    while all(going):
        steps += 1
        for rank, agreement in enumerate(ranks):
            if steps == (10, 300)[rank]:
                agreement.say_done()
            going[rank] = agreement.renew(steps, lambda: True) or agreement.left(steps) > 0
    assert going == [False, False]
    assert steps >= 300


def test_a_rank_does_not_wait_for_ever_for_one_that_left():
    alone = RankLease(CountersInMemory(), 1, 2, "train", patience_s=0.05)
    steps = 0
    while steps < 100:
        steps += 1
        assert alone.renew(steps, lambda: True)


class BrokenStore:
    def add(self, key: str, amount: int) -> int:
        raise RuntimeError("connection reset")


def test_a_rank_that_cannot_ask_the_others_never_stops_alone():
    told = []
    agreement = RankLease(BrokenStore(), 1, 2, "train")
    measurement = LoopMeasurement({"steps": 0}, {"steps": 5}, None, told.append, agreement)
    measurement.begin(0)
    for step in range(20):
        measurement.add([1000], 1000 * step)
        measurement.keep_to_agreement()
    assert measurement.phase != STOPPED
    assert "connection reset" in next(event["text"] for event in told if event["event"] == "message")
