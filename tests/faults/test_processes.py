"""Programs that misbehave, and parts of benchwright that are killed: nothing of ours may survive, nothing else be touched."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
from builders import events
from builders import job as job_in
from processes import wait_for

from benchwright.core.job import Job, JobBarrier, Outcome
from benchwright.core.metric import MetricSpec
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor

PROGRAMS = Path(__file__).parent.parent / "programs"
SPEED = MetricSpec(name="speed", pattern=r"speed=([\d.]+)")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    return partial(job_in, folder=tmp_path)


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor() as local:
        yield local
    assert_nothing_survives(os.getpid())


def program(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, str(PROGRAMS / name), *arguments)


def marked(main: int) -> list[int]:
    """Processes that were started by an executor of the process `main`, and live."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ours = f"BENCHWRIGHT_JOB={main}-".encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
        if ours:
            found.append(int(folder.name))
    return found


def assert_nothing_survives(main: int, within_s: float = 120.0) -> None:
    deadline = time.monotonic() + within_s
    while left := marked(main):
        assert time.monotonic() < deadline, [psutil.Process(pid).cmdline() for pid in left]
        time.sleep(0.05)


def messages(job: Job) -> str:
    return " ".join(event["text"] for event in events(job) if event["event"] == "message")


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_daemon_left_behind_is_found_and_ended(executor, make_job, tmp_path):
    job = make_job(*program("daemonise.py", str(tmp_path / "pid")))
    [outcome] = executor.run([job], Listener())
    assert outcome.exit_code == 0
    assert not is_running(int((tmp_path / "pid").read_text()))
    assert "1 process(es) it had started were still running" in messages(job)


def test_a_daemon_is_ended_at_the_deadline_too(executor, make_job, tmp_path):
    job = make_job(*program("daemonise.py", str(tmp_path / "pid"), "stay"), timeout_s=5.0)
    [outcome] = executor.run([job], Listener())
    assert outcome.timed_out
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_program_that_ignores_sigterm_is_killed_after_the_grace(executor, make_job):
    job = make_job(*program("ignore_sigterm.py"), timeout_s=1.0, grace_s=0.3)
    [outcome] = executor.run([job], Listener())
    assert (outcome.timed_out, outcome.signal, outcome.exit_code) == (True, signal.SIGKILL, None)
    assert outcome.duration_s >= 1.3
    assert "longer than 1 s" in outcome.detail
    assert events(job)[-1]["event"] == "end"


def test_a_program_that_obeys_sigterm_is_not_killed(executor, make_job):
    [outcome] = executor.run([make_job("sleep", "300", timeout_s=0.2, grace_s=600)], Listener())
    assert (outcome.timed_out, outcome.signal) == (True, signal.SIGTERM)


def test_two_hundred_children_are_all_ended(executor, make_job):
    class StopOnceAllAreSeen(Listener):
        def on_progress(self, job_id, values):
            if values.get("processes") == 201:
                executor.stop()

    job = make_job(*program("fork_many.py", "200"), sample_interval_s=0.1)
    [outcome] = executor.run([job], StopOnceAllAreSeen())
    assert outcome.stopped
    assert b"all forked" in gzip.decompress(Path(job.log + ".gz").read_bytes())
    assert wait_for(lambda: marked(os.getpid()) == [executor._agents["localhost"]._pid])
    counts = [e["values"].get("processes", 0) for e in events(job) if e["event"] == "sample"]
    assert max(counts) == 201


def test_a_program_that_stops_itself_is_ended(executor, make_job):
    [outcome] = executor.run([make_job("sh", "-c", "kill -STOP $$; sleep 300", timeout_s=0.5)], Listener())
    assert (outcome.timed_out, outcome.signal) == (True, signal.SIGTERM)


def test_much_output_without_a_newline_needs_little_memory(executor, make_job):
    job = make_job(*program("print_much.py", "120"), metrics=(SPEED,))
    [outcome] = executor.run([job], Listener())
    assert outcome.exit_code == 0
    assert [event["values"] for event in events(job) if event["event"] == "metric"] == [[7.0]]
    [extraction] = [event for event in events(job) if event["event"] == "extraction"]
    assert extraction["bytes"] == 120 * (1 << 20) + 9
    agent = psutil.Process(executor._agents["localhost"]._pid)
    assert agent.memory_info().rss < 100e6
    assert not Path(job.log).exists()


def test_the_deadline_holds_while_a_program_prints_faster_than_it_is_read(executor, make_job):
    line = "echo speed=5; yes 'many words and no number at all' | head -c 100000000; sleep 300"
    job = make_job(line, shell=True, metrics=(SPEED,), timeout_s=0.5)
    [outcome] = executor.run([job], Listener())
    assert outcome.timed_out
    assert outcome.duration_s < 100
    assert [event["values"] for event in events(job) if event["event"] == "metric"] == [[5.0]]


def test_nul_bytes_and_broken_text_are_read(executor, make_job):
    heard: list[str] = []

    class Hear(Listener):
        def on_output(self, job_id: str, text: str) -> None:
            heard.append(text)

    job = make_job(*program("print_nuls.py"), metrics=(SPEED,), echo=True)
    [outcome] = executor.run([job], Hear())
    assert outcome.exit_code == 0
    assert [event["values"] for event in events(job) if event["event"] == "metric"] == [[3.5]]
    assert "".join(heard) == "\0" * 5000 + "\nspeed=\0\nspeed=3.5\n\ufffd\ufffd\n" + "\0" * 10


def test_a_program_that_closes_its_descriptors_goes_on(executor, make_job):
    job = make_job(*program("close_descriptors.py"), metrics=(SPEED,))
    [outcome] = executor.run([job], Listener())
    assert outcome.exit_code == 0
    assert outcome.duration_s >= 0.3
    assert [event["values"] for event in events(job) if event["event"] == "metric"] == [[1.0]]


def test_eight_jobs_together_all_leave_the_barrier(executor, make_job, tmp_path):
    jobs = [
        make_job(
            "sleep", "0.2", id=f"job{rank}", barrier=JobBarrier(folder=str(tmp_path / "barrier"), size=8, rank=rank)
        )
        for rank in range(8)
    ]
    outcomes = executor.run(jobs, Listener())
    assert [(outcome.job, outcome.exit_code) for outcome in outcomes] == [(job.id, 0) for job in jobs]
    assert sorted(os.listdir(tmp_path / "barrier")) == [f"gone-{rank}" for rank in range(8)]


def test_processes_of_others_are_not_touched(executor, make_job):
    other = subprocess.Popen(["sleep", "300"], start_new_session=True)
    sibling = subprocess.Popen(["sleep", "300"])
    try:
        executor.run([make_job(*program("fork_many.py", "5"), timeout_s=1.5)], Listener())
        executor.run([make_job("sh", "-c", "kill -9 $PPID; sleep 300", id="regicide")], Listener())
        assert other.poll() is None
        assert sibling.poll() is None
    finally:
        for process in (other, sibling):
            process.kill()
            process.wait()


def test_a_full_disk_is_a_failure_and_says_so(executor, make_job):
    [outcome] = executor.run([make_job("true", stream="/dev/full")], Listener())
    assert outcome.exit_code is None
    assert "the disk is full" in outcome.detail


def test_a_program_killed_from_outside_is_told_apart_from_ours(executor, make_job):
    class Kill(Listener):
        def on_started(self, job_id: str, pid: int) -> None:
            os.kill(pid, signal.SIGKILL)

    [outcome] = executor.run([make_job("sleep", "300")], Kill())
    assert (outcome.signal, outcome.exit_code) == (signal.SIGKILL, None)
    assert (outcome.timed_out, outcome.stopped) == (False, False)
    assert not outcome.out_of_memory


def test_a_clock_that_steps_back_changes_nothing(make_job, tmp_path, monkeypatch):
    """In the agent and its supervisors each look at the wall clock shows an hour less than the one before."""
    (tmp_path / "sitecustomize.py").write_text(
        "import time\nreal, looks = time.time, []\n"
        "def back():\n    looks.append(1)\n    return real() - 3600 * len(looks)\ntime.time = back\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with LocalExecutor() as executor:
        job = make_job("sleep", "1.2", timeout_s=60, sample_interval_s=0.1)
        [slow] = executor.run([job], Listener())
        [late] = executor.run([make_job("sleep", "300", id="late", timeout_s=0.3)], Listener())
    assert events(job)[-1]["wall"] < events(job)[0]["wall"]
    assert slow.exit_code == 0
    assert 1.2 <= slow.duration_s < 150
    assert late.timed_out
    assert late.duration_s < 150
    assert [event for event in events(job) if event["event"] == "sample"]


def test_a_main_process_that_was_suspended_still_hears_how_it_ended(tmp_path):
    """The output to echo fills the pipe while nobody reads, and the last message must wait behind it."""
    argv = program("run_jobs.py", str(tmp_path), "sh", "-c", "sleep 0.5; seq 1 100000")
    main = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert main.stdout.readline().startswith("started")
    main.send_signal(signal.SIGSTOP)
    assert wait_for(lambda: '"event":"end"' in (tmp_path / "job.data").read_text())
    time.sleep(6)
    main.send_signal(signal.SIGCONT)
    assert main.wait() == 0
    main.stdout.close()


class KillWhenStarted(Listener):
    """Kills the supervisor or the agent of the first job that starts, after a delay."""

    def __init__(self, whom: str, delay_s: float) -> None:
        self.whom = whom
        self.delay_s = delay_s
        self.finished: list[Outcome] = []

    def on_started(self, job_id: str, pid: int) -> None:
        supervisor = psutil.Process(pid).parent()
        victim = supervisor if self.whom == "supervisor" else supervisor.parent()
        threading.Timer(self.delay_s, victim.kill).start()

    def on_finished(self, outcome: Outcome) -> None:
        self.finished.append(outcome)


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))]


@pytest.mark.parametrize("whom", ["supervisor", "agent"])
@pytest.mark.parametrize("seed", SEEDS)
def test_killing_a_part_of_the_agent_leaves_nothing_and_the_next_job_runs(executor, make_job, tmp_path, whom, seed):
    delay_s = random.Random(seed).uniform(0, 0.4)
    job = make_job(*program("daemonise.py", str(tmp_path / "pid"), "stay"))
    [outcome] = executor.run([job], KillWhenStarted(whom, delay_s))
    assert outcome.exit_code is None
    assert outcome.detail.startswith("the agent was killed")
    assert not outcome.stopped
    assert len(events(job)) >= 1  # every line is whole
    if whom == "agent":  # its supervisor was told by the kernel, and ended the job in order
        assert (events(job)[-1]["event"], events(job)[-1]["detail"]) == ("end", "the agent was killed")
    allowed = {agent._pid for agent in executor._agents.values()}
    assert wait_for(lambda: set(marked(os.getpid())) <= allowed)
    [again] = executor.run([make_job("true", id="again")], Listener())
    assert again.exit_code == 0


def test_the_other_jobs_go_on_when_one_supervisor_is_killed(executor, make_job, tmp_path):
    barrier = str(tmp_path / "barrier")
    victim = make_job("sleep", "300", id="victim", barrier=JobBarrier(folder=barrier, size=2, rank=0))
    other = make_job("sleep", "2", id="other", barrier=JobBarrier(folder=barrier, size=2, rank=1))

    class KillVictim(KillWhenStarted):
        def on_started(self, job_id: str, pid: int) -> None:
            if job_id == "victim":
                super().on_started(job_id, pid)

    first, second = executor.run([victim, other], KillVictim("supervisor", 0.1))
    assert (first.exit_code, second.exit_code) == (None, 0)
    assert (tmp_path / "barrier" / "gone-0").exists()


@pytest.mark.parametrize("seed", SEEDS)
def test_killing_the_main_process_leaves_nothing(tmp_path, seed):
    argv = program("run_jobs.py", str(tmp_path), *program("daemonise.py", str(tmp_path / "pid"), "stay"))
    main = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert main.stdout.readline().startswith("started")
    time.sleep(random.Random(seed).uniform(0, 0.4))
    main.kill()
    main.wait()
    main.stdout.close()
    assert_nothing_survives(main.pid)
    lines = [json.loads(line) for line in (tmp_path / "job.data").read_text().splitlines()]
    assert lines[-1]["event"] == "end"
    assert lines[-1]["stopped"]


def test_killing_agent_and_supervisor_at_once_leaves_nothing(executor, make_job, tmp_path):
    class KillBoth(Listener):
        def on_started(self, job_id: str, pid: int) -> None:
            assert wait_for((tmp_path / "pid").exists)
            supervisor = psutil.Process(pid).parent()
            supervisor.parent().kill()
            with suppress(psutil.NoSuchProcess):  # it ends itself without its agent
                supervisor.kill()

    job = make_job(*program("daemonise.py", str(tmp_path / "pid"), "stay"))
    [outcome] = executor.run([job], KillBoth())
    assert outcome.detail.startswith("the agent was killed")
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_job_lost_after_a_stop_was_asked_for_is_stopped_not_lost(make_job):
    with LocalExecutor() as executor:

        class StopAndKill(Listener):
            def on_started(self, job_id: str, pid: int) -> None:
                supervisor = psutil.Process(pid).parent()
                agent = supervisor.parent()
                executor.stop()
                agent.kill()
                with suppress(psutil.NoSuchProcess):
                    supervisor.kill()

        [outcome] = executor.run([make_job("sleep", "300")], StopAndKill())
        assert outcome.stopped


def test_an_agent_killed_while_nothing_ran_costs_no_job(executor, make_job):
    executor.run([make_job("true")], Listener())
    agent = executor._agents["localhost"]._pid
    os.kill(agent, signal.SIGKILL)
    assert wait_for(lambda: not is_running(agent))
    [outcome] = executor.run([make_job("true", id="next")], Listener())
    assert outcome.exit_code == 0


def test_a_stop_from_another_thread_ends_the_jobs(make_job):
    with LocalExecutor() as executor:

        class StopSoon(Listener):
            def on_started(self, job_id: str, pid: int) -> None:
                threading.Timer(0.1, executor.stop).start()

        job = make_job("sleep", "300", grace_s=600)
        [outcome] = executor.run([job], StopSoon())
        assert outcome.stopped
        assert outcome.duration_s < 300
        assert events(job)[-1]["stopped"]


def test_a_second_stop_does_not_wait_for_the_grace(make_job):
    with LocalExecutor() as executor:

        class StopTwice(Listener):
            def on_output(self, job_id: str, text: str) -> None:
                threading.Timer(0.1, executor.stop).start()
                threading.Timer(0.4, executor.stop).start()

        [outcome] = executor.run([make_job(*program("ignore_sigterm.py"), grace_s=600, echo=True)], StopTwice())
        assert outcome.stopped
        assert outcome.duration_s < 300
