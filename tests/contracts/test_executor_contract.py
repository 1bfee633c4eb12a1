"""What every executor must do."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_kubectl
import msgspec
import pytest
from adb_device import AdbDevice, attached
from builders import events
from builders import job as job_in
from local_shell import LocalShell
from slurm_cluster import SlurmCluster, start_slurm_cluster, wait_until
from ssh_server import SshServer, start_ssh_server

from benchwright.core.job import Job, JobBarrier, Outcome
from benchwright.core.machine import Machine
from benchwright.core.metric import MetricSpec
from benchwright.core.system import Node, System
from benchwright.executors.base import Executor, Listener, Site
from benchwright.executors.boards.executor import BoardExecutor
from benchwright.executors.boards.shell_board import ShellBoard
from benchwright.executors.fake import FakeExecutor
from benchwright.executors.registry import is_here, open_executor
from benchwright.executors.ssh import ClusterExecutor

SPEED = MetricSpec(name="speed", pattern=r"speed=([\d.]+)")
COMMANDS = {"fine": ("echo", "speed=2.5"), "broken": ("sh", "-c", "exit 3"), "missing": ("no-such-command-anywhere",)}
# As the commands, for processes that are forked from one that has imported a module.
SCRIPTS = {"fine": "import colorsys\nprint('speed=2.5')\n", "broken": "import colorsys\nraise SystemExit(3)\n"}


def fake() -> FakeExecutor:
    return FakeExecutor({"fine": [2.5]}, outcomes={"broken": Outcome(job="", exit_code=3)})


@pytest.fixture(scope="module")
def ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    server = start_ssh_server(tmp_path_factory.mktemp("ssh"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    cluster = start_slurm_cluster(tmp_path_factory.mktemp("slurm"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
        yield cluster
        try:
            wait_until(lambda: cluster.jobs() == [], "the queue is empty")
        finally:
            cluster.stop()


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbDevice]:
    with attached(tmp_path_factory.mktemp("adb")) as device:
        yield device


VARIANTS = ("local", "fake", "cluster", "ssh", "via", "slurm", "ray", "board", "adb", "nice", "warm")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.xdist_group("ray" if name == "ray" else f"executor {name}"))
        for name in VARIANTS
    ],
)
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def executor(
    variant: str, request: pytest.FixtureRequest, plugin_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Executor]:
    """One for all tests, as it is for all jobs of a run; the last of them stops it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(plugin_folder))
        made = make(variant, request, tmp_path_factory)
    with made as opened:
        yield opened


def make(variant: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Executor:
    if variant in ("cluster", "ssh"):
        server = request.getfixturevalue("ssh_server")
        return ClusterExecutor(server.system(), ssh=server.client)
    if variant == "via":
        words = (sys.executable, fake_kubectl.__file__, "exec", "-i", "pod", "--")
        return ClusterExecutor(System(nodes=(Node(name="far", ip="far", via=words),)))
    if variant == "slurm":
        request.getfixturevalue("slurm_cluster")
        return open_executor("slurm", Site(folder=str(tmp_path_factory.mktemp("base")), slurm=("--time=20",)))
    if variant == "ray":
        address = request.getfixturevalue("ray_cluster").address
        return open_executor(f"ray:{address}", Site(folder=str(tmp_path_factory.mktemp("base"))))
    if variant == "adb":
        return open_executor(f"adb:{request.getfixturevalue('phone').serial}", Site())
    if variant == "board":
        return BoardExecutor(ShellBoard(LocalShell(), str(tmp_path_factory.mktemp("board"))))
    if variant == "fake":
        return fake()
    return open_executor("nice:3" if variant == "nice" else "local", Site())


@pytest.fixture(scope="module")
def warm_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A process that forks others does so for jobs of one folder."""
    return tmp_path_factory.mktemp("warm")


@pytest.fixture
def make_job(tmp_path: Path, warm_folder: Path, variant: str) -> Callable[..., Job]:
    def make(benchmark: str, id: str | None = None, **fields: Any) -> Job:
        given = {
            "benchmark": benchmark,
            "cwd": str(tmp_path),
            "node": "far" if variant in ("ssh", "via") else "localhost",
        }
        if variant == "warm":
            script = tmp_path / f"{benchmark}.py"
            script.write_text(SCRIPTS.get(benchmark, ""))
            python = sys.executable if benchmark in SCRIPTS else COMMANDS[benchmark][0]
            given |= {"cwd": str(warm_folder), "warm": ("colorsys",), "probe": {"models": {"mode": "discover"}}}
            words = (python, "-m", "benchmodels", str(script))
            return job_in(*words, folder=tmp_path / "run", id=id or benchmark, **(given | fields))
        return job_in(*COMMANDS[benchmark], folder=tmp_path / "run", id=id or benchmark, **(given | fields))

    return make


class Recording(Listener):
    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def on_started(self, job_id: str, pid: int) -> None:
        assert pid > 0
        self.heard.append(("started", job_id))

    def on_finished(self, outcome: Outcome) -> None:
        self.heard.append(("finished", outcome.job))


def test_it_knows_its_machine(executor):
    machine = executor.machine()
    assert isinstance(machine, Machine)
    assert 1 <= machine.cores <= machine.cores_total
    assert machine.memory_bytes > 0
    assert executor.machine() == machine


ON = {"cluster": "ssh", "ssh": "ssh:far", "board": "ssh:far", "adb": "adb:1", "nice": "nice:3", "fake": "fake:x=1"}
ON |= {"via": "ssh:far", "slurm": "slurm", "ray": "ray"}
HERE = {"local", "nice", "warm"}


def test_whether_it_runs_here_is_known_before_it_is_opened(variant, plugin_folder, monkeypatch):
    monkeypatch.syspath_prepend(str(plugin_folder))
    assert is_here(ON.get(variant, "local")) is (variant in HERE)


def test_one_that_runs_here_has_the_files_of_this_machine(executor, variant, make_job, tmp_path):
    if variant not in HERE - {"warm"}:
        pytest.skip("it does not run here")
    seen = tmp_path / "seen"
    job = msgspec.structs.replace(make_job("fine"), argv=("touch", str(seen)))
    assert executor.run([job], Listener())[0].exit_code == 0
    assert seen.exists()


def test_nothing_to_run_is_nothing(executor):
    assert executor.run([], Listener()) == []


def test_a_job_that_ends_well(executor, make_job):
    job, listener = make_job("fine"), Recording()
    [outcome] = executor.run([job], listener)
    assert (outcome.job, outcome.exit_code, outcome.signal, outcome.detail) == ("fine", 0, None, None)
    assert (outcome.timed_out, outcome.stopped, outcome.out_of_memory) == (False, False, False)
    assert listener.heard == [("started", "fine"), ("finished", "fine")]


def test_a_job_that_fails_is_an_outcome(executor, make_job):
    [outcome] = executor.run([make_job("broken")], Listener())
    assert outcome.exit_code == 3


def test_a_job_that_cannot_start_says_why(executor, make_job):
    [outcome] = executor.run([make_job("missing")], Listener())
    assert outcome.exit_code is None
    assert "was not found" in outcome.detail


def test_outcomes_come_in_the_order_of_the_jobs(executor, make_job, tmp_path):
    names = ["broken", "fine", "missing", "fine"]
    jobs = [
        make_job(name, id=f"{name}{rank}", barrier=JobBarrier(folder=str(tmp_path / "barrier"), size=4, rank=rank))
        for rank, name in enumerate(names)
    ]
    outcomes = executor.run(jobs, Listener())
    assert [outcome.job for outcome in outcomes] == [job.id for job in jobs]
    assert [outcome.exit_code for outcome in outcomes] == [3, 0, None, 0]


@pytest.mark.parametrize("name", ["fine", "broken", "missing"])
def test_the_stream_is_framed_and_agrees_with_the_outcome(executor, make_job, name):
    job = make_job(name)
    [outcome] = executor.run([job], Listener())
    first, *_, last = events(job)
    assert (first["event"], first["version"], first["job"]) == ("stream", 1, name)
    assert last["event"] == "end"
    assert {key: last[key] for key in ("exit_code", "signal", "timed_out", "stopped", "out_of_memory", "detail")} == {
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "timed_out": outcome.timed_out,
        "stopped": outcome.stopped,
        "out_of_memory": outcome.out_of_memory,
        "detail": outcome.detail,
    }
    assert last["duration_s"] == outcome.duration_s
    assert {"cpu_s", "max_rss_bytes", "wall", "t"} <= last.keys()


def test_metrics_reach_the_stream(executor, make_job):
    job = make_job("fine", metrics=(SPEED,))
    executor.run([job], Listener())
    [metric] = [event for event in events(job) if event["event"] == "metric"]
    assert (metric["name"], metric["values"], metric["lines"]) == ("speed", [2.5], [1])
    [extraction] = [event for event in events(job) if event["event"] == "extraction"]
    assert extraction["metrics"]["speed"]["matches"] == 1


def test_the_log_is_kept_compressed(executor, make_job):
    job = make_job("fine")
    executor.run([job], Listener())
    printed = b"" if isinstance(executor, FakeExecutor) else b"speed=2.5\n"  # the fake one runs nothing
    assert gzip.decompress(Path(job.log + ".gz").read_bytes()) == printed
    assert not Path(job.log).exists()


@pytest.mark.parametrize(("name", "kept"), [("fine", False), ("broken", True)])
def test_a_log_to_discard_is_kept_only_after_a_failure(executor, make_job, name, kept):
    job = make_job(name, discard_log=True)
    executor.run([job], Listener())
    assert Path(job.log + ".gz").exists() is kept
    assert not Path(job.log).exists()


def test_after_a_stop_nothing_runs_any_more(executor, make_job):
    """The last test: nothing runs after it."""
    assert executor.run([make_job("fine")], Listener())[0].exit_code == 0
    executor.stop()
    [outcome] = executor.run([make_job("fine", id="late")], Listener())
    assert outcome.stopped
    assert not Path(make_job("fine", id="late").stream).exists()
