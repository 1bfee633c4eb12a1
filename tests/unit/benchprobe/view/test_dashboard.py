"""`python -m benchprobe main.py`: what people see, and that the program notices nothing."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchprobe.view.dashboard import status, table
from benchprobe.view.summary import StreamSummary

LOOP = Path(__file__).parents[3] / "programs" / "training_loop.py"


def probe(programs, *arguments, **options):
    argv = [sys.executable, "-m", "benchprobe", *map(str, arguments)]
    return subprocess.run(argv, cwd=programs.folder, env=programs.environment(None), text=True, capture_output=True,
                          timeout=600, **options)  # fmt: skip


def test_the_program_runs_as_with_plain_python_and_a_summary_follows(programs):
    done = probe(programs, "--warmup", "5", LOOP, "200", "0.001")
    assert done.returncode == 0
    assert done.stdout == f"begin {LOOP} __main__\nend\n"
    title, header, row = done.stderr.splitlines()[-3:]
    assert "training_loop.py finished" in title
    assert row.split()[:3] == ["train", "200", "5"]
    assert "items/s" in row
    assert row.split()[-1] == "0.005"
    assert all(len(line) <= 80 for line in done.stderr.splitlines())


def test_the_rules_on_the_command_line_hold_and_the_stream_is_kept(programs):
    kept = programs.folder / "kept.data"
    done = probe(programs, "--stop", "50", "--warmup", "5", "--stream", kept, "--json", LOOP, "100000", "0")
    figures = json.loads(done.stderr.splitlines()[-1])
    (loop,) = figures["loops"]
    assert (loop["loop"], loop["steps"], loop["warmup_steps"]) == ("train", 55, 5)
    assert loop["rate_unit"] == "items/s"
    assert figures["peak_bytes"] > 1_000_000
    kinds = [json.loads(line)["event"] for line in kept.read_text().splitlines()]
    assert kinds[0] == "probe"
    assert kinds[-1] == "probe_end"


def test_a_module_can_be_run(programs):
    (programs.folder / "package").mkdir()
    programs.write("import sys; print(sys.argv[1:], __name__, __package__)", "package/work.py")
    done = probe(programs, "-m", "package.work", "--stop", "x")
    assert done.stdout == "['--stop', 'x'] __main__ package\n"
    assert "no loop was measured" in done.stderr


def test_the_exit_code_and_the_traceback_are_those_of_the_program(programs):
    script = programs.write("import sys; sys.exit(7)")
    assert probe(programs, script).returncode == 7
    script = programs.write("raise ValueError('here')")
    done = probe(programs, script)
    assert done.returncode == 1
    assert f'File "{script}", line 1, in <module>' in done.stderr
    script = programs.write("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    done = probe(programs, script)
    assert done.returncode == 128 + signal.SIGKILL
    assert "was killed by signal 9" in done.stderr


def test_an_interrupt_reaches_the_program_and_the_summary_is_still_shown(programs):
    script = programs.write("""
        import time
        from benchprobe import iterate
        for i in iterate("train", range(100_000), batch_size=8):
            time.sleep(0.005)
            if i == 200: print("measured", flush=True)
    """)
    argv = [sys.executable, "-m", "benchprobe", "--warmup", "1", str(script)]
    process = subprocess.Popen(argv, env=programs.environment(None), text=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "measured\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "was killed by signal 2" in errors
    assert "items/s" in errors.splitlines()[-1]


@pytest.mark.parametrize("wrong", [("--stop", "soon"), ("--warmup", "x"), ()])
def test_wrong_options_are_told(programs, wrong):
    done = probe(programs, *wrong)
    assert done.returncode == 2
    assert "benchprobe: error:" in done.stderr


def in_a_terminal(programs, *arguments):
    """What a terminal shows, and the exit code."""
    argv = [sys.executable, "-m", "benchprobe", *map(str, arguments)]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, argv, programs.environment(None))
    shown = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            data = b""
        if not data:
            break
        shown += data
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_in_a_terminal_one_line_is_drawn_again_and_again(programs):
    shown, code = in_a_terminal(programs, "--stop", "100", "--warmup", "10", LOOP, "1000", "0.01")
    assert code == 0
    assert shown.count("\r\x1b[Ktrain [") >= 2
    assert "/100 | " in shown
    assert "end\r\n" in shown
    assert "finished" in shown


def test_in_a_terminal_the_program_has_one_too(programs):
    script = programs.write("import sys; print(sys.stdout.isatty(), sys.stderr.isatty(), sys.stdin.isatty())")
    shown, _ = in_a_terminal(programs, script)
    assert "True True True" in shown


def test_the_status_line_fits_any_width():
    summary = StreamSummary()
    summary.add({"event": "loop", "process": 1, "loop": 1, "name": "train" * 9, "total": 10**9, "counts": True})
    summary.add({"event": "steps", "process": 1, "loop": 1, "phase": "measured", "step_ns": [10**9], "wait_ns": [1],
                 "items": 10**9, "given": {"loss": [[0], [float("nan")]]}})  # fmt: skip
    for width in range(10, 120):
        assert len(status(summary, 123456, 10**13, None, width)) <= width
    assert "loss nan" in status(summary, 1, 0, None)
    summary.loops[0].last_loss = -1.2345678e-12
    summary.messages.append("a long story " * 20)
    assert all(len(line) <= 80 for line in table(summary, "x" * 200))


def test_a_loop_too_short_to_be_warm_has_figures_and_a_note(programs):
    script = programs.write("""
        import time
        from benchprobe import iterate
        for i in iterate("train", range(8), batch_size=3): time.sleep(0.05 if i == 0 else 0.001)
    """)
    done = probe(programs, "--json", script)
    (loop,) = json.loads(done.stderr.splitlines()[-1])["loops"]
    assert (loop["steps"], loop["measured_steps"], loop["rate_unit"]) == (8, 0, "items/s")
    assert 0.9 < loop["median_step_ms"] < 500
    assert "all steps but the first were counted" in " ".join(probe(programs, script).stderr.split())


def test_programs_that_the_program_starts_are_seen_and_their_files_left_alone(programs):
    """Launchers such as torchrun pass no descriptors on, and the numbers of ours may be files of the program there."""
    programs.write("""
        files = [open(f"own{n}", "w") for n in range(20)]
        from benchprobe import iterate
        for i in iterate("train", range(5)): pass
    """, "inner.py")  # fmt: skip
    script = programs.write("import subprocess, sys; sys.exit(subprocess.call([sys.executable, 'inner.py']))")
    done = probe(programs, "--json", script)
    (loop,) = json.loads(done.stderr.splitlines()[-1])["loops"]
    assert (loop["loop"], loop["steps"]) == ("train", 5)
    assert {(programs.folder / f"own{n}").read_text() for n in range(20)} == {""}


def test_no_line_is_left_behind_in_a_terminal_when_the_program_ends(programs):
    """The child's terminal closes before its stream does here; the status was then printed for good."""
    script = programs.write("""
        import os, time
        from benchprobe import iterate
        for i in iterate("train", range(30)): time.sleep(0.01)
        os.close(0); os.close(1); os.close(2)
        time.sleep(2.5)
    """)
    shown, _ = in_a_terminal(programs, script)
    assert "\r\x1b[K" in shown
    left = [line.rpartition("\r\x1b[K")[2] for line in shown.split("\r\n")]
    assert not [line for line in left if line.startswith("train [")]


def test_a_rate_names_what_the_loop_counts():
    summary = StreamSummary()
    summary.add(
        {"event": "loop", "process": 1, "loop": 1, "name": "train", "counts": True, "total": None, "unit": "tokens"}
    )
    steps = {"step_ns": [10**9], "wait_ns": [0], "items": 4, "phase": "measured"}
    summary.add({"event": "steps", "process": 1, "loop": 1, **steps})
    assert summary.shown.rate == (4.0, "tokens/s")
    assert any("4 tokens/s" in line for line in table(summary, "title"))
