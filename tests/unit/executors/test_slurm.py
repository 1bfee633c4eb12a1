"""Nodes of a real Slurm cluster, and what happens when parts of it are lost. Each ends with outcomes and an empty queue."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from builders import job as job_in
from processes import carrying
from slurm_cluster import SlurmCluster, start_slurm_cluster, wait_until

from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.core.job import MAKES_DATA, Job
from benchwright.core.system import Node, System
from benchwright.executors import connection, lease, slurm_commands
from benchwright.executors.allocation import read_allocations
from benchwright.executors.base import Listener, Site
from benchwright.executors.observer import Observer
from benchwright.executors.registry import open_executor
from benchwright.executors.slurm import SlurmExecutor, end_allocations
from benchwright.runner.devices import end_lost_allocations

pytestmark = pytest.mark.xdist_group("slurm")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    made = start_slurm_cluster(tmp_path_factory.mktemp("slurm"))
    yield made
    made.stop()


@pytest.fixture
def cluster(running: SlurmCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SlurmCluster]:
    monkeypatch.setenv("SLURM_CONF", running.environment["SLURM_CONF"])
    yield running
    wait_until(lambda: running.jobs() == [], "the queue is empty")
    assert carrying(f"SLURM_TEST={tmp_path}") == []
    running.wait_until_idle()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "base").mkdir()
    return Site(folder=str(tmp_path / "base"), slurm=("--time=10",), wait_s=60.0)


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    def make(*argv: str, id: str = "job", **fields: Any) -> Job:
        given = {"cwd": str(tmp_path), "grace_s": 1.0, "env": {"SLURM_TEST": str(tmp_path)}}
        return job_in(*argv, folder=tmp_path / "run", id=id, **(given | fields))

    return make


class WhenStarted(Listener):
    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act

    def on_started(self, job_id: str, pid: int) -> None:
        threading.Thread(target=self._act).start()


def replaced(site: Site, **fields: Any) -> Site:
    return msgspec.structs.replace(site, **fields)


def log_of(job: Job) -> str:
    return gzip.decompress(Path(job.log + ".gz").read_bytes()).decode()


def allocation_of(cluster: SlurmCluster) -> str:
    [number] = cluster.jobs()
    return number


def test_programs_see_nothing_of_the_scheduler_and_all_cores(cluster, site, make_job, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")  # as if benchwright itself ran in a job
    monkeypatch.setenv("SLURM_MEM_PER_CPU", "10")
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "10")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    code = "import os; print(sorted(n for n in os.environ if n.startswith(('SLURM_J', 'SLURMD', 'SLURM_M', 'PMI', 'OMP'))), len(os.sched_getaffinity(0)))"
    job = make_job(sys.executable, "-c", code)
    with open_executor("slurm", site) as executor:
        [outcome] = executor.run([job], Listener())
    assert (outcome.exit_code, outcome.detail) == (0, None)
    assert log_of(job) == f"[] {len(os.sched_getaffinity(0))}\n"


def test_jobs_of_one_launch_meet_on_two_nodes(cluster, site, make_job, tmp_path):
    meet = "touch here-$0; echo $0; while [ $(ls here-* | wc -l) -lt 2 ]; do sleep 0.01; done"
    nodes = (Node(name="a", ip="a"), Node(name="b", ip="b"))
    jobs = [make_job("sh", "-c", meet, n, id=n, node=n, timeout_s=60) for n in ("a", "b")]
    with open_executor("slurm:main", replaced(site, nodes=2, system=System(nodes=nodes))) as executor:
        assert [o.exit_code for o in executor.run(jobs, Listener())] == [0, 0]
        assert sorted(executor._agents) == ["n1", "n2"]
        assert list(executor.machines()) == ["n1", "n2"]


@pytest.mark.long
def test_it_joins_an_allocation_and_leaves_it(cluster, site, make_job):
    number = cluster.call(
        "sbatch", "--parsable", "--exclusive", "--time=5", "--output=/dev/null", "--wrap=sleep 300"
    ).strip()
    with open_executor(f"slurm:job={number}", replaced(site, slurm=())) as executor:
        assert executor.run([make_job("true")], Listener())[0].exit_code == 0
    assert cluster.jobs() == [number]
    cluster.call("scancel", number)


@pytest.mark.parametrize("argument", ["job=", "job=x", "job=1 2"])
def test_a_job_that_is_no_number(cluster, argument):
    with pytest.raises(InvalidInput, match="not the number of a job"):
        open_executor(f"slurm:{argument}", Site())


def test_prepare_scripts_need_no_nodes(cluster, site, make_job):
    with open_executor("slurm", site) as executor:
        assert executor.run([make_job("true", phase=MAKES_DATA)], Listener())[0].exit_code == 0
        assert cluster.jobs() == []


class Steps(Observer):
    def __init__(self) -> None:
        self.steps: list[str] = []

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        self.steps.append(what)


def test_waiting_says_why_and_ends_in_time(cluster, site, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_commands, "_FIRST_ASK_S", 1.0)
    blocker = cluster.call(
        "sbatch", "--parsable", "--exclusive", "-N2", "--time=5", "--output=/dev/null", "--wrap=sleep 300"
    )
    wait_until(lambda: "RUNNING" in cluster.call("squeue", "--noheader", "--format=%T"), "the blocker runs")
    steps = Steps()
    with (
        open_executor("slurm", replaced(site, wait_s=3.0)) as executor,
        pytest.raises(CannotMeasure, match="got no nodes within 3 s; wait longer with --wait"),
    ):
        executor.allocate(str(tmp_path), steps)
    assert any("pending (" in what for what in steps.steps)
    wait_until(lambda: cluster.jobs() == [blocker.strip()], "only the blocker is left")
    cluster.call("scancel", blocker.strip())


def test_ctrl_c_while_waiting_leaves_no_job(cluster, site, tmp_path):
    blocker = cluster.call(
        "sbatch", "--parsable", "--exclusive", "-N2", "--time=5", "--output=/dev/null", "--wrap=sleep 300"
    )
    with open_executor("slurm", site) as executor:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
        with pytest.raises(Interrupted):
            executor.machine()
    wait_until(lambda: cluster.jobs() == [blocker.strip()], "only the blocker is left")
    cluster.call("scancel", blocker.strip())


def test_a_job_that_would_wait_for_ever_is_refused(cluster, site):
    with (
        open_executor("slurm:short", replaced(site, slurm=("--time=30",))) as executor,
        pytest.raises(CannotMeasure, match=r"PartitionTimeLimit|time limit|Requested time"),
    ):
        executor.machine()


def test_options_that_sbatch_refuses(cluster, site):
    with (
        open_executor("slurm", replaced(site, slurm=("--no-such-option",))) as executor,
        pytest.raises(CannotMeasure, match=r"sbatch refused: .*; correct --nodes or --slurm"),
    ):
        executor.machine()


def test_the_allocation_is_named_and_released(cluster, site, tmp_path, make_job):
    with open_executor("slurm", site) as executor:
        executor.allocate(str(tmp_path), Listener())
        [held] = read_allocations(str(tmp_path))
        assert (held.number, held.nodes, held.released) == (allocation_of(cluster), ("n1",), False)
    [held] = read_allocations(str(tmp_path))
    assert held.released


def test_what_a_killed_driver_left_is_ended_by_resuming(cluster, site, tmp_path):
    code = (
        "import sys; from benchwright.executors.registry import open_executor; from benchwright.executors.base import *\n"
        "executor = open_executor('slurm', Site(folder=sys.argv[1], slurm=('--time=10',))).__enter__()\n"
        "executor.allocate(sys.argv[2], Listener()); executor.machine(); print('up', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(site.folder), str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"up\n"
        driver.kill()
    number = allocation_of(cluster)
    assert end_lost_allocations(tmp_path.parent) == [f"{tmp_path.name} (job {number})"]
    assert end_allocations(str(tmp_path)) == []


def test_a_holder_that_nobody_uses_ends(cluster, site, monkeypatch):
    monkeypatch.setattr(slurm_commands, "ASK_S", 1.0)
    slurm_commands.submit(1, "", ["--time=10"], "benchwright-alone", "")
    wait_until(lambda: "RUNNING" in cluster.call("squeue", "--noheader", "--format=%T"), "it runs")
    wait_until(lambda: cluster.jobs() == [], "it has ended", 30)
    assert cluster.jobs() == []


def test_a_holder_lives_as_long_as_its_agent(cluster, site, make_job, monkeypatch):
    monkeypatch.setattr(slurm_commands, "ASK_S", 1.0)
    with open_executor("slurm", site) as executor:
        assert executor.run([make_job("sleep", "8")], Listener())[0].exit_code == 0


def kill_srun() -> None:
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if child.name() == "srun" and "__main__.py" in " ".join(child.cmdline()):
                child.kill()


def kill_agent(tmp_path: Path) -> None:
    running = psutil.process_iter(["name"])
    [job] = [p for p in running if p.info["name"] == "sleep" and f"SLURM_TEST={tmp_path}" in _environ(p)]
    job.parent().parent().kill()


def _environ(process: psutil.Process) -> str:
    try:
        return " ".join(f"{k}={v}" for k, v in process.environ().items())
    except psutil.Error:
        return ""


FAULTS = {
    "srun": (lambda cluster, path: kill_srun(), "srun was killed by signal 9"),
    "agent": (lambda cluster, path: kill_agent(path), "the agent was killed|was lost"),
    "scancel": (lambda cluster, path: cluster.call("scancel", allocation_of(cluster)), "the allocation has ended"),
    "preemption": (
        lambda cluster, path: cluster.call(
            "sbatch", "--partition=urgent", "--exclusive", "-N2", "--time=1", "--output=/dev/null", "--wrap=true"
        ),
        "the allocation (was preempted|has ended)",
    ),
    "time limit": (
        lambda cluster, path: cluster.call("scontrol", "update", f"JobId={allocation_of(cluster)}", "TimeLimit=0:01"),
        "the allocation reached its time limit",
    ),
}


# Slurm looks at time limits once in a minute.
@pytest.mark.parametrize(
    "fault", [pytest.param(each, marks=pytest.mark.long) if each == "time limit" else each for each in FAULTS]
)
def test_a_fault_is_an_outcome_that_says_so(cluster, site, make_job, tmp_path, monkeypatch, fault):
    monkeypatch.setattr(connection, "LEASE_S", 5.0)
    monkeypatch.setattr(lease, "WORD_S", 1.0)
    act, expected = FAULTS[fault]
    with open_executor("slurm", site) as executor:
        [outcome] = executor.run([make_job("sleep", "300")], WhenStarted(lambda: act(cluster, tmp_path)))
        assert outcome.exit_code is None
        # Slurm also sends SIGTERM to the program, and its end may be known before that of the agent.
        ended = outcome.signal == signal.SIGTERM and fault not in ("srun", "agent")
        assert ended or re.search(expected, outcome.detail or ""), outcome.detail
        [later] = executor.run([make_job("true", id="later")], Listener())
        if fault in ("srun", "agent"):
            assert (later.exit_code, later.detail) == (0, None)
        else:
            assert "the allocation" in (later.detail or "")


def test_a_controller_that_restarts_disturbs_nothing(cluster, site, make_job, tmp_path):
    def restart() -> None:
        saved, began_s = cluster.folder / "state" / "job_state", time.time()
        # Within seconds it writes down which jobs run; one that it did not, it would not know again.
        wait_until(lambda: saved.exists() and saved.stat().st_mtime > began_s, "the controller has saved its jobs")
        cluster.kill("slurmctld")
        time.sleep(2)
        cluster.start_controller()
        wait_until(lambda: cluster.jobs() != [], "the controller is back")
        (tmp_path / "go on").touch()

    wait = f"while ! test -e '{tmp_path / 'go on'}'; do sleep 0.1; done"
    with open_executor("slurm", site) as executor:
        outcomes = [executor.run([make_job("sh", "-c", wait, id="a")], WhenStarted(restart))[0]]
        outcomes += executor.run([make_job("true", id="b")], Listener())
        assert [(o.exit_code, o.detail) for o in outcomes] == [(0, None), (0, None)]


def test_a_killed_slurmd_leaves_the_agent_at_work(cluster, site, make_job):
    with open_executor("slurm", replaced(site, slurm=("--time=10", "--nodelist=n1"))) as executor:
        outcomes = executor.run([make_job("sleep", "3", id="a")], WhenStarted(lambda: cluster.kill("n1")))
        outcomes += executor.run([make_job("true", id="b")], Listener())
    cluster.start_node("n1")
    assert [(o.exit_code, o.detail) for o in outcomes] == [(0, None), (0, None)]


def test_a_full_disk_there_is_an_outcome(cluster, site, make_job):
    with open_executor("slurm", site) as executor:
        [outcome] = executor.run([make_job("true", stream="/dev/full")], Listener())
        assert outcome.exit_code is None
        assert "the disk is full" in outcome.detail
        assert executor.run([make_job("true", id="later")], Listener())[0].exit_code == 0


def test_ctrl_c_while_a_job_runs(cluster, site, make_job):
    with open_executor("slurm", site) as executor:
        [outcome] = executor.run([make_job("sleep", "300")], WhenStarted(executor.stop))
    assert outcome.stopped


def test_the_scheduler_is_asked_at_most_once_in_half_a_minute(cluster, site, make_job, tmp_path, monkeypatch):
    programs, real = tmp_path / "programs", cluster.call("sh", "-c", "command -v squeue").strip()
    programs.mkdir()
    (programs / "squeue").write_text(f'#!/bin/sh\ndate +%s.%N >>{tmp_path}/asked\nexec {real} "$@"\n')
    (programs / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    unseen = replaced(site, folder=None)  # the holder cannot say that it runs
    with SlurmExecutor(unseen) as executor:
        for number in range(20):
            assert executor.run([make_job("true", id=f"job{number}")], Listener())[0].exit_code == 0
    assert len((tmp_path / "asked").read_text().split()) == 1


@pytest.mark.parametrize("answer", ["sleep 60", "exit 1", "echo nonsense; exit 0"])
def test_a_squeue_that_does_not_answer_ends_the_wait_in_time(cluster, site, tmp_path, monkeypatch, answer):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "squeue").write_text(f"#!/bin/sh\n{answer}\n")
    (programs / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_commands, "ASK_S", 6.0)
    unseen = replaced(site, wait_s=2.0, folder=None)
    with open_executor("slurm", unseen) as executor, pytest.raises(CannotMeasure, match="got no nodes within 2 s"):
        executor.machine()


def test_other_executors_have_no_nodes_to_ask_for():
    with pytest.raises(InvalidInput, match="are for schedulers"):
        open_executor("local", Site(nodes=2))


def test_without_slurm_the_message_says_where_to_run(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        CannotMeasure, match="sbatch, squeue, srun, scancel, scontrol: not found; run benchwright where"
    ):
        open_executor("slurm", Site())


def test_jobs_of_others_on_the_node_are_known_without_asking_twice(cluster, site, make_job, tmp_path, monkeypatch):
    programs, real = tmp_path / "programs", cluster.call("sh", "-c", "command -v squeue").strip()
    programs.mkdir()
    (programs / "squeue").write_text(f'#!/bin/sh\necho asked >>{tmp_path}/asked\nexec {real} "$@"\n')
    (programs / "squeue").chmod(0o755)
    small = ("sbatch", "--parsable", "--nodelist=n2", "--ntasks=1", "--mem=100", "--time=5", "--output=/dev/null")
    ours, other = (cluster.call(*small, "--wrap=sleep 300").strip() for _ in range(2))
    wait_until(lambda: cluster.call("squeue", "--noheader", "--format=%T").split() == ["RUNNING"] * 2, "both run")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    job = make_job("true")
    with open_executor(f"slurm:job={ours}", replaced(site, slurm=())) as executor:
        executor.allocate(str(tmp_path), Listener())
        assert executor.run([job], Listener())[0].exit_code == 0
        assert executor.others_on(job) == (other,)
    assert (tmp_path / "asked").read_text().split() == ["asked"]
    cluster.call("scancel", ours, other)


SQUEUE = "7|RUNNING|None|n[1-2]\n8|RUNNING|None|n1\n9|PENDING|Priority|\n10|COMPLETING|None|m1,n2\n11|RUNNING|None|n11\nnonsense\n"


def test_what_squeue_says_of_other_jobs_is_read_by_node(cluster):
    seen = slurm_commands.Neighbours("7", ["n1", "n2"], time.monotonic() + 60, SQUEUE)
    assert seen.look() == {"n1": ("8",), "n2": ("10",)}
    others = slurm_commands.Neighbours("8", ["n1", "n2"], time.monotonic() + 60, SQUEUE)
    assert others.look() == {"n1": ("7",), "n2": ("7", "10")}


def test_a_partition_knows_how_many_nodes_are_up(cluster):
    assert slurm_commands.count_nodes("") == slurm_commands.count_nodes("short") == 2
