"""Phase, rate and steps of a job that runs, from what it has written so far."""

from __future__ import annotations

import json
from pathlib import Path

from builders import job

from benchwright.runner.progress_panel import RunningJob, last_line


class Written:
    """A job whose stream is written by the test."""

    def __init__(self, folder: Path, **fields: object) -> None:
        self.stream, self.log = folder / "b.data", folder / "b.log"
        given = {"id": "b.D0", "stream": str(self.stream), "log": str(self.log)} | fields
        made = job(**given)  # type: ignore[arg-type]
        self.running = RunningJob(made, now=0.0)

    def event(self, **event: object) -> None:
        with self.stream.open("a") as file:
            file.write(json.dumps(event, separators=(",", ":")) + "\n")

    def loop(self, process: int = 1, total: int | None = None, **more: object) -> None:
        self.event(event="loop", process=process, loop=1, name="train", total=total, counts=True, **more)

    def steps(self, first: int, seconds: float, count: int = 10, process: int = 1, **more: object) -> None:
        given = {"phase": "measured", "items": 4} | more
        self.event(
            **{"event": "steps", "process": process, "loop": 1, "first": first, "phase": given["phase"]},
            **{"t": round(seconds * 1e9), "step_ns": [1] * count, "wait_ns": [0] * count, "items": given["items"]},
        )

    def look(self) -> RunningJob:
        self.running.look()
        return self.running


def test_phases_follow_the_events(tmp_path: Path) -> None:
    written = Written(tmp_path)
    phases = [written.look().phase]
    written.event(event="build_begin", process=1, step="export")
    phases += [written.look().phase, written.running.detail]
    written.event(event="runtime", process=1, name="onnxruntime")
    phases.append(written.look().phase)
    written.loop()
    phases.append(written.look().phase)
    written.steps(0, 1.0, phase="warmup")
    written.event(event="measure", process=1, loop=1, step=10)
    phases.append(written.look().phase)
    written.event(event="stop", process=1, loop=1, step=50)
    phases.append(written.look().phase)
    assert phases == ["importing", "building", "export", "loading", "warm-up", "measuring", "ending"]


def test_the_rate_counts_items_between_two_looks(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.loop(total=100)
    written.steps(0, 10.0)
    assert written.look().rate is None  # one line tells no time
    written.steps(10, 12.0)
    assert (written.look().rate, written.running.steps) == ((20.0, "items/s"), (20, 100))
    written.steps(20, 13.0)
    written.steps(30, 14.0)
    assert written.look().rate == (40.0, "items/s")
    assert list(written.running.rates) == [20.0, 40.0]


def test_steps_of_unknown_size_are_counted_as_steps_and_units_are_named(tmp_path: Path) -> None:
    unknown, tokens = Written(tmp_path), Written(tmp_path)
    for written, items in ((unknown, None), (tokens, 512)):
        written.stream.unlink(missing_ok=True)
        written.loop(unit="tokens")
        written.steps(0, 1.0, items=items)
        written.steps(10, 2.0, items=items)
        written.look()
    assert (unknown.running.rate, tokens.running.rate) == ((10.0, "steps/s"), (5120.0, "tokens/s"))


def test_calls_of_a_model_are_called_so(tmp_path: Path) -> None:
    written = Written(tmp_path, argv=("python", "-m", "benchmodels", "measure"))
    written.event(event="loop", process=1, loop=1, name="latency", total=None, counts=True, unit=None)
    written.steps(0, 1.0, items=1)
    written.steps(10, 2.0, items=1)
    assert written.look().rate == (10.0, "calls/s")


def test_processes_of_a_job_are_added_up_and_the_slowest_tells_how_far_it_is(tmp_path: Path) -> None:
    written = Written(tmp_path)
    for process, speed in ((1, 1.0), (2, 2.0)):
        written.loop(process=process, total=40)
        written.steps(0, 1.0, process=process)
        written.steps(10, 1.0 + speed, process=process, count=round(20 / speed))
    assert written.look().rate == (60.0, "items/s")
    assert written.running.steps == (20, 40)


def test_another_loop_and_a_foreign_line_change_nothing(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.loop()
    written.steps(0, 1.0)
    written.steps(10, 2.0)
    written.look()
    written.event(event="steps", process=1, loop=2, first=0, phase="measured", t=5, step_ns=[1], wait_ns=[0], items=1)
    with written.stream.open("ab") as file:
        file.write(b'\xff\xfe not json\n{"event":"loop","process":"x"}\n{"event":"st')
    assert (written.look().rate, written.running.steps) == ((40.0, "items/s"), (20, None))


def test_loops_that_do_not_count_are_not_shown(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.event(event="loop", process=1, loop=1, name="eval", total=None, counts=False)
    written.steps(0, 1.0)
    written.steps(10, 2.0)
    assert (written.look().rate, written.running.steps) == (None, None)


def test_a_line_that_is_half_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    written = Written(tmp_path)
    whole = b'{"event":"loop","process":1,"loop":1,"total":null,"counts":true}\n'
    written.stream.write_bytes(whole[:20])
    assert written.look().phase == "importing"
    with written.stream.open("ab") as file:
        file.write(whole[20:])
    assert written.look().phase == "warm-up"


def test_a_job_that_writes_much_is_read_from_near_the_end(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.look()
    written.stream.write_bytes(b"x" * 5_000_000 + b"\n")
    written.steps(1000, 1.0)
    written.steps(1010, 2.0)
    assert written.look().rate == (40.0, "items/s")


def test_the_share_that_is_done_follows_the_stop_rule_before_the_length(tmp_path: Path) -> None:
    shares = []
    for probe in ({"stop": {"steps": 40}}, {"stop": {"seconds": 4}}, {}):
        written = Written(tmp_path, probe=probe)
        written.stream.unlink(missing_ok=True)
        written.loop(total=200)
        assert written.look().share_done() is None
        written.steps(0, 1.0, phase="warmup")
        written.steps(10, 2.0)
        written.steps(20, 3.0)
        shares.append(written.look().share_done())
    assert shares == [0.5, 0.25, 0.15]


def test_what_the_agent_says_stands_in_for_a_loop(tmp_path: Path) -> None:
    running = Written(tmp_path).running
    running.heard({"rss_bytes": 2048, "metrics": {"speed": 3.0}, "elapsed_s": 1})
    running.heard({"rss_bytes": 4096, "metrics": {"speed": 5.0}})
    running.heard({"rss_bytes": "?", "metrics": None})
    assert (running.memory_bytes, running.metrics, list(running.rates)) == (4096.0, {"speed": 5.0}, [3.0, 5.0])


def test_the_last_line_of_a_log_is_what_a_terminal_would_show(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_line(str(log)) == ""
    log.write_bytes(b"first\n\x1b[31m 10%|#   |\r\x1b[1m 45%|##  | 3.1M/7M\x1b[0m\r\n\n")
    assert last_line(str(log)) == "45%|##  | 3.1M/7M"
    log.write_bytes(b"Looking in indexes: https://me:hunter2secret@example.org/simple\n")
    assert "hunter2" not in last_line(str(log))
    log.write_bytes(b"\x1b[2J\x07bell \xff\n")
    assert last_line(str(log)) == "bell �"
