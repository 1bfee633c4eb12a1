from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchwright.agent.processes.process_tree import TICKS_PER_S, read_stat
from benchwright.agent.samplers import find_samplers
from benchwright.agent.samplers.base import SampledJob, Sampler, SamplerReading
from benchwright.agent.samplers.machine import MachineSampler
from benchwright.agent.samplers.process import PssSampler
from benchwright.agent.samplers.registry import SAMPLERS
from benchwright.agent.samplers.sampler_loop import Sampling
from benchwright.agent.stream import StreamWriter
from benchwright.core.entry_points import EntryPoint

SECOND = 1_000_000_000


class Costly(Sampler):
    """Burns 20 ms each time."""

    name = "costly"
    budget = 0.01

    def sample(self, now_ns: int) -> list[SamplerReading]:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        return [SamplerReading({"x": 1.0})]


class Failing(Sampler):
    name = "failing"

    def sample(self, now_ns: int) -> list[SamplerReading]:
        raise OSError("the sensor fell off")


def open_costly(subject: SampledJob) -> Sampler | None:
    return Costly()


def open_failing(subject: SampledJob) -> Sampler | None:
    return Failing()


def open_nothing(subject: SampledJob) -> Sampler | None:
    return None


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "these", sys.modules[__name__])

    def start(**targets: str) -> Sampling:
        stream = StreamWriter(str(tmp_path / "a.data"))
        entries = [EntryPoint(name, target, "sensors", "1.0") for name, target in targets.items()]
        return Sampling(entries, SampledJob(), stream, interval_s=0.5, now_ns=0)

    return start


def events(tmp_path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (tmp_path / "a.data").read_text().splitlines()]


def test_a_costly_sampler_is_called_less_often(start):
    sampling = start(costly="these:open_costly")
    assert sampling.advance(0)
    assert 2.0 * SECOND <= sampling.due_ns < 10 * SECOND


def test_a_cheap_one_at_the_interval(start):
    sampling = start(machine=SAMPLERS.built_in["machine"])
    sampling.advance(0)
    # Half a second, the interval; more only as far as a busy machine made the reading itself dear.
    assert SECOND // 2 <= sampling.due_ns < 30 * SECOND
    assert not sampling.advance(SECOND // 4)


def test_one_that_raises_is_reported_once_and_the_others_go_on(start, tmp_path):
    sampling = start(
        failing="these:open_failing", missing="these:no_such_function", machine=SAMPLERS.built_in["machine"]
    )
    sampling.advance(0)
    sampling.advance(SECOND)
    sampling.close()
    texts = [event["text"] for event in events(tmp_path) if event["event"] == "message"]
    assert len(texts) == 2
    said = "'failing' of the package sensors failed and is off for this job: OSError: the sensor fell off"
    assert said in texts[0]
    assert len([event for event in events(tmp_path) if event["event"] == "sample"]) == 2


def test_one_with_nothing_to_sample_is_no_event(start, tmp_path):
    sampling = start(nothing="these:open_nothing")
    sampling.advance(0)
    assert sampling.due_ns is None
    assert not (tmp_path / "a.data").read_text()


def test_samplers_of_other_packages_are_found_by_their_entry_points(tmp_path):
    package = tmp_path / "other-1.0.dist-info"
    package.mkdir()
    (package / "entry_points.txt").write_text(
        "[console_scripts]\nx = y:z\n\n[benchwright.samplers]\nfan = other.fan:open_sampler\n\n[last]\na = b\n"
    )
    found = find_samplers([str(tmp_path), str(tmp_path / "absent")])
    assert {name: entry.target for name, entry in found.items()} == {
        "fan": "other.fan:open_sampler",
        **SAMPLERS.built_in,
    }
    assert (found["fan"].package, found["fan"].version) == ("other", "1.0")


def test_a_subject_is_its_descendants():
    child = subprocess.Popen(["sh", "-c", "sleep 300 & wait"], start_new_session=True)
    try:
        subject = SampledJob(root=os.getpid())
        deadline = time.monotonic() + 100
        while sum(stat.parent == child.pid for stat in subject.processes()) != 1:
            assert time.monotonic() < deadline
            subject.begin_round()
        assert child.pid in {stat.pid for stat in subject.processes()}
        assert os.getpid() not in {stat.pid for stat in subject.processes()}
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


GROWS = (
    "import sys\ndata = []\nfor line in sys.stdin:\n    data.append(b'x' * int(line))\n    print('done', flush=True)"
)


def test_pss_is_read_sooner_when_memory_has_grown(tmp_path, monkeypatch):
    """Else a peak between two of its rare readings would be missed."""
    monkeypatch.setattr(PssSampler, "interval_s", 3600.0)
    child = subprocess.Popen([sys.executable, "-c", GROWS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stream = StreamWriter(str(tmp_path / "a.data"))
    entries = [find_samplers()[name] for name in ("process", "pss")]
    sampling = Sampling(entries, SampledJob(), stream, interval_s=0.5, now_ns=0)
    try:
        for number in range(1, 5):
            if number in (1, 3):  # first something small, so that the interpreter itself has grown up
                child.stdin.write("1\n" if number == 1 else "100000000\n")
                child.stdin.flush()
                assert child.stdout.readline() == "done\n"
            sampling.advance(number * 1000 * SECOND)
            sampling.advance(number * 1000 * SECOND + 1)
    finally:
        child.kill()
        child.communicate()
    sizes = [event["values"]["pss_bytes"] for event in events(tmp_path) if "pss_bytes" in event["values"]]
    assert len(sizes) == 2
    assert sizes[1] > sizes[0] + 90e6


def test_pss_of_a_short_program_is_read_several_times_in_its_first_moments(tmp_path, monkeypatch):
    """A program of a fifth of a second has its peak before the regular second reading, at half a second."""
    monkeypatch.setattr(
        "benchwright.agent.samplers.sampler_loop.time.process_time_ns", lambda: 0
    )  # readings cost nothing
    child = subprocess.Popen([sys.executable, "-c", GROWS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    sampling = Sampling(
        [find_samplers()["pss"]], SampledJob(), StreamWriter(str(tmp_path / "a.data")), interval_s=0.5, now_ns=0
    )
    try:
        child.stdin.write("1\n")
        child.stdin.flush()
        assert child.stdout.readline() == "done\n"
        for millisecond in range(0, 900, 10):
            sampling.advance(millisecond * SECOND // 1000)
    finally:
        child.kill()
        child.communicate()
    assert [event["t"] * 1000 // SECOND for event in events(tmp_path)] == [50, 120, 250, 750]


def test_pss_is_not_told_without_a_process_whose_memory_is_hidden(monkeypatch):
    child = subprocess.Popen(["sleep", "300"])
    try:
        subject = SampledJob()
        wait_until(
            lambda: subject.begin_round() or any(s.pid == child.pid and s.rss_pages for s in subject.processes())
        )
        assert PssSampler(subject).sample(0)
        monkeypatch.setattr("benchwright.agent.samplers.process.read_pss_and_rss_bytes", lambda pid: None)
        assert PssSampler(subject).sample(0) == []
    finally:
        child.kill()
        child.wait()


def wait_until(condition) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline


def test_what_other_programs_use_is_told_even_where_no_process_of_the_job_is_left():
    """One busy program, watched as the job's own and as somebody else's at the same time."""
    busy = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    subjects = [SampledJob(), SampledJob(root=2**22 + 1)]
    samplers = [MachineSampler(subject) for subject in subjects]
    try:
        for sampler in samplers:
            sampler.sample(time.perf_counter_ns())
        began, ticks = time.perf_counter(), read_stat(busy.pid).cpu_ticks
        while read_stat(busy.pid).cpu_ticks - ticks < 0.4 * TICKS_PER_S:
            time.sleep(0.05)
        subjects[0].begin_round()
        own, foreign = (sampler.sample(time.perf_counter_ns())[0].values for sampler in samplers)
        passed_s = time.perf_counter() - began
    finally:
        busy.kill()
        busy.wait()
    used_percent = 100 * 0.4 / (passed_s * os.cpu_count())
    assert foreign["others_percent"] > 0.5 * used_percent
    assert foreign["others_percent"] - own["others_percent"] > 0.5 * used_percent
    assert sum(foreign[f"{name}_percent"] for name in ("others", "idle", "steal")) <= 100.1


def test_how_long_a_control_group_held_the_job_back_is_told_if_it_has_a_limit(tmp_path):
    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    def told(sampler: MachineSampler, seconds: float) -> float | None:
        return sampler.sample(int(seconds * 1e9))[0].values.get("quota_percent")

    write("proc/self/cgroup", "0::/job\n")
    write("sys/fs/cgroup/job/cpu.max", "max 100000\n")
    assert [told(MachineSampler(SampledJob(), str(tmp_path)), t) for t in (1, 2)] == [None, None]
    write("sys/fs/cgroup/job/cpu.max", "50000 100000\n")
    write("sys/fs/cgroup/job/cpu.stat", "throttled_usec 1000000\n")
    sampler = MachineSampler(SampledJob(), str(tmp_path))
    assert told(sampler, 1) is None
    write("sys/fs/cgroup/job/cpu.stat", "throttled_usec 1500000\n")
    assert told(sampler, 2) == 50.0
    assert told(sampler, 3) == 0.0
