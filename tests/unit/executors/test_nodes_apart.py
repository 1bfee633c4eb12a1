"""Jobs on a node that shares no file system with this machine: the folder of the jobs is hidden from its logins."""

from __future__ import annotations

import gzip
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import events
from builders import job as job_in
from processes import carrying, wait_for
from ssh_server import SshServer, another_home, start_ssh_server

from benchwright.artifacts.probe_folder import probe_folder
from benchwright.core.errors import CannotMeasure
from benchwright.core.job import MAKES_DATA, Job
from benchwright.core.metric import MetricSpec
from benchwright.executors.base import Listener, Site
from benchwright.executors.observer import Observer
from benchwright.executors.ssh import ClusterExecutor
from benchwright.executors.ssh_host import HostExecutor

pytestmark = pytest.mark.xdist_group("nodes apart")  # what all jobs need is sent once
SPEED = MetricSpec(name="speed", pattern=r"speed=([\d.]+)")


class Node:
    """`ours`: a folder that the node does not see. `home`: where it keeps what it gets."""

    def __init__(self, server: SshServer, ours: Path, home: Path) -> None:
        self.server = server
        self.ours = ours
        self.home = home
        self.number = 0

    @property
    def store(self) -> Path:
        return self.home / ".cache" / "benchwright" / "node"

    def folder(self) -> Path:
        self.number += 1
        made = self.ours / str(self.number)
        (made / "bench").mkdir(parents=True)
        return made

    def cluster(self, ssh: Sequence[str] | None = None, **fields: Any) -> ClusterExecutor:
        site = Site(**{"folder": str(self.ours / "base"), **fields})
        return ClusterExecutor(self.server.system(), site=site, ssh=ssh or self.server.client)

    def job(self, folder: Path, *argv: str, **fields: Any) -> Job:
        given = {"cwd": str(folder / "bench"), "grace_s": 1.0, "node": "far", "env": {"APART_TEST": str(folder)}}
        return job_in(*argv, folder=folder / "run", **(given | fields))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    ours, home = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("home")
    server = start_ssh_server(tmp_path_factory.mktemp("ssh"), login=another_home(home, hidden=[ours]))
    yield Node(server, ours, home)
    server.stop()


@pytest.fixture(scope="module")
def cluster(node: Node) -> Iterator[ClusterExecutor]:
    """One for all tests that do not stop it."""
    with node.cluster() as executor:
        yield executor


def log_of(job: Job) -> str:
    return gzip.decompress(Path(job.log + ".gz").read_bytes()).decode()


class WhenHeard(Observer):
    """Does something when the program has printed."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act: Callable[[], None] | None = act
        self.notes: list[str] = []
        self.steps: list[str] = []

    def on_output(self, job_id: str, text: str) -> None:
        if self._act is not None:
            threading.Thread(target=self._act).start()
            self._act = None

    def on_note(self, text: str) -> None:
        self.notes.append(text)

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        self.steps.append(what)


def test_a_job_runs_there_and_its_stream_and_log_come_back(node, cluster):
    folder = node.folder()
    (folder / "bench" / "data").write_text("speed=2.5\n")
    (folder / "bench" / "where").write_text(str(node.ours))  # in a file, since what a command names is sent
    job = node.job(folder, "sh", "-c", "cat data; pwd; ls -A $(cat where)", metrics=(SPEED,))
    [outcome] = cluster.run([job], Listener())
    assert outcome.detail is None
    assert outcome.exit_code == 0
    data, pwd, *seen = log_of(job).splitlines()
    assert data == "speed=2.5"
    assert pwd.startswith(f"{node.store}/placed/")
    assert seen == []  # it does not see our folder
    first, *_, last = events(job)
    assert (first["event"], last["event"], last["exit_code"]) == ("stream", "end", 0)
    assert [e["values"] for e in events(job) if e["event"] == "metric"] == [[2.5]]
    assert [e for e in events(job) if e["event"] == "sample"]  # an agent ran there
    assert list(node.store.glob("placed/code-*/benchwright-*.dist-info/entry_points.txt"))  # names its samplers
    assert not Path(job.log).exists()


def test_a_loop_is_measured_there(node, cluster):
    folder = node.folder()
    probe = probe_folder(node.ours / "base" / "artifacts")
    (folder / "bench" / "main.py").write_text(
        "import time\nfrom benchprobe import iterate\nfor _ in iterate('train', range(30)): time.sleep(0.001)\n"
    )
    job = node.job(folder, "python3", "main.py", probe_path=str(probe))
    [outcome] = cluster.run([job], Listener())
    assert outcome.detail is None
    assert outcome.exit_code == 0
    steps = sum(len(e["step_ns"]) for e in events(job) if e["event"] == "steps")
    assert steps == 30


def test_the_stream_is_there_while_the_job_runs(node, cluster):
    folder = node.folder()
    job = node.job(folder, "sh", "-c", "echo early; sleep 300", echo=True)
    seen: dict[str, Any] = {}
    before = set((node.store / "runs").iterdir())
    with node.cluster() as executor:

        def look() -> None:
            seen["log"] = wait_for(lambda: Path(job.log).exists() and Path(job.log).read_text() == "early\n")
            seen["start"] = wait_for(lambda: '"start"' in Path(job.stream).read_text())
            executor.stop()

        [outcome] = executor.run([job], WhenHeard(look))
    assert seen == {"log": True, "start": True}
    assert outcome.stopped
    assert events(job)[-1]["stopped"]
    assert carrying(f"APART_TEST={folder}") == []
    runs = set((node.store / "runs").iterdir()) - before
    assert [path for each in runs for path in each.iterdir()] == []  # what the job wrote there is removed


def test_a_node_that_is_lost_keeps_what_came_and_the_job_can_be_repeated(node, cluster):
    folder = node.folder()
    job = node.job(folder, "sh", "-c", "echo early; sleep 300", echo=True)

    def cut() -> None:
        wait_for(lambda: Path(job.log).exists() and Path(job.log).read_text() == "early\n")
        node.server.cut_connections()

    [outcome] = cluster.run([job], WhenHeard(cut))
    assert (outcome.exit_code, outcome.stopped) == (None, False)
    assert "the connection was lost while it ran: node 'far'" in outcome.detail
    assert Path(job.log).read_text() == "early\n"
    assert events(job)[-1]["event"] != "end"
    assert wait_for(lambda: carrying(f"APART_TEST={folder}") == [])
    again = node.job(folder, "true", id="again")
    assert cluster.run([again], Listener())[0].exit_code == 0


def test_a_long_log_comes_back_whole(node, cluster):
    folder = node.folder()
    job = node.job(folder, "sh", "-c", "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done")
    [outcome] = cluster.run([job], Listener())
    assert outcome.exit_code == 0
    assert log_of(job).splitlines() == [f"line {number}" for number in range(5000)]


def test_a_cut_in_the_middle_of_a_push_fails_the_job_and_the_next_push_goes_on(node):
    folder = node.folder()
    for number in range(20):
        (folder / "bench" / f"large{number}").write_bytes(os.urandom(1 << 20))
    job = node.job(folder, "true")
    with node.cluster() as executor:
        executor.machines()

        class Cut(WhenHeard):
            def on_step(self, name: str, what: str, log: str | None = None) -> None:
                super().on_step(name, what, log)
                if what.startswith("sending 8 "):
                    node.server.cut_connections()

        heard = Cut(lambda: None)
        [outcome] = executor.run([job], heard)
        assert outcome.exit_code is None
        assert "the connection to node 'far'" in outcome.detail
        assert "the next push goes on from there" in outcome.detail
        assert not list((node.store / "placed").glob("*/bench/large19"))
        heard = WhenHeard(lambda: None)
        [outcome] = executor.run([node.job(folder, "ls", id="next")], heard)
    assert outcome.detail is None
    assert outcome.exit_code == 0
    total = int(heard.steps[-1].split()[3])
    assert total < 20  # MB: some had arrived


@pytest.mark.long
def test_ctrl_c_during_a_push_stops_it(node):
    folder = node.folder()
    for number in range(12):
        (folder / "bench" / f"large{number}").write_bytes(os.urandom(1 << 20))
    with node.cluster() as executor:

        class Stop(WhenHeard):
            def on_step(self, name: str, what: str, log: str | None = None) -> None:
                executor.stop()

        [outcome] = executor.run([node.job(folder, "true")], Stop(lambda: None))
    assert outcome.stopped


def test_what_a_prepare_script_makes_is_sent_so_it_runs_here(node, cluster):
    folder = node.folder()
    job = node.job(folder, "sh", "-c", "echo ${SSH_CONNECTION:+there} >made", phase=MAKES_DATA)
    [outcome] = cluster.run([job], Listener())
    assert outcome.exit_code == 0
    assert (folder / "bench" / "made").read_text() == "\n"


def test_an_environment_works_at_its_new_place(node, cluster):
    import subprocess

    folder = node.folder()
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    packages = venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (packages / "mine.py").write_text("def main(): print('ran')\n")
    (venv / "bin" / "mine").write_text(
        f"#!{venv}/bin/python\nimport mine, edited\nmine.main(); print(edited.__file__)\n"
    )
    (venv / "bin" / "mine").chmod(0o755)
    source = folder / "source"
    source.mkdir()
    (source / "edited.py").write_text("")
    (packages / "edited.pth").write_text(f"{source}\n")
    job = node.job(folder, "mine", path=(str(venv / "bin"),))
    [outcome] = cluster.run([job], Listener())
    assert outcome.detail is None
    assert outcome.exit_code == 0
    ran, edited = log_of(job).splitlines()
    assert ran == "ran"
    assert edited.startswith(f"{node.store}/placed/")


def test_an_environment_of_another_python_is_refused_with_what_the_node_has(node, cluster):
    folder = node.folder()
    (folder / "venv" / "lib" / "python2.7").mkdir(parents=True)
    (folder / "venv" / "bin").mkdir()
    (folder / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (folder / "venv" / "bin" / "python").symlink_to("/usr/bin/python2.7")
    job = node.job(folder, "true", path=(str(folder / "venv" / "bin"),))
    [outcome] = cluster.run([job], Listener())
    assert "needs Python 2.7, and it has only 3." in outcome.detail


def test_files_to_fetch_are_brought_back(node, cluster):
    folder = node.folder()
    out = folder / "bench" / "out"
    job = node.job(folder, "sh", "-c", "echo made >out", fetch=(str(out),))
    [outcome] = cluster.run([job], Listener())
    assert outcome.exit_code == 0
    assert out.read_text() == "made\n"


def test_one_host_without_a_shared_folder(node):
    folder = node.folder()
    site = Site(folder=str(node.ours / "base"), system=node.server.system())
    with HostExecutor(node.server.node(), site, node.server.client) as executor:
        assert executor.machine().python != "unknown"
        job = node.job(folder, "sh", "-c", "echo ${SSH_CONNECTION:+there}")
        [outcome] = executor.run([job], Listener())
    assert outcome.exit_code == 0
    assert log_of(job) == "there\n"


def test_a_folder_there_that_cannot_be_written(node):
    with node.cluster(folder_there="/proc/nothing") as executor, pytest.raises(CannotMeasure, match="/proc/nothing"):
        executor.machines()
