"""Folders written for milabench, run by the real voir, from the first step to the verdict."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import carrying, wait_for

from benchwright.artifacts.probe_folder import probe_folder
from benchwright.compat.voir.company import own_voirfile
from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Environment, Runner, Script
from benchwright.core.job import Job, JobBarrier
from benchwright.core.launches import overlap
from benchwright.core.run import Launch
from benchwright.core.status import Reason, Status
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor
from benchwright.kinds.registry import kind_of
from benchwright.record import record_stream
from benchwright.runs.logs import logs_in, read_log

# As milabench's template has it.
VOIRFILE = """
from dataclasses import dataclass

from voir import configurable
from voir.instruments import dash, early_stop, gpu_monitor, log, rate


@dataclass
class Config:
    # Whether to display the dash or not
    dash: bool = False
    # How often to log the rates
    interval: str = "1s"
    # Number of rates to skip before logging
    skip: int = 5
    # Number of rates to log before stopping
    stop: int = 20
    # Number of seconds between each gpu poll
    gpu_poll: int = 3


@configurable
def instrument_main(ov, options: Config):
    yield ov.phases.init
    if options.dash:
        ov.require(dash)
    ov.require(
        log("value", "progress", "rate", "units", "loss", "gpudata", context="task"),
        rate(interval=options.interval, skip=options.skip, sync=None),
        early_stop(n=options.stop, key="rate", task="train"),
        gpu_monitor(poll_interval=options.gpu_poll),
    )
"""
MAIN = """
import os
import sys
import time

import voir
from giving import give


def main():
    for i in voir.iterate("train", range(3000), report_batch=True, batch_size=64):
        give(loss=1 / (i + 1))
        time.sleep(0.002)
        AT_EACH_STEP
    print("the loop ran to its end")


if __name__ == "__main__":
    main()
"""
# Tells the program how many rates there were; how many steps these take depends on the load of the machine.
COUNTING = """
import voir

voir.seen = 0


def instrument_seen(ov):
    yield ov.phases.init

    def count(rate):
        voir.seen += 1

    ov.given["?rate"].subscribe(count)
"""
STOP = 8
OPTIONS = {"options": {"stop": STOP, "interval": "0.05s", "skip": 2}}


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor() as local:
        yield local


class Folder:
    """A benchmark's folder, and the run folder its jobs write to."""

    def __init__(self, place: Path, main: str = MAIN, voirfile: str | None = VOIRFILE, each_step: str = "pass") -> None:
        self.path = place / "bench"
        self.runs = place / "runs"
        self.path.mkdir()
        (self.path / "main.py").write_text(main.replace("AT_EACH_STEP", each_step))
        if voirfile is not None:
            (self.path / "voirfile.py").write_text(textwrap.dedent(voirfile))
        folder = BenchmarkFolder(
            path=str(self.path), group="b", runner=Runner(name="voir", dialect="milabench", settings=OPTIONS)
        )
        script = Script(path=str(self.path / "main.py"), args=(), cwd=str(self.path), python=sys.executable)
        self.benchmark = Benchmark(
            name="b",
            workload=script,
            source="test",
            folder=folder,
            environment=Environment(name="b", folder=str(self.path)),
        )

    def job(self, name: str = "b.D0", *args: str, **fields: Any) -> Job:
        config = str(self.runs / f"{name}.voir.json")
        program = ("-m", "voir", "--config", config, str(self.path / "main.py"), *args)
        said = {
            "argv": (sys.executable, *program),
            "cwd": str(self.path),
            "files": {config: json.dumps(OPTIONS)},
            "data_file": str(self.runs / f"{name}.voir"),
            "dialect": "voir",
            "stream": str(self.runs / f"{name}.data"),
            "log": str(self.runs / f"{name}.log"),
            "timeout_s": 600.0,
            "grace_s": 1.0,
        }
        return Job(id=name, benchmark="b", **(said | fields))

    def run(self, executor: LocalExecutor, job: Job | None = None) -> Launch:
        chosen = job or self.job()
        executor.run([chosen], Listener())
        return record_stream(chosen.stream, chosen, self.benchmark, kind_of)

    def log(self, job: str = "b.D0") -> str:
        (found,) = [log for log in logs_in(self.runs) if log.job == job]
        return b"".join(read_log(found)).decode()


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Folder]:
    return lambda **fields: Folder(tmp_path, **fields)


def rate_of(launch: Launch) -> Any:
    found = launch.measurement("rate")
    assert found is not None, launch
    return found


def test_the_template_runs_unchanged_and_exactly_the_asked_number_counts(
    executor: LocalExecutor, folder: Callable[..., Folder]
) -> None:
    launch = folder().run(executor)
    rate = rate_of(launch)
    assert (launch.status, launch.exit_code, launch.detail) == (Status.OK, 0, None)
    assert len(rate.samples) == STOP
    assert len(rate.warmup_samples) == 1
    assert rate.unit == "items/s"
    assert all(0 < value < 64 / 0.002 for value in rate.samples)
    loss = launch.measurement("loss")
    assert loss is not None
    assert loss.samples[:3] == (1.0, 0.5, 1 / 3)
    assert launch.facts["reported"]["early_stop"] is True
    begin, end = launch.facts["measured_ns"]
    assert 0.5 * STOP * 0.05 < (end - begin) * 1e-9 < 200


def test_what_is_hidden_in_the_output_is_found_and_not_shown(
    executor: LocalExecutor, folder: Callable[..., Folder]
) -> None:
    """As torchrun needs it: its children have no descriptor 3. Here a launcher starts one, as torchrun does."""
    bench = folder(each_step="print('step', i)")
    whole = bench.job()
    start = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"
    argv = (sys.executable, "-c", start, *whole.argv[1:])
    launch = bench.run(executor, bench.job(argv=argv, data_file=None, env={"DATA_FD": "1"}))
    assert launch.status is Status.OK
    assert len(rate_of(launch).samples) == STOP
    assert bench.log().startswith("step 0\nstep 1\n")
    assert "\x1b[" not in bench.log()


def test_a_crash_is_told_with_its_error(executor: LocalExecutor, folder: Callable[..., Folder]) -> None:
    launch = folder(each_step="if i == 50: raise ValueError('bad batch')").run(executor)
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.CRASHED)
    assert launch.detail == "exit code 1: ValueError: bad batch"


def test_a_program_that_is_killed_keeps_what_it_said(executor: LocalExecutor, folder: Callable[..., Folder]) -> None:
    launch = folder(each_step="if i == 50: os.kill(os.getpid(), 9)").run(executor)
    assert (launch.status, launch.reason, launch.detail) == (Status.FAILED, Reason.SIGNALLED, "ended by SIGKILL")
    assert launch.measurement("loss") is not None


def test_a_loss_that_diverges_is_no_success_although_it_stops_early(
    executor: LocalExecutor, folder: Callable[..., Folder]
) -> None:
    launch = folder(each_step="if i == 50: give(loss=float('nan'))").run(executor)
    assert launch.facts["reported"]["early_stop"] is True
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.INVALID)


def test_without_a_rate_there_is_no_success(executor: LocalExecutor, folder: Callable[..., Folder]) -> None:
    launch = folder(main="import voir\nprint('hello')\n").run(executor)
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.NO_DATA)


def test_a_folder_without_a_voirfile_says_what_is_missing(
    executor: LocalExecutor, folder: Callable[..., Folder]
) -> None:
    bench = folder(voirfile=None, main="import voir\nfor _ in voir.iterate('train', range(3)): pass\n")
    launch = bench.run(executor, bench.job(argv=(sys.executable, "-m", "voir", str(bench.path / "main.py"))))
    assert (launch.reason, "voirfile.py" in (launch.detail or "")) == (Reason.NO_DATA, True)


def test_a_program_that_wants_to_be_ended_is_ended_and_that_is_success(
    executor: LocalExecutor, folder: Callable[..., Folder]
) -> None:
    bench = folder(voirfile=VOIRFILE.replace('task="train")', 'task="train", signal="stop")'))
    launch = bench.run(executor)
    assert "the loop ran to its end" not in bench.log()
    assert (launch.status, launch.reason) == (Status.OK, None)
    assert len(rate_of(launch).samples) == STOP


def test_leaving_by_sys_exit_is_success(executor: LocalExecutor, folder: Callable[..., Folder]) -> None:
    assert folder(each_step="if i == 150: sys.exit(0)").run(executor).status is Status.OK


def test_an_instrument_that_fails_is_a_note_and_the_program_goes_on(
    executor: LocalExecutor, folder: Callable[..., Folder]
) -> None:
    broken = VOIRFILE + "\n\ndef instrument_broken(ov):\n    yield ov.phases.init\n    raise KeyError('gone')\n"
    launch = folder(voirfile=broken).run(executor)
    assert launch.status is Status.OK
    assert [n.text for n in launch.notes if "KeyError" in n.text]


def test_a_killed_agent_leaves_nothing_behind_and_a_second_attempt_is_whole(
    tmp_path: Path, folder: Callable[..., Folder]
) -> None:
    bench = folder(each_step="time.sleep(0.01)")
    mark = str(tmp_path / "marked")
    job = bench.job(env={"MARK": mark})

    class KillTheAgent(Listener):
        def on_started(self, job_id: str, pid: int) -> None:
            wait_for(lambda: (bench.runs / "b.D0.voir").exists() and (bench.runs / "b.D0.voir").stat().st_size > 500)
            supervisor = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(supervisor, 9)

    with LocalExecutor() as local:
        local.run([job], KillTheAgent())
        assert wait_for(lambda: not carrying(mark))
        Path(job.stream).rename(job.stream + ".interrupted-1")
        launch = bench.run(local, job)
    assert launch.status is Status.OK
    assert len(rate_of(launch).samples) == STOP


class TestTogether:
    """Processes of one benchmark, of unequal speed and not begun at once."""

    MAIN = MAIN.replace("def main():", "def main():\n    time.sleep(0.3 * int(sys.argv[1]))").replace(
        "time.sleep(0.002)", "time.sleep(0.002 * (1 + int(sys.argv[1])))"
    )

    def run(self, executor: LocalExecutor, bench: Folder, tmp_path: Path, size: int = 3) -> list[Launch]:
        barrier = tmp_path / "barrier"
        barrier.mkdir()
        probe = str(probe_folder(tmp_path / "artifacts"))
        jobs = []
        for n in range(size):
            alone, meeting = bench.job(f"b.D{n}"), JobBarrier(folder=str(barrier), size=size, rank=n)
            env, files = own_voirfile(str(bench.runs))
            assert env, "its path must have no spaces"
            fields = {"files": alone.files | files, "env": env, "barrier": meeting, "probe_path": probe}
            jobs.append(bench.job(f"b.D{n}", str(n), **fields))
        executor.run(jobs, Listener())
        return [record_stream(job.stream, job, bench.benchmark, kind_of) for job in jobs]

    def test_they_begin_together_are_measured_under_the_same_load_and_leave_together(
        self, executor: LocalExecutor, folder: Callable[..., Folder], tmp_path: Path
    ) -> None:
        launches = self.run(executor, folder(main=self.MAIN), tmp_path)
        assert [(x.status, x.exit_code, x.detail) for x in launches] == [(Status.OK, 0, None)] * 3
        assert [len(rate_of(x).samples) for x in launches] == [STOP] * 3
        begins = [x.facts["measured_ns"][0] for x in launches]
        assert max(begins) - min(begins) < 200e6  # not 300 ms, by which their starts differ
        assert (overlap(launches) or 0) >= 0.6
        assert [n.text for x in launches for n in x.notes if "instrument" in n.text] == []
        assert rate_of(launches[0]).labels == {"job": "0", "loop": "train"}

    @pytest.mark.long
    def test_the_time_spent_waiting_is_in_no_observation_that_counts(
        self, executor: LocalExecutor, folder: Callable[..., Folder], tmp_path: Path
    ) -> None:
        """Where a step is the time between two `give`s, the wait is part of one, and a timer ends observations meanwhile."""
        loop = "for i in range(3000):\n        time.sleep(0.002 * (1 + int(sys.argv[1])))\n        give(task='train', batch_size=64)"
        main = (
            MAIN[: MAIN.index("    for i in")] + "    time.sleep(1.0 * int(sys.argv[1]))\n    " + loop + "\n\nmain()\n"
        )
        launches = self.run(executor, folder(main=main), tmp_path)
        for launch in launches:
            rate = rate_of(launch)
            assert len(rate.samples) == STOP
            assert min(rate.samples) > sorted(rate.samples)[STOP // 2] / 10  # with the wait, a fortieth

    @pytest.mark.long
    def test_the_order_of_instruments_changes_nothing(
        self, executor: LocalExecutor, folder: Callable[..., Folder], tmp_path: Path
    ) -> None:
        """An early stop before the log sees each observation before it is written down."""
        line = '        log("value", "progress", "rate", "units", "loss", "gpudata", context="task"),\n'
        after = VOIRFILE.replace(line, "").replace('task="train"),\n', 'task="train"),\n' + line)
        assert after.index("log(") > after.index("early_stop(")
        launches = self.run(executor, folder(main=self.MAIN, voirfile=after), tmp_path)
        assert [len(rate_of(x).samples) for x in launches] == [STOP] * 3

    def test_nobody_waits_for_one_that_crashed(
        self, executor: LocalExecutor, folder: Callable[..., Folder], tmp_path: Path
    ) -> None:
        main = self.MAIN.replace("AT_EACH_STEP", "if i == 20 and sys.argv[1] == '1': raise ValueError('no')")
        launches = self.run(executor, folder(main=main), tmp_path)
        assert [x.status for x in launches] == [Status.OK, Status.FAILED, Status.OK]
        assert [len(rate_of(launches[n]).samples) for n in (0, 2)] == [STOP] * 2

    def test_one_whose_loop_ends_before_it_is_done_does_not_hold_up_the_others(
        self, executor: LocalExecutor, folder: Callable[..., Folder], tmp_path: Path
    ) -> None:
        main = self.MAIN.replace("AT_EACH_STEP", "if voir.seen == 5 and sys.argv[1] == '0': break")
        launches = self.run(executor, folder(main=main, voirfile=VOIRFILE + COUNTING), tmp_path)
        assert launches[0].status is Status.OK
        assert [n.text for n in launches[0].notes if "observations to be measured" in n.text]
        assert [len(rate_of(x).samples) for x in launches[1:]] == [STOP] * 2

    def test_a_voirfile_the_user_names_is_left_alone(
        self, executor: LocalExecutor, folder: Callable[..., Folder], tmp_path: Path
    ) -> None:
        bench = folder()
        barrier = JobBarrier(folder=str(tmp_path / "barrier"), size=2, rank=0)
        probe = str(probe_folder(tmp_path / "artifacts"))
        env = {"VOIRFILE": str(bench.path / "voirfile.py")}
        launch = bench.run(executor, bench.job(barrier=barrier, probe_path=probe, env=env))
        assert (launch.status, len(rate_of(launch).samples)) == (Status.OK, STOP)
