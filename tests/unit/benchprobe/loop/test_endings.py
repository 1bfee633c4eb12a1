"""However a program ends, and whatever happens to its stream, the record is whole and the program unharmed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import wait_for


def steps_in(stream: Path) -> int:
    """How many the stream tells of so far; its last line may be half written."""
    lines = stream.read_text().splitlines(keepends=True) if stream.exists() else []
    events = (json.loads(line) for line in lines if line.endswith("\n"))
    return sum(len(event["step_ns"]) for event in events if event["event"] == "steps")


LOOP = """
    from benchprobe import iterate, give
    for i in iterate("train", range(5000)):
        give(loss=float(i))
"""


def test_the_end_of_the_program_loses_nothing(measured):
    record = measured(LOOP)
    assert [value for _, value in record.given("loss")] == [float(i) for i in range(5000)]
    assert record.one("probe_end")["how"] == "end"
    assert record.events[-1]["event"] == "probe_end"


@pytest.mark.parametrize(
    ("ending", "code", "how"),
    [
        ("raise ValueError('no')", 1, "exception"),
        ("raise SystemExit(3)", 3, "end"),
        ("import sys; sys.exit('bye')", 1, "end"),
        ("raise KeyboardInterrupt", -signal.SIGINT, "exception"),
    ],
)
def test_an_exception_or_exit_inside_the_loop_loses_nothing(programs, ending, code, how):
    record = programs.finish(programs.start(LOOP + f"        if i == 4321: {ending}\n"))
    assert record.code == code
    assert record.steps() == 4321
    assert len(record.given("loss")) == 4321
    assert [e["values"] for e in record.all("give")] == [{"loss": 4321.0}]
    assert record.one("probe_end")["how"] == how


def test_a_killed_program_loses_only_its_last_moments(programs):
    process = programs.start("""
        import os, time
        from benchprobe import iterate
        progress = os.open("progress", os.O_CREAT | os.O_WRONLY)
        for i in iterate("train", range(100_000)):
            os.pwrite(progress, b"%d %d" % (i, time.perf_counter_ns()), 0)
            time.sleep(0.001)
    """)
    assert wait_for(lambda: steps_in(programs.stream) > 500)
    process.kill()
    record = programs.finish(process)
    steps_done, _ = map(int, (programs.folder / "progress").read_text().split())
    recorded = record.steps()
    last = record.all("steps")[-1]
    lost_ns = sum(last["step_ns"]) // len(last["step_ns"]) * (steps_done - recorded)
    assert steps_done > 500
    assert lost_ns < 2.5e9  # ten times as long as it waits before it writes
    assert record.junk == []


def test_a_long_step_does_not_hold_back_the_ones_before_it(programs):
    process = programs.start("""
        import time
        from benchprobe import iterate, give
        for i in iterate("train", range(100)):
            give(i=i)
            if i == 20:
                print("long", flush=True)
                time.sleep(60)
    """)
    assert process.stdout is not None
    process.stdout.readline()
    assert wait_for(lambda: steps_in(programs.stream) >= 20)
    process.kill()
    assert programs.finish(process).steps() == 20


def test_many_forked_children_and_their_parent_share_the_stream(measured):
    record = measured("""
        import os, time
        from benchprobe import iterate, give
        children = []
        for i in iterate("train", range(20)):
            give(i=i)
            child = os.fork()
            if child == 0:
                for j in iterate("child", range(20)):
                    give(number=i)
                raise SystemExit
            children.append(child)
        for child in children:
            assert os.waitpid(child, 0)[1] == 0
    """)
    assert record.junk == []
    assert record.steps("train") == 20
    assert [value for _, value in record.given("i")] == list(range(20))
    assert len(record.all("probe")) == 21
    assert record.steps("child") == 20 * 20
    given = [v for e in record.all("steps") for v in e.get("given", {}).get("number", [[], []])[1]]
    assert sorted(given) == sorted(list(range(20)) * 20)


def test_a_child_forked_in_the_loop_goes_on_with_it_and_leaves_no_stamps_behind(measured):
    record = measured("""
        import os, time
        from benchprobe import iterate, give
        child = None
        for i in iterate("train", range(40)):
            time.sleep(0.005)
            give(loss=float(i))
            if i == 5: child = os.fork()
        if child: assert os.waitpid(child, 0)[1] == 0
    """)
    assert record.steps("train") == 40
    assert [e["values"] for e in record.all("give")] == [{"loss": float(i)} for i in range(6, 40)]


def test_a_forked_child_that_runs_the_loop_again_is_measured_from_its_first_step(measured):
    record = measured("""
        import os
        from benchprobe import iterate
        for i in iterate("train", range(6)): pass
        child = os.fork()
        if child == 0:
            print(len(list(iterate("other", range(30)))), len(list(iterate("train", range(30)))), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(len(list(iterate("train", range(30)))))
    """, stop={"steps": 10})  # fmt: skip
    assert record.output.split() == ["30", "10", "4"]


def test_a_loop_gone_through_by_next_is_whole_and_the_end_is_silent(measured):
    record = measured("""
        from benchprobe import iterate
        batches = iter(iterate("train", range(1000)))
        for step in range(10): next(batches)
    """)  # fmt: skip
    assert record.errors == ""
    assert record.steps("train") == 9  # the tenth never ended
    assert record.one("loop_end")["how"] == "left"


def test_what_happens_after_the_end_of_the_probe_is_not_lost_either(measured):
    record = measured("""
        import atexit
        def late():
            give(late=1.5)
            for i in iterate("late", range(5)): pass
        atexit.register(late)
        from benchprobe import iterate, give
        for i in iterate("train", range(5)): pass
    """)  # fmt: skip
    assert [e["values"] for e in record.all("give")] == [{"late": 1.5}]
    assert record.steps("late") == 5


def test_workers_of_multiprocessing_record_what_they_give(measured):
    record = measured("""
        import multiprocessing, sys
        from benchprobe import give
        def work(n):
            give(n=n)
        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                context = multiprocessing.get_context(method)
                workers = [context.Process(target=work, args=(n,)) for n in range(5)]
                for w in workers: w.start()
                for w in workers: w.join()
    """)
    assert sorted(e["values"]["n"] for e in record.all("give")) == sorted(list(range(5)) * 2)


def test_ranks_write_to_one_stream_and_say_who_they_are(programs):
    program = """
        from benchprobe import iterate, give
        for i in iterate("train", range(3000)): give(loss=float(i))
    """
    started = [programs.start(program, env={"RANK": str(rank)}) for rank in range(4)]
    for process in started:
        record = programs.finish(process)
    assert record.junk == []
    assert {e["rank"] for e in record.all("probe")} == {0, 1, 2, 3}
    assert record.steps() == 4 * 3000


def test_a_full_disk_does_not_harm_the_program(programs):
    record = programs.finish(programs.start(LOOP + "    print('finished')\n", stream="/dev/full"))
    assert (record.code, record.output, record.errors) == (0, "finished\n", "")


def test_a_stream_that_cannot_be_opened_does_not_harm_the_program(programs):
    record = programs.finish(programs.start(LOOP, stream=str(programs.folder / "no" / "folder" / "x")))
    assert (record.code, record.errors) == (0, "")


def test_a_configuration_that_cannot_be_read_is_told_once_and_the_program_runs(programs):
    process = programs.start(LOOP, env={"BENCHPROBE_CONFIG": "{nonsense"})
    record = programs.finish(process)
    assert record.code == 0
    assert record.errors.count("runs unmeasured") == 1


def test_a_program_that_closes_all_descriptors_keeps_its_stream_and_its_own_files(measured, programs):
    record = measured("""
        import os, time
        from benchprobe import iterate, give
        for i in iterate("train", range(100)):
            time.sleep(0.01)
            if i == 50:
                os.closerange(3, 100)
                own = [os.open(f"own-{n}", os.O_CREAT | os.O_RDWR) for n in range(10)]
    """)
    assert record.steps() == 100
    assert all((programs.folder / f"own-{n}").read_bytes() == b"" for n in range(10))


def test_a_pipe_takes_lines_that_do_not_mix_between_processes(programs):
    reader, writer = os.pipe()
    started = [programs.start(LOOP, stream=f"fd:{writer}", pass_fds=(writer,)) for _ in range(2)]
    os.close(writer)
    with open(reader, encoding="utf-8") as lines:
        programs.stream.write_text(lines.read())
    for process in started:
        record = programs.finish(process)
    assert record.junk == []
    assert record.steps() == 2 * 5000
    assert all(len(str(event)) < 8192 for event in record.events)


def test_a_pipe_that_nobody_reads_does_not_stop_the_program(programs):
    reader, writer = os.pipe()
    process = programs.start(LOOP.replace("5000", "60_000"), stream=f"fd:{writer}", pass_fds=(writer,))
    record = programs.finish(process)
    os.close(reader)
    os.close(writer)
    assert record.code == 0, record.errors


def test_a_pipe_whose_reader_is_gone_does_not_stop_the_program(programs):
    reader, writer = os.pipe()
    os.close(reader)
    record = programs.finish(programs.start(LOOP, stream=f"fd:{writer}", pass_fds=(writer,)))
    os.close(writer)
    assert (record.code, record.errors) == (0, "")


def test_the_program_sees_no_thread_of_ours(measured):
    record = measured("""
        import threading
        from benchprobe import give, iterate
        for i in iterate("train", range(10)):
            give(threads=threading.active_count(), names=" ".join(t.name for t in threading.enumerate()))
    """)
    assert [count for _, count in record.given("threads")] == [1] * 10
    assert {names for _, names in record.given("names")} == {"MainThread"}


def test_run_plainly_it_is_inert(programs):
    program = programs.write("""
        import sys
        from benchprobe import iterate, give, phase
        data = [1, 2, 3]
        assert iterate("train", data, batch_size=3) is data
        assert give(loss=1) is None
        with phase("x"): pass
        @phase("y")
        def f(): return 4
        assert f() == 4
        assert "threading" not in sys.modules and "json" not in sys.modules
        async def numbers(): yield 1
        async def main(): return [x async for x in iterate("a", numbers())]
        import asyncio
        assert asyncio.run(main()) == [1]
    """)
    # Measuring the tests' own coverage would import what the program must not.
    plain = {k: v for k, v in programs.environment(None).items() if not k.startswith("COVERAGE_")}
    done = subprocess.run([sys.executable, program], env=plain, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not programs.stream.exists()


@pytest.mark.parametrize(("switch", "steps", "how"), [("1", 7, "break"), ("0", 6, "left")])
def test_break_detection_can_be_switched_off(programs, switch, steps, how):
    program = """
        from benchprobe import iterate
        for i in iterate("train", range(100)):
            if i == 6:
                break
    """
    record = programs.finish(programs.start(program, env={"BENCHPROBE_BREAK_DETECTION": switch}))
    assert (record.steps("train"), record.one("loop_end")["how"]) == (steps, how)
