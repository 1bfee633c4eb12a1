"""A supervisor's work, seen through the executor that has it done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from builders import events
from builders import job as job_in
from processes import quickest

from benchwright.core.job import Job
from benchwright.core.metric import MetricSpec
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor() as local:
        yield local


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    return partial(job_in, folder=tmp_path)


class Hear(Listener):
    def __init__(self) -> None:
        self.text = ""
        self.progress: list[Mapping[str, Any]] = []

    def on_output(self, job_id: str, text: str) -> None:
        self.text += text

    def on_progress(self, job_id: str, values: Mapping[str, Any]) -> None:
        self.progress.append(values)


def output_of(executor: LocalExecutor, job: Job) -> str:
    listener = Hear()
    executor.run([job], listener)
    return listener.text


def test_the_program_has_its_own_session_no_stdin_and_no_other_descriptors(executor, make_job):
    code = "import os,sys;print(os.getsid(0)==os.getpid(),sys.stdin.read()=='',sorted(os.listdir('/proc/self/fd')))"
    text = output_of(executor, make_job(sys.executable, "-c", code, echo=True))
    assert text == "True True ['0', '1', '2', '3']\n"  # 3 is the folder being listed


def test_the_program_has_the_signals_a_shell_would_give_it(executor, make_job):
    code = (
        "import signal as s;"
        "print(s.getsignal(s.SIGHUP)==s.SIG_DFL, s.getsignal(s.SIGINT)==s.default_int_handler, s.pthread_sigmask(0,[]))"
    )
    assert output_of(executor, make_job(sys.executable, "-c", code, echo=True)) == "True True set()\n"


def test_a_line_for_a_shell(executor, make_job):
    assert output_of(executor, make_job("echo a | tr a b && pwd", shell=True, echo=True)).startswith("b\n/")


def test_the_exit_code_and_the_signal_are_told_apart(executor, make_job):
    [outcome] = executor.run([make_job("sh", "-c", "exit 42")], Listener())
    assert (outcome.exit_code, outcome.signal) == (42, None)
    [outcome] = executor.run([make_job("sh", "-c", "kill -SEGV $$")], Listener())
    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGSEGV)


@pytest.mark.parametrize(
    ("argv", "fields", "words"),
    [
        (["no-such-command"], {}, "command 'no-such-command' was not found on PATH; check its spelling"),
        (["./none"], {}, "'./none' does not exist (looked from "),
        (["./plain"], {}, "'./plain' may not be executed: Permission denied; run chmod +x"),
        (["./odd"], {}, "'./odd' exists but the interpreter in its first line does not"),
        (["./text"], {}, "'./text' is not a program; give it a #! line"),
        ([""], {}, "the command is empty"),
        (["true"], {"cwd": "/no/such/folder"}, "the folder /no/such/folder cannot be entered: No such file"),
        (["true"], {"cores": (0, 9999)}, "cannot pin to core 9999: it does not exist or may not be used here"),
        (["true", "x" * 5_000_000], {}, "are too long; pass them in a file"),
        (["true"], {"log": "/proc/none/job.log"}, "cannot be written"),
        (["true"], {"metrics": (MetricSpec(name="m", pattern="("),)}, "m"),
    ],
)
def test_a_program_that_cannot_start_says_why_and_what_to_do(executor, make_job, tmp_path, argv, fields, words):
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    for name, text in (("odd", "#!/no/such/interpreter\n"), ("text", "words\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    job = make_job(*argv, **fields)
    [outcome] = executor.run([job], Listener())
    assert (outcome.exit_code, outcome.signal) == (None, None)
    assert words in outcome.detail
    assert events(job, "end")[0]["detail"] == outcome.detail
    assert outcome.detail in events(job, "message")[0]["text"]


def test_the_program_runs_on_the_cores_it_was_given(executor, make_job):
    core = max(os.sched_getaffinity(0))
    code = "import os; print(os.sched_getaffinity(0))"
    assert output_of(executor, make_job(sys.executable, "-c", code, cores=(core,), echo=True)) == f"{{{core}}}\n"


def test_the_environment_is_recorded_without_its_secrets(executor, make_job):
    job = make_job("true", env={"MY_TOKEN": "hush", "PLAIN": "yes"})
    executor.run([job], Listener())
    [start] = events(job, "start")
    assert start["env"]["PLAIN"] == "yes"
    assert "hush" not in Path(job.stream).read_text()
    assert start["argv"] == ["true"]


# Uses memory and CPU in two processes until the costlier PSS was sampled, too: on a busy machine that may take a while.
UNTIL_SAMPLED = """
import json, os, re, time
stream = json.loads(os.environ["BENCHPROBE_CONFIG"])["stream"]
os.fork()
data = b"x" * 50_000_000
began = time.monotonic()
while time.monotonic() < began + 300:
    found = [int(n) for n in re.findall(r'"pss_bytes": ?(\\d+)', open(stream).read())]
    enough = time.monotonic() > began + 1.6 and time.process_time() > 0.6
    if enough and max(found, default=0) > 95e6:
        break
"""


def test_a_programs_start_is_told_by_both_clocks_at_the_same_moment(executor, make_job):
    """Else times of several nodes, which are compared as times of day, are off by as long as a start takes."""
    apart = [1.0]
    for number in range(20):  # on a busy machine some are far apart because we lose our core in between
        job = make_job("true", id=f"job{number}", stream=f"{make_job().stream}.{number}")
        executor.run([job], Listener())
        (start,) = events(job, "start")
        here = time.time() - time.perf_counter_ns() * 1e-9
        apart.append(abs(start["wall"] - start["t"] * 1e-9 - here))
        if min(apart) < 0.0005:
            break
    assert min(apart) < 0.0005


COUNTS_WAITING = pytest.mark.skipif(
    not Path("/proc/thread-self/schedstat").exists() or not Path("/proc/thread-self/children").exists(),
    reason="the kernel does not count waiting, or list children",
)


@pytest.fixture
def rival() -> Iterator[int]:
    """A core that another program keeps busy."""
    core = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{core}]); print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        yield core
        other.kill()


@COUNTS_WAITING
def test_how_long_it_waited_for_a_core_is_known_of_the_shortest_program(executor, make_job, rival):
    job = make_job(sys.executable, "-S", "-c", "sum(range(3_000_000))", cores=(rival,))
    executor.run([job], Listener())
    [end] = events(job, "end")
    usage = end["usage"]
    assert usage["main_ran_s"] == pytest.approx(end["cpu_s"], rel=0.2)
    assert 0.2 * usage["main_ran_s"] < usage["main_waited_s"] < end["duration_s"]
    assert "seen_waited_s" not in usage  # there is only one thread


@COUNTS_WAITING
def test_how_long_a_program_waited_for_a_core_is_known_if_a_shell_started_it(executor, make_job, rival):
    work = f"'{sys.executable}' -S -c 'for _ in range(20): sum(range(1_000_000))'"
    job = make_job("sh", "-c", f"{work}; true", cores=(rival,))
    executor.run([job], Listener())
    [end] = events(job, "end")
    usage = end["usage"]
    assert usage["main_ran_s"] < 0.2 * end["cpu_s"]
    assert 0.8 * end["cpu_s"] < usage["seen_ran_s"] < 1.1 * end["cpu_s"]
    assert 0.2 * end["cpu_s"] < usage["seen_waited_s"] < end["duration_s"]
    assert usage["seen_together"] < 0.2


@COUNTS_WAITING
def test_processes_that_wait_at_the_same_time_are_seen_to(executor, make_job, rival):
    work = f"'{sys.executable}' -S -c 'for _ in range(20): sum(range(1_000_000))'"
    job = make_job("sh", "-c", f"{work} & {work} & wait", cores=(rival,))
    executor.run([job], Listener())
    [end] = events(job, "end")
    assert end["usage"]["seen_together"] > 0.5


def test_memory_and_cpu_are_sampled_over_the_whole_tree(executor, make_job):
    job = make_job(sys.executable, "-c", UNTIL_SAMPLED, sample_interval_s=0.2)
    executor.run([job], Listener())
    values: dict[str, list[float]] = {}
    for sample in events(job, "sample"):
        for name, value in sample["values"].items():
            values.setdefault(name, []).append(value)
    assert max(values["processes"]) == 2
    assert 100e6 < max(values["rss_bytes"]) < 300e6
    assert 95e6 < max(values["pss_bytes"]) < max(values["rss_bytes"]) + 5e6
    assert values["cpu_s"] == sorted(values["cpu_s"])
    assert 0 < min(values["own_share"]) <= max(values["own_share"]) <= 1
    [end] = events(job, "end")
    assert end["cpu_s"] > 0.5
    # Others may leave it little of the machine; ticks of 10 ms are a twentieth of an interval.
    assert max(values["cpu_percent"]) > 0.8 * 100 * end["cpu_s"] / end["duration_s"]
    assert end["max_rss_bytes"] >= max(values["rss_bytes"])
    for name in ("rss_bytes", "pss_bytes"):  # each has a sampler of its own, and the two may overtake each other
        times = [sample["t"] for sample in events(job, "sample") if name in sample["values"]]
        assert times == sorted(times)


def test_a_short_program_still_has_its_peak(executor, make_job):
    job = make_job(sys.executable, "-c", "data = b'x' * 80_000_000")
    executor.run([job], Listener())
    assert events(job, "end")[0]["max_rss_bytes"] > 80e6


def test_the_peak_of_a_tiny_program_is_marked_as_a_bound_and_that_of_a_large_one_is_not(executor, make_job):
    """What the kernel kept of a tiny one is the memory of the supervisor it was before exec."""
    tiny, large = make_job("true", id="tiny"), make_job(sys.executable, "-c", "data = b'x' * 80_000_000")
    executor.run([tiny], Listener())
    assert events(tiny, "end")[0]["max_rss_is_bound"] is True
    Path(tiny.stream).unlink()
    executor.run([large], Listener())
    assert "max_rss_is_bound" not in events(large, "end")[0]


def test_progress_is_reported(executor, make_job):
    listener = Hear()
    metric = MetricSpec(name="speed", pattern=r"speed=(\d+)")
    job = make_job("echo speed=4; sleep 1", shell=True, sample_interval_s=0.2, metrics=(metric,))
    executor.run([job], listener)
    assert listener.progress[-1]["metrics"] == {"speed": 4.0}
    assert listener.progress[-1]["elapsed_s"] > 0.2


def test_the_last_line_counts_without_a_newline(executor, make_job):
    metric = MetricSpec(name="speed", pattern=r"speed=(\d+)")
    job = make_job("printf 'speed=1\\nspeed=2'", shell=True, metrics=(metric,))
    executor.run([job], Listener())
    assert [v for event in events(job, "metric") for v in event["values"]] == [1.0, 2.0]


def test_a_log_is_not_discarded_when_a_metric_is_missing(executor, make_job):
    metric = MetricSpec(name="speed", pattern=r"speed=(\d+)")
    job = make_job("echo", "nothing", metrics=(metric,), discard_log=True)
    executor.run([job], Listener())
    assert Path(job.log + ".gz").exists()


def test_much_output_is_echoed_whole(executor, make_job):
    job = make_job("seq 1 60000", shell=True, echo=True)
    assert output_of(executor, job) == "".join(f"{number}\n" for number in range(1, 60001))


def test_out_of_memory_is_recognised(executor, make_job):
    [outcome] = executor.run([make_job(sys.executable, "-c", "raise MemoryError")], Listener())
    assert (outcome.exit_code, outcome.out_of_memory) == (1, True)
    [outcome] = executor.run([make_job(sys.executable, "-c", "raise ValueError")], Listener())
    assert (outcome.exit_code, outcome.out_of_memory) == (1, False)


def test_a_helper_that_ends_by_itself_is_no_leftover(executor, make_job):
    job = make_job("sleep 0.1 &", shell=True)
    [outcome] = executor.run([job], Listener())
    assert outcome.exit_code == 0
    assert events(job, "message") == []


def test_a_json_module_in_the_users_folder_does_not_break_the_agent(make_job, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise RuntimeError('not yours')")
    monkeypatch.chdir(tmp_path)
    with LocalExecutor() as executor:
        [outcome] = executor.run([make_job("true")], Listener())
    assert outcome.exit_code == 0


def test_a_pattern_that_takes_long_does_not_lengthen_the_programs_time(executor, make_job):
    slow = MetricSpec(name="x", pattern=r"(?:a+)+$(\d)")

    def duration_s() -> float:
        job = make_job("echo", "a" * 60 + "b", metrics=(slow,))
        Path(job.stream).unlink(missing_ok=True)
        [outcome] = executor.run([job], Listener())
        return outcome.duration_s

    assert quickest(duration_s, 0.9) < 0.9  # the pattern is cut off after a second


def test_a_program_too_short_to_sample_has_no_sampled_memory_or_cpu_use(executor, make_job):
    for number in range(20):
        job = make_job("true", id=f"job{number}", stream=f"{make_job().stream}.{number}")
        [outcome] = executor.run([job], Listener())
        if outcome.duration_s < 0.05:  # else the machine was too busy for it to be short
            break
    values = [event["values"] for event in events(job, "sample") if event["sampler"] == "process"]
    assert all("rss_bytes" not in v and "cpu_percent" not in v for v in values), values


SLOW_START = """
import os, time
def slowly(path, real=os.chdir):
    if "BENCHWRIGHT_JOB" in os.environ:  # in the agent's processes: between fork and exec
        time.sleep(4.0)
        while time.process_time() < 0.4:
            pass
    real(path)
os.chdir = slowly
"""


def test_what_we_do_before_exec_is_no_part_of_the_programs_time(make_job, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    job = make_job("sh", "-c", "true")

    def duration_s() -> float:
        Path(job.stream).unlink(missing_ok=True)
        with LocalExecutor() as executor:
            [outcome] = executor.run([job], Listener())
        assert outcome.exit_code == 0
        return outcome.duration_s

    assert quickest(duration_s, 3.5) < 3.5
    [end] = events(job, "end")
    assert end["cpu_s"] < 0.3
    [start] = events(job, "start")
    assert abs(start["wall"] - start["t"] * 1e-9 - (time.time() - time.perf_counter_ns() * 1e-9)) < 3.5


def test_a_program_is_found_on_the_path_it_is_given_and_errors_tell_most(make_job, tmp_path, executor):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "tool").write_text("not executable")
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "tool").write_text("#!/bin/sh\necho found\n")
    (tmp_path / "second" / "tool").chmod(0o755)
    path = f"{tmp_path}/none:{tmp_path}/first:{tmp_path}/second"
    assert output_of(executor, make_job("tool", env={"PATH": path}, echo=True)) == "found\n"
    [outcome] = executor.run([make_job("tool", id="b", env={"PATH": f"{tmp_path}/first:{tmp_path}/none"})], Listener())
    assert "'tool' may not be executed: Permission denied" in outcome.detail


def test_output_after_the_programs_end_is_not_read_and_counted(tmp_path):
    from benchwright.agent.output.log_tail import LogReader

    path = tmp_path / "log"
    path.write_bytes(b"abc")
    reader = LogReader(str(path), 0)
    assert (reader.read(2), reader.late_bytes) == (b"ab", 0)
    reader.end_here()
    with open(path, "ab") as log:
        log.write(b"late")
    assert (reader.read(100), reader.read(100), reader.late_bytes) == (b"c", b"", 4)
    reader.close()
