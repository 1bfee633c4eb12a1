"""What a program writes to $DATA_FD, taken over into its job's stream."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from builders import events
from builders import job as job_in
from voir.smuggle import encode_as_escape_sequence

from benchwright.core.job import Job, JobBarrier, Outcome
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor

pytestmark = pytest.mark.compat

SAY = "import os, sys, time, json\nfd = int(os.environ['DATA_FD'])\ndef say(x): os.write(fd, (json.dumps(x) + chr(10)).encode())\n"


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor() as local:
        yield local


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    def make(code: str, name: str = "job", **fields: Any) -> Job:
        data_file = f"{tmp_path}/runs/{name}.voir"
        return job_in(
            sys.executable,
            "-c",
            SAY + code,
            folder=tmp_path,
            id=name,
            **({"data_file": data_file, "dialect": "voir"} | fields),
        )

    return make


def lines(job: Job) -> list[str]:
    return [line for event in events(job, "reported") for line in event["lines"]]


# Until the supervisor has written an event of that kind, however busy the machine is.
UNTIL_WRITTEN = """
def until_written(event):
    stream = json.loads(os.environ["BENCHPROBE_CONFIG"])["stream"]
    while f'"event":"{event}"' not in open(stream).read():
        time.sleep(0.02)
"""


def test_lines_are_in_the_stream_with_the_time_they_were_seen(executor: LocalExecutor, make_job: Any) -> None:
    job = make_job(UNTIL_WRITTEN + "say({'rate': 1})\nuntil_written('reported')\ntime.sleep(0.5)\nsay({'rate': 2})")
    [outcome] = executor.run([job], Listener())
    assert outcome.exit_code == 0
    assert lines(job) == ['{"rate": 1}', '{"rate": 2}']
    first, second = (event["t"] for event in events(job, "reported"))
    assert second - first > 0.3e9
    assert not Path(job.data_file or "").exists()


def test_the_descriptor_is_3_and_there_is_no_other(executor: LocalExecutor, make_job: Any) -> None:
    job = make_job("say([fd, sorted(int(n) for n in os.listdir('/proc/self/fd'))])")
    executor.run([job], Listener())
    assert json.loads(lines(job)[0]) == [3, [0, 1, 2, 3, 4]]  # 4 is the folder being listed


def test_a_number_the_job_gives_itself_stands(executor: LocalExecutor, make_job: Any) -> None:
    job = make_job("os.write(3, b'to three'); print(fd)", env={"DATA_FD": "7"})
    [outcome] = executor.run([job], Listener())
    assert (outcome.exit_code, lines(job)) == (0, ["to three"])


def test_half_a_line_of_a_killed_program_is_kept(executor: LocalExecutor, make_job: Any) -> None:
    job = make_job("say({'a': 1})\nos.write(fd, b'{\"a\": ')\nos.kill(os.getpid(), 9)")
    [outcome] = executor.run([job], Listener())
    assert outcome.signal == 9
    assert lines(job) == ['{"a": 1}', '{"a": ']


def test_what_an_earlier_attempt_left_is_not_taken_again(
    executor: LocalExecutor, make_job: Any, tmp_path: Path
) -> None:
    job = make_job("say({'new': 1})")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "job.voir").write_text('{"old": 1}\n')
    executor.run([job], Listener())
    assert lines(job) == ['{"new": 1}']


def test_much_is_taken_over_whole(executor: LocalExecutor, make_job: Any) -> None:
    job = make_job("for n in range(20000): say({'n': n, 'pad': 'x' * 40})\nos.write(fd, b'y' * 600_000 + b'\\n[1]')")
    executor.run([job], Listener())
    found = lines(job)
    assert [json.loads(line)["n"] for line in found[:20000]] == list(range(20000))
    assert found[20000:] == ["y" * (1 << 18), "[1]"]  # what is too long for a line is cut


def test_lines_hidden_in_the_output_are_found_and_not_shown(executor: LocalExecutor, make_job: Any) -> None:
    class Hear(Listener):
        text = ""

        def on_output(self, job_id: str, text: str) -> None:
            self.text += text

    hidden = encode_as_escape_sequence('{"rate": 5}\n').encode()
    code = f"for _ in range(3): os.write(1, b'seen' + {hidden!r} + b' too\\n'); time.sleep(0.1)"
    job = make_job(code, env={"DATA_FD": "1"}, echo=True)
    listener = Hear()
    executor.run([job], listener)
    assert lines(job) == ['{"rate": 5}'] * 3
    assert listener.text == "seen too\n" * 3


def test_a_program_that_asks_to_be_ended_is_ended(executor: LocalExecutor, make_job: Any) -> None:
    job = make_job("say({'$event': 'stop'})\ntime.sleep(600)")
    [outcome] = executor.run([job], Listener())
    assert outcome.signal == 15
    (end,) = events(job, "end")
    assert end["early_stop"] is True
    assert events(job, "message") == []


def test_one_that_is_measured_with_others_goes_on_until_they_have_enough(
    executor: LocalExecutor, make_job: Any, tmp_path: Path
) -> None:
    jobs = []
    for rank, wait_s in enumerate((0.0, 1.0)):
        barrier = JobBarrier(folder=str(tmp_path / "barrier"), size=2, rank=rank)
        code = f"time.sleep({wait_s})\nsay({{'$event': 'stop'}})\ntime.sleep(600)"
        jobs.append(make_job(code, name=f"job.{rank}", barrier=barrier))
    (tmp_path / "barrier").mkdir()
    first, second = executor.run(jobs, Listener())
    assert first.signal == second.signal == 15  # neither has slept to its end
    assert events(jobs[0], "exit")[0]["t"] > events(jobs[1], "reported")[0]["t"]


def test_one_that_crashes_after_asking_is_not_excused(executor: LocalExecutor, make_job: Any, tmp_path: Path) -> None:
    barrier = JobBarrier(folder=str(tmp_path / "barrier"), size=2, rank=0)
    (tmp_path / "barrier").mkdir()
    job = make_job("say({'$event': 'stop'})\ntime.sleep(0.5)\nsys.exit(3)", barrier=barrier)
    [outcome] = executor.run([job], Listener())
    assert outcome.exit_code == 3
    assert "early_stop" not in events(job, "end")[0]


def test_the_newest_values_are_told_while_it_runs(make_job: Any) -> None:
    heard: list[Mapping[str, float]] = []

    class StopOnceHeard(Listener):
        def on_progress(self, job_id: str, values: Mapping[str, Any]) -> None:
            if values["metrics"]:
                heard.append(values["metrics"])
                executor.stop()

    job = make_job("say({'rate': 3, 'loss': 0.5})\ntime.sleep(600)", sample_interval_s=0.1)
    with LocalExecutor() as executor:
        executor.run([job], StopOnceHeard())
    assert heard[0] == {"rate": 3.0, "loss": 0.5}


def test_a_place_for_the_data_that_cannot_be_written_is_said(
    executor: LocalExecutor, make_job: Any, tmp_path: Path
) -> None:
    (tmp_path / "blocked").write_text("")
    job = make_job("pass", data_file=str(tmp_path / "blocked" / "x.voir"))
    [outcome] = executor.run([job], Listener())
    assert outcome.exit_code is None
    assert "blocked" in (outcome.detail or "")


def test_files_of_the_job_are_there_before_it_starts(executor: LocalExecutor, make_job: Any, tmp_path: Path) -> None:
    place = tmp_path / "deep" / "conf.json"
    job = make_job(f"say(open({str(place)!r}).read())", files={str(place): '{"é": 1}'})
    [outcome] = executor.run([job], Listener())
    assert isinstance(outcome, Outcome)
    assert json.loads(lines(job)[0]) == '{"é": 1}'
    assert [path.name for path in place.parent.iterdir()] == ["conf.json"]


def test_what_a_child_says_after_the_programs_end_is_left_out_and_told(executor, make_job):
    code = "say({'rate': 1.0})\nif os.fork() == 0:\n    until_written('exit'); say({'rate': 999.0}); os._exit(0)\n"
    job = make_job(f"{UNTIL_WRITTEN}import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{code}", grace_s=600)
    executor.run([job], Listener())
    said = [json.loads(line) for event in events(job, "reported") for line in event["lines"]]
    assert said == [{"rate": 1.0}]
    [message] = [event["text"] for event in events(job, "message") if "outlived the program" in event["text"]]
    assert "were ignored" in message
