"""Timing on a device whose work runs on after it was handed over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmodels.measure import measured_loops
from benchmodels.training.hooks import TrainingHooks
from benchmodels.training.steps import TrainingSteps
from benchmodels.training.train import RecordedSteps
from benchprobe.config import Config
from benchprobe.loop.device import TorchTimer, find_timer
from benchprobe.loop.measured_functions import functions
from benchprobe.loop.probe import Probe


class Queue:
    """A device that does one thing after the other, at its own pace, while the host goes on."""

    def __init__(self) -> None:
        self.busy_until_ns = 0
        self.synchronisations = 0  # those that had to wait
        self.waited_for = 0
        self.recorded = 0
        self.event_ns = 0  # what recording an event takes the host
        self.capturing = False

    def launch(self, duration_ns: int) -> None:
        self.busy_until_ns = max(self.busy_until_ns, time.perf_counter_ns()) + duration_ns

    def Event(self, enable_timing: bool) -> QueueEvent:
        assert enable_timing
        return QueueEvent(self)

    def current_device(self) -> int:
        return 0

    def current_stream(self, device: int | None = None) -> Queue:
        return self

    def is_current_stream_capturing(self) -> bool:
        return self.capturing


class QueueEvent:
    """As `torch.cuda.Event`."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._at_ns = 0

    def record(self, stream: Queue) -> None:
        assert stream is self._queue
        self._queue.recorded += 1
        busy_until = time.perf_counter_ns() + self._queue.event_ns
        while time.perf_counter_ns() < busy_until:
            pass
        self._at_ns = max(self._queue.busy_until_ns, time.perf_counter_ns())

    def synchronize(self) -> None:
        self._queue.waited_for += 1
        self._queue.synchronisations += time.perf_counter_ns() < self._at_ns  # only if there is something to wait for
        while time.perf_counter_ns() < self._at_ns:
            time.sleep(0.001)

    def elapsed_time(self, other: QueueEvent) -> float:
        return (other._at_ns - self._at_ns) / 1e6


class Setting:
    def __init__(self, folder: Path, raw_stream: Any = None, **config: Any) -> None:
        self.queue = Queue()
        self.stream = folder / "loop.data"
        self.probe = Probe(
            Config(str(self.stream), warmup={"steps": 2}, **config),
            find_device=lambda: TorchTimer(self.queue, raw_stream),
        )
        self.iterate, self.give, _ = functions(self.probe)

    def events(self, kind: str) -> list[dict[str, Any]]:
        self.probe.writer.flush()
        return [e for e in map(json.loads, self.stream.read_text().splitlines()) if e["event"] == kind]


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path, stop={"steps": 200})


def test_steps_have_the_time_of_the_device_not_of_the_launch(setting):
    for _ in setting.iterate("train", range(1000), batch_size=4):
        setting.queue.launch(3_000_000)
    measured = [e for e in setting.events("steps") if e["phase"] == "measured"]
    device_ns = [ns for e in measured for ns in e["device_ns"]]
    host_ns = [ns for e in measured for ns in e["step_ns"]]
    assert len(device_ns) == 200
    assert 2_900_000 < sorted(device_ns)[100] < 4_000_000
    assert sum(host_ns) < sum(device_ns) / 2
    assert sum(e["window_ns"] for e in measured) >= 200 * 3_000_000


def test_the_device_is_waited_for_once_a_window_and_at_the_edges_of_phases(setting):
    for _ in setting.iterate("train", range(1000), batch_size=4):
        setting.queue.launch(3_000_000)
    # On a busy machine the device may have done all before it is waited for.
    assert 0 < setting.queue.synchronisations <= len(setting.events("steps")) <= 6


@pytest.mark.parametrize("end", ["os._exit(0)", "raise SystemExit"])
def test_a_child_forked_in_the_loop_never_frees_the_events_of_its_parent(tmp_path, end):
    """As torch's: a worker of a DataLoader that freed one was aborted, and the training with it."""
    program = f"""
import os
from benchprobe.config import Config
from benchprobe.loop.device import TorchTimer
from benchprobe.loop.probe import Probe
from benchprobe.loop.measured_functions import functions
from tests.unit.benchprobe.loop.test_device import Queue, QueueEvent
OWNER = os.getpid()
class Event(QueueEvent):
    def __del__(self, owner=OWNER, pid=os.getpid, abort=os.abort):
        if pid() != owner: abort()
queue = Queue()
queue.Event = lambda enable_timing: Event(queue)
iterate, give, _ = functions(Probe(Config({str(tmp_path / "s.data")!r}), find_device=lambda: TorchTimer(queue)))
for step in iterate("train", range(6)):
    child = os.fork()
    if child == 0:
        {end}
    assert os.waitpid(child, 0)[1] == 0, "the child was aborted"
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_work_handed_over_before_the_loop_is_not_part_of_its_first_step(tmp_path):
    setting = Setting(tmp_path)
    setting.queue.launch(300_000_000)
    for _ in setting.iterate("train", range(5)):
        setting.queue.launch(1_000_000)
    (first, *_) = setting.events("steps")
    assert first["device_ns"][0] < 100_000_000
    assert first["window_ns"] < 100_000_000


def test_calls_of_a_model_wait_by_themselves_and_no_event_of_a_device_makes_them_longer(tmp_path, monkeypatch):
    setting = Setting(tmp_path)
    monkeypatch.setattr(measured_loops.benchprobe, "active_probe", lambda: setting.probe)
    monkeypatch.setattr(measured_loops.benchprobe, "iterate", setting.iterate)
    measured_loops.latency_loop(lambda _: time.sleep(0.001), None, endless=False)
    assert len([ns for e in setting.events("steps") for ns in e["step_ns"]]) == measured_loops.CALLS_WITHOUT_RULE
    assert not any("device_ns" in e for e in setting.events("steps"))
    for _ in setting.iterate("train", range(5)):
        setting.queue.launch(1_000_000)
    assert "device_ns" in setting.events("steps")[-1], "only those loops"


def test_a_break_keeps_host_and_device_in_step(tmp_path):
    setting = Setting(tmp_path)
    for i in setting.iterate("train", range(1000)):
        setting.queue.launch(1_000_000)
        if i == 5:
            break
    for event in setting.events("steps"):
        assert len(event["device_ns"]) == len(event["step_ns"])
    assert sum(len(e["step_ns"]) for e in setting.events("steps")) == 6


def test_very_short_steps_share_events_so_that_these_cost_next_to_nothing(tmp_path):
    setting = Setting(tmp_path)
    setting.queue.event_ns = 20_000
    steps = 6_000
    for _ in setting.iterate("train", range(steps), batch_size=4):
        setting.queue.launch(50_000)
    events = setting.events("steps")
    assert sum(len(e["device_ns"]) for e in events) == sum(len(e["step_ns"]) for e in events) == steps
    first, *later = (e["device_stride"] for e in events)
    assert first == 1, "how long a step takes is not known yet"
    by_device = sum(ns for e in events for ns in e["device_ns"])
    by_host = sum(e["window_ns"] for e in events)
    usual = 8_000_000 / (
        by_host / steps
    )  # 20 µs are 0.25 % of 8 ms: of 160 steps, or of fewer where the machine makes them longer
    assert usual / 4 <= max(later) <= 240
    assert setting.queue.recorded < steps / 4
    assert steps * 50_000 * 0.999 <= by_device <= 1.05 * by_host  # a window begins just before its first stamp


def test_steps_that_are_long_enough_have_an_event_each(setting):
    setting.queue.event_ns = 1_000
    for _ in setting.iterate("train", range(300), batch_size=4):
        setting.queue.launch(6_000_000)
    assert {e["device_stride"] for e in setting.events("steps")} == {1}


def test_what_shares_an_event_has_its_mean_and_nothing_is_lost_to_rounding(tmp_path):
    setting = Setting(tmp_path)
    setting.queue.event_ns = 50_000
    for i in setting.iterate("train", range(5_000)):
        setting.queue.launch(30_000)
        if i == 4_321:
            break
    events = setting.events("steps")
    assert sum(len(e["device_ns"]) for e in setting.events("steps")) == 4_322, "the step that was left counts"
    for event in events:
        times, stride = event["device_ns"], event["device_stride"]
        jumps = sum(abs(a - b) > 1 for a, b in pairwise(times))  # 1: the rest of a division
        assert jumps <= len(times) / stride + 1, "equal, but from one event to the next"


class TestVeryShortSteps:
    """They are handed out in groups, without any work of the probe between two of them."""

    STEPS = 3_000

    @pytest.fixture
    def short(self, tmp_path):
        setting = Setting(tmp_path)
        setting.queue.event_ns = 20_000
        return setting

    def test_no_bytecode_of_the_probe_runs_between_most_of_them(self, short):
        seen = []

        def notice(frame, what, argument):
            if what in ("call", "line") and "benchprobe" in frame.f_code.co_filename:
                seen.append(frame.f_code.co_name)

        steps = iter(short.iterate("train", range(self.STEPS), batch_size=1))
        for _ in range(1_000):
            next(steps)
        quiet = 0
        for _ in range(1_000):
            before = len(seen)
            sys.setprofile(notice)
            next(steps)
            sys.setprofile(None)
            quiet += len(seen) == before
        assert quiet > 900

    @pytest.mark.parametrize("source", [range, lambda n: list(range(n)), lambda n: (i for i in range(n))])
    def test_what_a_step_gives_stays_with_that_step(self, short, source):
        for i in short.iterate("train", source(self.STEPS), batch_size=4):
            short.queue.launch(10_000)
            if i % 7 == 3:
                short.give(loss=float(i))
        events = short.events("steps")
        assert max(e["device_stride"] for e in events) > 7, "several that give share an event"
        found = [
            (e["first"] + offset, value)
            for e in events
            if "given" in e
            for offset, value in zip(*e["given"]["loss"], strict=True)
        ]
        assert found == [(i, float(i)) for i in range(self.STEPS) if i % 7 == 3]

    def test_steps_are_neither_lost_nor_counted_twice_however_the_loop_ends(self, tmp_path):
        for number, (ends_at, how) in enumerate([(2_345, "break"), (2_345, "raise"), (self.STEPS, "exhausted")]):
            (tmp_path / str(number)).mkdir()
            setting = Setting(tmp_path / str(number))
            setting.queue.event_ns = 20_000
            try:
                for i in setting.iterate("train", range(self.STEPS), batch_size=1):
                    setting.queue.launch(10_000)
                    if i == ends_at:
                        if how == "break":
                            break
                        raise KeyError
            except KeyError:
                pass
            events = setting.events("steps")
            assert sum(len(e["step_ns"]) for e in events) == ends_at + (how == "break"), how
            assert all(len(e["step_ns"]) == len(e["wait_ns"]) == len(e["device_ns"]) for e in events)
            firsts = [e["first"] for e in events]
            lengths = [len(e["step_ns"]) for e in events]
            assert firsts == [sum(lengths[:n]) for n in range(len(lengths))]
            assert [e["steps"] for e in setting.events("loop_end")] == [ends_at + (how == "break")]

    def test_the_next_pass_uses_the_same_events(self, short):
        made = []
        short.queue.Event = lambda enable_timing: made.append(1) or QueueEvent(short.queue)
        for _ in range(4):
            for _ in short.iterate("train", range(700), batch_size=1):
                short.queue.launch(10_000)
        assert len(made) <= 520, "no more than a window has"
        assert len(short.probe.spare_timers) == 1
        assert sum(len(e["step_ns"]) for e in short.events("steps")) == 2_800

    def test_a_stop_rule_of_steps_is_kept_to_the_step(self, tmp_path):
        setting = Setting(tmp_path, stop={"steps": 2_333})
        setting.queue.event_ns = 20_000
        done = 0
        for _ in setting.iterate("train", range(100_000), batch_size=1):
            setting.queue.launch(10_000)
            done += 1
        measured = [e for e in setting.events("steps") if e["phase"] == "measured"]
        assert sum(len(e["step_ns"]) for e in measured) == 2_333
        assert done == 2_335

    def test_the_time_of_a_group_is_that_of_the_device_and_adds_up(self, short):
        for _ in short.iterate("train", range(self.STEPS), batch_size=1):
            short.queue.launch(30_000)
        events = short.events("steps")
        by_device = sum(ns for e in events for ns in e["device_ns"])
        assert self.STEPS * 30_000 <= by_device <= sum(e["window_ns"] for e in events)

    def test_waiting_for_data_is_seen(self, short):
        def slow():
            for i in range(self.STEPS):
                wait_until = time.perf_counter_ns() + 20_000
                while time.perf_counter_ns() < wait_until:
                    pass
                yield i

        for _ in short.iterate("train", slow(), batch_size=1):
            pass
        grouped = [e for e in short.events("steps") if e["device_stride"] > 10]
        waited = sum(ns for e in grouped for ns in e["wait_ns"])
        whole = sum(ns for e in grouped for ns in e["step_ns"])
        assert 0.9 * 20_000 * sum(len(e["wait_ns"]) for e in grouped) < waited <= whole

    def test_a_child_forked_in_a_group_records_nothing(self, short):
        """Steps go on in both; only those of the parent are written."""
        for i in short.iterate("train", range(3_000), batch_size=1):
            short.queue.launch(10_000)
            if i == 2_000:
                short.probe._after_fork_in_child()
        events = short.events("steps")
        assert sum(len(e["step_ns"]) for e in events) < 2_000

    def test_sizes_that_must_be_read_from_each_batch_are(self, tmp_path):
        setting = Setting(tmp_path)
        setting.queue.event_ns = 20_000
        for _ in setting.iterate("train", range(3_000), batch_size=lambda batch: batch % 5 + 1):
            setting.queue.launch(10_000)
        items = sum(
            sum(e["items"]) if isinstance(e["items"], list) else e["items"] * len(e["step_ns"])
            for e in setting.events("steps")
        )
        assert items == sum(i % 5 + 1 for i in range(3_000))


def test_the_next_epoch_knows_how_long_its_steps_take(tmp_path):
    setting = Setting(tmp_path)
    setting.queue.event_ns = 20_000
    for _ in range(3):
        for _ in setting.iterate("train", range(600)):
            setting.queue.launch(50_000)
    strides = [e["device_stride"] for e in setting.events("steps") if e["first"] >= 600]
    assert min(strides) > 1


def test_a_device_that_fails_is_told_and_the_loop_goes_on_by_the_host_clock(setting):
    steps = 0
    for i in setting.iterate("train", range(50)):
        setting.queue.capturing = i > 20
        steps += 1
    assert steps == 50
    assert "host's clock" in setting.events("message")[0]["text"]
    assert sum(len(e["step_ns"]) for e in setting.events("steps")) == 50


def test_a_tensor_of_the_device_is_read_at_the_end_of_the_window(tmp_path):
    setting = Setting(tmp_path)
    reads = []

    class Array:
        def __init__(self, number: float) -> None:
            self.number = number

        def item(self) -> float:
            reads.append(setting.queue.waited_for)
            return self.number

    for i in setting.iterate("train", range(20)):
        setting.queue.launch(100_000)
        setting.give(loss=Array(i / 4))
        assert len(reads) in (0, 2)  # those of the warm-up, which was a window of its own
    given = [v for e in setting.events("steps") for v in e["given"]["loss"][1]]
    assert given == [i / 4 for i in range(20)]
    assert min(reads) >= 1


def test_without_an_accelerator_in_use_there_is_no_timer_and_nothing_is_imported():
    code = "import sys; from benchprobe.loop.device import find_timer; assert find_timer() is None; assert 'torch' not in sys.modules"
    source = Path(__file__).parents[4] / "src"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(source)})
    pytest.importorskip("torch")
    if not __import__("torch").cuda.is_initialized():
        assert find_timer() is None


@pytest.mark.skipif("not __import__('importlib.util').util.find_spec('torch')", reason="torch is not installed")
def test_on_a_real_gpu_rates_are_those_of_the_device(tmp_path):
    """The program starts itself with the probe on, and fails if what was recorded differs from a synchronised loop."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    tests = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(tests.parent / "src")}
    program = [sys.executable, str(tests / "programs" / "gpu_loop.py"), str(tmp_path)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True)
    assert "agree" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("raw_stream", [None, lambda device: 7])
def test_events_go_to_the_current_stream_however_it_is_found(tmp_path, raw_stream):
    setting = Setting(tmp_path, raw_stream=raw_stream)
    for _ in setting.iterate("train", range(6), batch_size=1):
        setting.queue.launch(3_000_000)
    assert sum(len(e["device_ns"]) for e in setting.events("steps")) == 6
    assert setting.events("message") == []


def test_watched_training_steps_have_the_time_of_the_device_though_several_share_an_event(tmp_path):
    class Optimizer:
        pass

    setting, optimizer = Setting(tmp_path), Optimizer()
    setting.queue.event_ns = 10_000
    recorded = RecordedSteps(setting.probe)
    steps = TrainingSteps(recorded)
    for _ in range(1_001):
        setting.queue.launch(1_000_000)
        steps.backward(None)
        steps.stepped(optimizer, time.perf_counter_ns())
    recorded.close()
    events = setting.events("steps")
    assert sum(len(e["device_ns"]) for e in events) == 1_000
    assert max(e["device_stride"] for e in events) > 1
    assert sum(ns for e in events for ns in e["device_ns"]) >= 1_000 * 1_000_000


def test_training_steps_reported_several_at_once_have_their_own_time_on_the_device(tmp_path):
    """The device works behind the host, so an event that came a step late would count that step, too."""
    setting, optimizer, registered = Setting(tmp_path, stop={"steps": 500}), Queue(), []
    setting.queue.event_ns = 1_000
    recorded = RecordedSteps(setting.probe)
    hooks = TrainingHooks(TrainingSteps(recorded), recorded.close, pytest.fail)
    hooks._watch_optimizers(SimpleNamespace(register_optimizer_step_post_hook=registered.append))
    fake = SimpleNamespace(autograd=SimpleNamespace(backward=lambda tensors: None))
    hooks._watch_backward(fake)
    (stepped,) = registered

    def train() -> None:
        for _ in range(2_000):
            setting.queue.launch(1_000_000)
            fake.autograd.backward(None)
            stepped(optimizer, (), {})

    with pytest.raises(SystemExit):
        train()
    measured = [e for e in setting.events("steps") if e["phase"] == "measured"]
    assert sum(len(e["step_ns"]) for e in measured) == 500, (
        "as many as were asked for, though several are reported at once"
    )
    assert {e["device_stride"] for e in measured[1:]} <= set(range(2, 12))
    times = sorted(ns for e in measured for ns in e["device_ns"])
    assert times[250] == pytest.approx(1_000_000, rel=0.01)
    assert times[50] > 900_000
