"""Warm-up, stop rules, the loop that counts, and the barrier."""

from __future__ import annotations

import pytest

LOOP = """
    from benchprobe import iterate
    for i in iterate("train", range(1_000_000), batch_size=1): pass
    print("after the loop", i)
"""


@pytest.mark.parametrize("steps", [1, 2, 15, 16, 17, 80, 999, 5000, 20_000, 123_457])
def test_exactly_so_many_steps_are_measured(measured, steps):
    record = measured(LOOP, stop={"steps": steps}, warmup={"steps": 7})
    assert record.steps(phase="measured") == steps
    assert record.steps(phase="warmup") == 7
    assert record.steps() == steps + 7
    assert record.output == f"after the loop {steps + 6}\n"
    assert record.one("measure")["step"] == 7
    assert record.one("stop")["step"] == steps + 7
    assert record.one("stop")["steps"] == steps
    assert record.one("loop_end")["how"] == "stopped"


def test_slow_steps_are_counted_exactly_too(measured):
    record = measured("""
        import time
        from benchprobe import iterate
        for i in iterate("train", range(100)):
            time.sleep(0.03 if i % 3 else 0.0)
    """, stop={"steps": 10}, warmup={"steps": 3})  # fmt: skip
    assert record.steps(phase="measured") == 10
    assert record.steps() == 13


def test_the_loop_takes_nothing_from_the_iterable_that_it_does_not_use(measured):
    record = measured("""
        from benchprobe import iterate
        data = iter(range(1000))
        used = list(iterate("train", data))
        print(len(used), next(data))
    """, stop={"steps": 90}, warmup={"steps": 10})  # fmt: skip
    assert record.output == "100 100\n"


def test_a_time_of_measuring_ends_at_the_first_step_after_it(measured):
    record = measured("""
        import time
        from benchprobe import iterate
        for i in iterate("train", range(100_000)): time.sleep(0.005)
    """, stop={"seconds": 0.5}, warmup={"steps": 2})  # fmt: skip
    total = [ns for e in record.all("steps", phase="measured") for ns in e["step_ns"]]
    assert sum(total) > 0.4e9
    assert sum(total[:-1]) < 0.5e9
    assert record.one("stop")["rule"] == "seconds"


def test_observations_are_whole_intervals(measured):
    record = measured("""
        import time
        from benchprobe import iterate
        for i in iterate("train", range(100_000)): time.sleep(0.004)
    """, stop={"observations": 5, "interval_s": 0.1}, warmup={"steps": 2})  # fmt: skip
    observations = record.one("stop")["detail"]["observations"]
    step_ns = [ns for e in record.all("steps", phase="measured") for ns in e["step_ns"]]
    assert len(observations) == 5
    assert sum(o["steps"] for o in observations) == len(step_ns)
    for o in observations:
        mine = step_ns[o["first"] : o["first"] + o["steps"]]
        assert o["ns"] == sum(mine) >= 0.1e9 > sum(mine[:-1])


def test_without_a_rule_the_loop_runs_to_its_end_and_is_marked(measured):
    record = measured("""
        from benchprobe import iterate
        for i in iterate("train", range(500)): pass
    """, warmup={"steps": 100})  # fmt: skip
    assert (record.steps(phase="warmup"), record.steps(phase="measured")) == (100, 400)
    assert not record.all("stop")


def test_a_loop_that_ends_before_it_is_warm_is_all_warmup(measured):
    record = measured("""
        from benchprobe import iterate
        for i in iterate("train", range(5)): pass
    """, warmup={}, stop={"steps": 3})  # fmt: skip
    assert record.steps(phase="warmup") == 5
    assert not record.all("measure")


def test_detection_takes_at_most_half_of_a_loop_of_known_length(measured):
    record = measured("""
        import time
        from benchprobe import iterate
        for i in iterate("train", range(40)): time.sleep(0.02)
    """, warmup={})  # fmt: skip
    assert (record.steps(phase="warmup"), record.steps(phase="measured")) == (20, 20)
    assert record.one("measure")["warmup"] == "cap"


def test_a_rule_that_was_not_satisfied_tells_at_the_end_what_it_knows(measured):
    record = measured("""
        import time
        from benchprobe import iterate
        for epoch in range(3):
            for i in iterate("train", range(20)): time.sleep(0.001 * (1 + i % 2))
    """, stop={"precision": 0.0001})  # fmt: skip
    stop = record.one("stop")
    assert (stop["by"], stop["steps"]) == ("loop", 60)
    assert stop["detail"]["reached"] is False
    assert stop["detail"]["median_ns"] > 1_000_000


def test_warmup_is_detected(measured):
    record = measured("""
        import time
        from benchprobe import iterate
        for i in iterate("train", range(100_000)): time.sleep(0.1 if i < 3 else 0.005)
    """, warmup={"max_seconds": 20, "min_seconds": 0.2}, stop={"steps": 5})  # fmt: skip
    assert record.one("measure")["warmup"] in ("detected", "cap")
    assert record.steps(phase="warmup") >= 3
    assert record.steps(phase="measured") == 5


def test_epochs_continue_one_measurement_and_end_at_once_when_it_is_complete(measured):
    record = measured("""
        from benchprobe import iterate
        lengths = []
        for epoch in range(6):
            lengths.append(sum(1 for _ in iterate("train", range(10))))
            for _ in iterate("validate", range(4)): pass
        print(lengths)
    """, stop={"steps": 25}, warmup={"steps": 3})  # fmt: skip
    assert record.output == "[10, 10, 8, 0, 0, 0]\n"
    assert record.steps("train", phase="measured") == 25
    assert record.steps("validate", phase="measured") == 24
    firsts = [e["first"] for e in record.all("steps", loop=1)]
    assert firsts == sorted(firsts)
    assert len(record.all("stop")) == 1


def test_the_loop_that_was_asked_for_counts(measured):
    record = measured("""
        from benchprobe import iterate
        for name in ("prepare", "train", "test"):
            print(name, sum(1 for _ in iterate(name, range(100))))
    """, loop="test", stop={"steps": 5})  # fmt: skip
    assert record.output == "prepare 100\ntrain 100\ntest 5\n"
    assert [e["counts"] for e in record.all("loop")] == [False, False, True]


def test_train_counts_even_inside_another_loop_that_began_first(measured):
    record = measured("""
        from benchprobe import iterate
        n = 0
        for epoch in iterate("epoch", range(4)):
            for i in iterate("train", range(10)): n += 1
        print(epoch, n)
    """, stop={"steps": 15}, warmup={"steps": 10})  # fmt: skip
    assert record.output == "3 25\n"
    assert record.steps("train", phase="measured") == 15
    assert record.all("loop", name="epoch")[-1]["counts"] is False


def test_the_first_loop_counts_if_none_is_called_train(measured):
    record = measured("""
        from benchprobe import iterate
        print(sum(1 for _ in iterate("bench", range(100))), sum(1 for _ in iterate("other", range(100))))
    """, stop={"steps": 5})  # fmt: skip
    assert record.output == "5 100\n"


def test_async_loops_stop_exactly_too(measured):
    record = measured("""
        import asyncio
        from benchprobe import iterate
        async def data():
            i = 0
            while True:
                yield i
                i += 1
        async def main():
            async for i in iterate("train", data()): pass
            print(i)
        asyncio.run(main())
    """, stop={"steps": 1234}, warmup={"steps": 10})  # fmt: skip
    assert record.output == "1243\n"
    assert record.steps(phase="measured") == 1234


def test_a_rule_that_makes_no_sense_is_told_and_the_program_goes_on(measured):
    record = measured(LOOP.replace("1_000_000", "100"), stop={"steps": "many"}, warmup={"steps": -1})
    assert record.output == "after the loop 99\n"
    assert record.steps() == 100
    assert "stop: steps" in record.messages()
    assert "warm-up: steps" in record.messages()


def test_a_batch_size_may_be_an_integer_of_another_kind(measured):
    record = measured("""
        from benchprobe import iterate
        class Eight:
            def __index__(self): return 8
        for i in iterate("train", range(3), batch_size=Eight()): pass
    """)
    assert {e["items"] for e in record.all("steps")} == {8}


def test_a_wrong_batch_size_is_noticed_at_the_short_last_batch_and_a_right_one_is_not_complained_about(
    measured_with_torch,
):
    record = measured_with_torch("""
        import torch
        from benchprobe import iterate
        data = [torch.zeros(8, 2)] * 20
        for x in iterate("wrong", data + [torch.zeros(3, 2)], batch_size=8): pass
        for x in iterate("train", data, batch_size=8): pass
        for x in iterate("other", data, batch_size=lambda batch: len(batch) * 2): pass
        for x in iterate("broken", data, batch_size=lambda batch: batch.nothing): pass
    """)
    assert record.steps() == 20
    [wrong] = [event["text"] for event in record.all("message") if "last batch" in event["text"]]
    assert "the last batch has 3 items, not 8" in wrong
    assert "'wrong'" in wrong
    assert {e["items"] for e in record.all("steps", loop=record.loop("other"))} == {16}
    assert {e["items"] for e in record.all("steps", loop=record.loop("broken"))} == {None}


def test_processes_that_meet_are_measured_at_the_same_time(programs):
    meeting = programs.folder / "meeting"
    meeting.mkdir()
    program = """
        import sys, time
        from benchprobe import iterate
        pause = float(sys.argv[1])
        for i in iterate("train", range(100_000)): time.sleep(pause)
    """
    started = [
        programs.start(
            program,
            arguments=(pause,),
            stop={"steps": 30},
            warmup={"steps": 4},
            barrier={"folder": str(meeting), "size": 2, "rank": rank},
            stream=str(programs.folder / f"{rank}.data"),
        )
        for rank, pause in enumerate(("0.005", "0.03"))
    ]
    records = []
    for rank, process in enumerate(started):
        programs.stream = programs.folder / f"{rank}.data"
        records.append(programs.finish(process))
    quick, slow = records
    for record in records:
        assert record.code == 0, record.errors
        assert record.steps(phase="measured") == 30
    assert abs(quick.one("measure")["t"] - slow.one("measure")["t"]) < 0.5e9
    assert quick.steps(phase="after") >= 10  # ran on until the other one was measured
    ended = slow.one("stop")["t"]
    assert quick.one("loop_end")["t"] >= ended


def test_nobody_waits_for_a_process_that_is_gone(programs):
    meeting = programs.folder / "meeting"
    meeting.mkdir()
    (meeting / "gone-1").touch()
    record = programs.run(LOOP, stop={"steps": 30}, barrier={"folder": str(meeting), "size": 2, "rank": 0})
    assert record.steps() == 30


def test_a_barrier_whose_folder_is_missing_is_told_and_the_program_is_measured_alone(programs):
    barrier = {"folder": str(programs.folder / "nowhere"), "size": 2, "rank": 0}
    record = programs.run(LOOP, stop={"steps": 30}, barrier=barrier)
    assert record.steps(phase="measured") == 30
    assert "measuring alone" in record.messages()
