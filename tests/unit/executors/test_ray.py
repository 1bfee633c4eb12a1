"""Nodes of a real Ray cluster, and what happens when parts of it are lost."""

from __future__ import annotations

import gzip
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import job as job_in
from processes import carrying, wait_for
from ray_cluster import RayCluster, start_ray_cluster

from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.job import Job
from benchwright.executors.base import Executor, Listener, Site
from benchwright.executors.registry import open_executor

pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture
def cluster(ray_cluster: RayCluster) -> RayCluster:
    return ray_cluster


@pytest.fixture
def doomed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    """A cluster for a test that kills part of it."""
    made = start_ray_cluster(tmp_path, ("127.0.0.4", "127.0.0.5"))
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    yield made
    made.stop()


@pytest.fixture
def make_job(tmp_path: Path) -> Iterator[Callable[..., Job]]:
    def make(*argv: str, id: str = "job", **fields: Any) -> Job:
        given = {"cwd": str(tmp_path), "grace_s": 1.0, "env": {"RAY_TEST": str(tmp_path)}}
        return job_in(*argv, folder=tmp_path / "run", id=id, **(given | fields))

    yield make
    assert wait_for(lambda: carrying(f"RAY_TEST={tmp_path}") == [])


class WhenStarted(Listener):
    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act

    def on_started(self, job_id: str, pid: int) -> None:
        threading.Thread(target=self._act).start()


def on(cluster: RayCluster, **fields: Any) -> Executor:
    return open_executor(f"ray:{cluster.address}", Site(**{"wait_s": 120.0, **fields}))


def test_programs_see_nothing_of_ray_and_all_cores(cluster, make_job):
    code = "import os; print(sorted(n for n in os.environ if n.startswith(('RAY_', 'OMP')) and n != 'RAY_TEST'), len(os.sched_getaffinity(0)))"
    job = make_job(sys.executable, "-c", code)
    with on(cluster) as executor:
        [outcome] = executor.run([job], Listener())
    assert (outcome.exit_code, outcome.detail) == (0, None)
    assert gzip.decompress(Path(job.log + ".gz").read_bytes()).decode() == f"[] {len(os.sched_getaffinity(0))}\n"


def test_a_cluster_that_is_too_small(cluster):
    with (
        on(cluster, nodes=3) as executor,
        pytest.raises(CannotMeasure, match="2 nodes with CPUs, and 3 were asked for"),
    ):
        executor.machine()


@pytest.mark.long
def test_nodes_in_use_are_waited_for_and_freed(cluster, make_job):
    with on(cluster, nodes=2) as executor:
        assert executor.run([make_job("true")], Listener())[0].exit_code == 0
        assert {connection.node.ip for connection in executor._connections.values()} == {"127.0.0.2", "127.0.0.3"}
        with (
            on(cluster, nodes=1, wait_s=8.0) as late,
            pytest.raises(CannotMeasure, match="no nodes were free within 8 s"),
        ):
            late.machine()
    with on(cluster, nodes=2) as executor:
        assert executor.run([make_job("true", id="again")], Listener())[0].exit_code == 0


def test_a_hub_that_is_killed_is_an_outcome(cluster, make_job):
    with on(cluster) as executor:
        kill = lambda: os.kill(executor._hub.process.pid, signal.SIGKILL)  # noqa: E731
        [outcome] = executor.run([make_job("sleep", "300")], WhenStarted(kill))
        assert outcome.exit_code is None
        assert "Ray has lost it" in outcome.detail
        [later] = executor.run([make_job("true", id="later")], Listener())
        assert "Ray has lost it" in later.detail


@pytest.mark.long  # Ray tries for half a minute
def test_no_cluster_at_this_address():
    pytest.importorskip("ray")
    with (
        open_executor("ray:127.0.0.1:1", Site(wait_s=5.0)) as executor,
        pytest.raises(CannotMeasure, match=r"^ray: "),
    ):
        executor.machine()


@pytest.mark.long
def test_a_killed_raylet_is_an_outcome_and_the_other_node_goes_on(doomed, make_job):
    with on(doomed, nodes=2) as executor:
        executor.machine()
        jobs = [make_job("sleep", "30", id=name, node=name) for name in executor._names]
        outcomes = executor.run(jobs, WhenStarted(doomed.kill_other))
        assert sorted(o.exit_code is None for o in outcomes) == [False, True]
        [lost] = [o for o in outcomes if o.exit_code is None]
        assert "Ray has lost it" in lost.detail


def test_slurms_options_are_refused():
    with pytest.raises(InvalidInput, match="--slurm is for --on slurm"):
        open_executor("ray", Site(slurm=("--time=1",)))


def node(cpus: float, gpus: float = 0.0, *, alive: bool = True) -> dict[str, Any]:
    return {"Alive": alive, "Resources": {"CPU": cpus, "GPU": gpus, "memory": 1e9}}


def test_whole_nodes_that_are_alike_are_preferred():
    pytest.importorskip("ray")
    from benchwright.executors.ray_hub import whole_nodes

    nodes = [node(64), node(8, 4), node(8, 4), node(16, alive=False), node(0)]
    assert whole_nodes(nodes, 1) == [{"CPU": 8, "GPU": 4}]
    assert whole_nodes(nodes, 2) == [{"CPU": 8, "GPU": 4}] * 2
    assert whole_nodes(nodes, 3) == [{"CPU": 8, "GPU": 4}, {"CPU": 8, "GPU": 4}, {"CPU": 64}]
    assert len(whole_nodes(nodes, 4)) == 3
    assert whole_nodes(nodes, 0) == whole_nodes(nodes, 3)  # all there are
