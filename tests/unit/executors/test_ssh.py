"""Jobs on other nodes, through a real ssh server on this machine; a stand-in for ssh only where it cannot be made to fail."""

from __future__ import annotations

import getpass
import gzip
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from builders import job as job_in
from processes import carrying, kill, wait_for
from ssh_server import SshServer, start_ssh_server

from benchwright.artifacts.probe_folder import probe_folder
from benchwright.core.errors import CannotMeasure
from benchwright.core.job import Job, Outcome
from benchwright.core.system import Node, System
from benchwright.executors.base import Listener, Site
from benchwright.executors.ssh import ClusterExecutor
from benchwright.executors.ssh_connection import SshConnection
from benchwright.executors.ssh_host import HostExecutor, node_named

pytestmark = pytest.mark.xdist_group("ssh")  # one server, and one connection for all tests that need no other


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    made = start_ssh_server(tmp_path_factory.mktemp("ssh"))
    yield made
    made.stop()


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    """Its processes carry the test's folder in their environment, so that what is left can be found."""

    def make(*argv: str, node: str = "far", id: str | None = None, **fields: Any) -> Job:
        given = {"cwd": str(tmp_path), "grace_s": 1.0, "env": {"SSH_TEST": str(tmp_path)}, "node": node}
        return job_in(*argv, folder=tmp_path / "run", id=id or f"job.{node}", **(given | fields))

    return make


@pytest.fixture
def open_cluster(server: SshServer, tmp_path: Path) -> Iterator[Callable[..., ClusterExecutor]]:
    opened: list[ClusterExecutor] = []

    def make(*names: str, **fields: Any) -> ClusterExecutor:
        fields = {"system": server.system(*names), "ssh": server.client, **fields}
        executor = ClusterExecutor(**fields)
        opened.append(executor.__enter__())
        return executor

    yield make
    for executor in opened:
        executor.__exit__(None, None, None)
    assert carrying(f"SSH_TEST={tmp_path}") == []


@pytest.fixture(scope="module")
def shared(server: SshServer) -> Iterator[ClusterExecutor]:
    """For tests that leave it usable."""
    with ClusterExecutor(server.system(), ssh=server.client) as executor:
        yield executor


@pytest.fixture
def cluster(shared: ClusterExecutor, tmp_path: Path) -> Iterator[ClusterExecutor]:
    yield shared
    assert carrying(f"SSH_TEST={tmp_path}") == []


class WhenStarted(Listener):
    """Does something once all jobs run."""

    def __init__(self, count: int, act: Callable[[], Any]) -> None:
        self._left = count
        self._act = act
        self.finished: list[Outcome] = []

    def on_started(self, job_id: str, pid: int) -> None:
        self._left -= 1
        if self._left == 0:
            threading.Thread(target=self._act).start()

    def on_finished(self, outcome: Outcome) -> None:
        self.finished.append(outcome)


def agent_of(server: SshServer) -> int:
    """The agent that this server has started."""
    found = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get("SSH_CONNECTION", "").endswith(f" {server.port}"):
                found[process.pid] = (process.ppid(), " ".join(process.cmdline()))
        except psutil.Error:
            continue  # a supervisor that has just ended
    [agent] = [pid for pid, (parent, words) in found.items() if "agent/__main__.py" in words and parent not in found]
    return agent


def test_jobs_of_one_launch_run_on_all_nodes_at_the_same_time(open_cluster, make_job, tmp_path):
    # Each says that it is there and waits for the others: one after the other they would never end.
    meet = "touch here-$0; while [ $(ls here-* | wc -l) -lt 3 ]; do sleep 0.01; done"
    nodes = ["here", "a", "b"]
    jobs = [make_job("sh", "-c", meet, node, node=node, timeout_s=300) for node in nodes]
    outcomes = open_cluster("a", "b").run(jobs, Listener())
    assert [(o.job, o.exit_code, o.detail) for o in outcomes] == [(f"job.{node}", 0, None) for node in nodes]


def test_where_a_job_runs_is_where_it_was_sent(cluster, make_job, tmp_path):
    tell = "echo ${SSH_CONNECTION:+by ssh} > $0"
    jobs = [make_job("sh", "-c", tell, node, node=node) for node in ("far", "here", "localhost")]
    cluster.run(jobs, Listener())
    assert {node: (tmp_path / node).read_text() for node in ("far", "here", "localhost")} == {
        "far": "by ssh\n", "here": "\n", "localhost": "\n",
    }  # fmt: skip


def test_output_progress_and_pids_come_back(cluster, make_job):
    heard: list[Any] = []

    class Hear(Listener):
        def on_output(self, job_id: str, text: str) -> None:
            heard.append(text)

        def on_progress(self, job_id: str, values: Any) -> None:
            heard.append(values["elapsed_s"])

    job = make_job("sh", "-c", "echo words; sleep 0.5", echo=True, sample_interval_s=0.1)
    cluster.run([job], Hear())
    assert "words\n" in heard
    assert any(isinstance(value, float) and value > 0 for value in heard)


def test_one_connection_to_a_node_serves_all_launches_and_is_closed_afterwards(server, make_job):
    before, others = psutil.Process().num_fds(), set(server.connections())
    with ClusterExecutor(server.system(), ssh=server.client) as executor:
        counts = []
        for number in range(3):
            executor.run([make_job("true", id=f"job{number}")], Listener())
            counts.append(len(set(server.connections()) - others))
        assert counts == [1, 1, 1]
    assert wait_for(lambda: set(server.connections()) <= others)
    assert psutil.Process().num_fds() == before


def test_machines_are_what_the_nodes_say_they_are(open_cluster):
    executor = open_cluster("a", "b")
    machines = executor.machines()
    assert list(machines) == ["here", "a", "b"]
    assert machines["a"] == machines["b"] == machines["here"] == executor.machine()


def test_without_nodes_there_is_this_machine(make_job):
    with ClusterExecutor(System()) as executor:
        assert list(executor.machines()) == ["localhost"]
        [outcome] = executor.run([make_job("true", node="localhost")], Listener())
    assert outcome.exit_code == 0


def test_a_base_folder_that_cannot_be_written_is_said_before_anything_runs(server):
    made = ClusterExecutor(server.system(), ssh=server.client, site=Site(folder="/proc/nothing"))
    with made as executor, pytest.raises(CannotMeasure, match="/proc/nothing"):
        executor.machines()


def test_files_of_the_check_do_not_stay(open_cluster, make_job, tmp_path):
    open_cluster(site=Site(folder=str(tmp_path / "base"))).run([make_job("true")], Listener())
    assert list((tmp_path / "base").iterdir()) == []
    assert not [path for path in (tmp_path / "run").iterdir() if "check" in path.name]


# What can be wrong with a node, before anything ran there.


def test_a_key_that_is_refused(open_cluster, server, make_job):
    executor = open_cluster(system=server.system(key="other_key"))
    [outcome] = executor.run([make_job("true")], Listener())
    assert outcome.exit_code is None
    assert "node 'far'" in outcome.detail
    assert "Permission denied" in outcome.detail
    assert "sshkey" in outcome.detail
    with pytest.raises(CannotMeasure, match="Permission denied"):
        executor.machines()


def test_a_key_that_others_may_read(open_cluster, server, make_job, tmp_path):
    key = tmp_path / "open_key"
    key.write_bytes((server.folder / "key").read_bytes())
    key.chmod(0o644)
    system = msgspec.structs.replace(server.system(), sshkey=str(key))
    [outcome] = open_cluster(system=system).run([make_job("true")], Listener())
    assert "chmod 600" in outcome.detail


def test_a_host_whose_key_is_not_known_is_not_trusted(open_cluster, make_job, tmp_path):
    (tmp_path / "client").write_text(f"UserKnownHostsFile {tmp_path}/none\nGlobalKnownHostsFile none\n")
    [outcome] = open_cluster(ssh=("ssh", "-F", str(tmp_path / "client"))).run([make_job("true")], Listener())
    assert "Host key verification failed" in outcome.detail
    assert "connect once by hand: ssh -p" in outcome.detail
    assert not (tmp_path / "none").exists()


def test_an_alias_is_reached_as_the_users_ssh_configuration_says(server, make_job, tmp_path):
    """Its host name, port, user, key and jump host; none of them is given to us."""
    reached = f"  HostName {server.address}\n  Port {server.port}\n  User {getpass.getuser()}\n"
    key = f"  IdentityFile {server.folder}/key\n  IdentitiesOnly yes\n"
    known = (server.folder / "client").read_text()
    config = tmp_path / "config"
    config.write_text(f"{known}Host jump\n{reached}{key}Host bench-box\n{reached}{key}  ProxyJump jump\n")
    seen = tmp_path / "seen"
    with HostExecutor(node_named("bench-box"), Site(folder=None), ("ssh", "-F", str(config))) as executor:
        [outcome] = executor.run([make_job("sh", "-c", f"echo $SSH_CONNECTION >{seen}")], Listener())
        assert (outcome.exit_code, outcome.detail) == (0, None)
        assert len(server.connections()) >= 2  # to the jump host, and through it
    assert seen.read_text().split()[-1] == str(server.port)


def test_what_is_given_with_the_address_comes_before_the_configuration():
    def words(address: str) -> list[str]:
        return SshConnection(node_named(address), None, "python3").words(["true"])

    assert not {"-p", "-l", "-i"} & set(words("bench-box"))
    given = words("ada@bench-box:2222")
    assert given[given.index("-p") + 1] == "2222"
    assert given[given.index("-l") + 1] == "ada"


def test_a_port_where_nobody_listens(open_cluster, server, make_job):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and does not listen
        system = System(nodes=(server.node(port=free.getsockname()[1]),))
        [outcome] = open_cluster(system=system).run([make_job("true")], Listener())
    assert "Connection refused" in outcome.detail
    assert "check its ip and port" in outcome.detail


def test_a_host_that_does_not_answer(open_cluster, server, make_job):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        system = System(nodes=(server.node(port=mute.getsockname()[1]),))
        executor = open_cluster(system=system, ssh=(*server.client, "-o", "ConnectTimeout=1"))
        [outcome] = executor.run([make_job("true")], Listener())
    assert "timed out" in outcome.detail
    assert "it does not answer" in outcome.detail


@pytest.mark.long
def test_a_python_that_is_not_there_is_replaced_by_another(open_cluster, make_job, tmp_path):
    executor = open_cluster(python="/no/such/python", site=Site(folder_there=str(tmp_path / "there")))
    [outcome] = executor.run([make_job("true")], Listener())
    assert (outcome.exit_code, outcome.detail) == (0, None)
    assert (tmp_path / "there" / "placed").is_dir()


def test_no_ssh_client(open_cluster, make_job):
    [outcome] = open_cluster(ssh=("/no/such/ssh",)).run([make_job("true")], Listener())
    assert "/no/such/ssh could not be started" in outcome.detail


def test_a_node_nobody_knows(cluster, make_job):
    [outcome] = cluster.run([make_job("true", node="nowhere")], Listener())
    assert outcome.detail == "there is no node 'nowhere' in the system file"


def test_nothing_runs_unless_every_node_is_there(open_cluster, server, make_job, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = server.node("gone", port=free.getsockname()[1])
        system = server.system()
        executor = open_cluster(system=msgspec.structs.replace(system, nodes=(*system.nodes, gone)))
        listener = WhenStarted(0, lambda: None)
        jobs = [make_job("touch", "ran", node=node) for node in ("here", "far", "gone")]
        outcomes = executor.run(jobs, listener)
    assert listener.finished != []
    assert {outcome.job for outcome in listener.finished} == {job.id for job in jobs}
    assert not (tmp_path / "ran").exists()
    assert "Connection refused" in outcomes[2].detail
    for outcome in outcomes[:2]:
        assert outcome.detail.startswith("not started, because another node cannot be used: node 'gone'")
    # Those that are there go on being used.
    assert executor.run([make_job("touch", "ran", node="far", id="next")], Listener())[0].exit_code == 0


def stand_in(folder: Path, body: str) -> tuple[str, ...]:
    """A program that is called as ssh would be."""
    path = folder / "ssh-stand-in"
    path.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
    path.chmod(0o755)
    return (str(path),)


def test_a_folder_that_is_not_shared_is_sent(open_cluster, server, make_job, tmp_path):
    """The node looks for another file than was written, as if its folder were another."""
    there = tmp_path / "there"
    (tmp_path / "bench").mkdir()
    body = f"words = {list(server.client)} + [w.replace('node-check', 'other') for w in sys.argv[1:]]\nos.execvp('ssh', words)"
    job = make_job("pwd", cwd=str(tmp_path / "bench"))
    [outcome] = open_cluster(ssh=stand_in(tmp_path, body), site=Site(folder_there=str(there))).run([job], Listener())
    assert (outcome.exit_code, outcome.detail) == (0, None)
    assert gzip.decompress(Path(job.log + ".gz").read_bytes()).decode().startswith(f"{there}/placed/")


def test_a_node_whose_copy_of_benchprobe_is_another_one(open_cluster, server, make_job, tmp_path):
    probe = probe_folder(tmp_path / "artifacts")
    [fine] = open_cluster().run([make_job("true", id="a", probe_path=str(probe))], Listener())
    assert (fine.exit_code, fine.detail) == (0, None)
    # As if the node had files of its own at that path.
    body = (
        f"open('{probe}/benchprobe/config.py', 'a').write('#')\nos.execvp('ssh', {list(server.client)} + sys.argv[1:])"
    )
    far = open_cluster(ssh=stand_in(tmp_path, body))
    [outcome] = far.run([make_job("true", id="b", probe_path=str(probe))], Listener())
    assert outcome.exit_code is None
    assert f"{probe} there is not the benchprobe of this machine" in outcome.detail


def test_another_version_of_benchwright(open_cluster, make_job, tmp_path):
    body = """print('benchwright answers: {"version": "9.9", "machine": {}, "files": {}}')"""
    [outcome] = open_cluster(ssh=stand_in(tmp_path, body)).run([make_job("true")], Listener())
    assert "it has benchwright 9.9" in outcome.detail


def test_what_a_login_prints_does_no_harm(open_cluster, server, make_job, tmp_path):
    body = f"""os.write(1, b'Welcome!\\n{{"a": 1}}\\n[1]\\n')\nos.execvp('ssh', {list(server.client)} + sys.argv[1:])"""
    [outcome] = open_cluster(ssh=stand_in(tmp_path, body)).run([make_job("true")], Listener())
    assert (outcome.exit_code, outcome.detail) == (0, None)


def test_every_word_reaches_the_program_as_it_is(server):
    odd = ["a b", "it's", '"', "$HOME", "`id`", "a\nb", "*", "", "é", "-x", ";"]
    connection = SshConnection(server.node(), str(server.folder / "key"), sys.executable, server.client)
    code = "import sys; sys.stdout.write(repr(sys.argv[1:]))"
    words = connection.words([sys.executable, "-c", code, *odd, "end"])
    done = subprocess.run(words, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert done.stdout == repr([*odd, "end"])


def test_an_address_is_never_an_option(open_cluster, make_job, tmp_path):
    system = System(nodes=(Node(name="far", ip=f"-oProxyCommand=touch {tmp_path}/harm"),))
    [outcome] = open_cluster(system=system).run([make_job("true")], Listener())
    assert outcome.exit_code is None
    assert not (tmp_path / "harm").exists()


# What can go wrong while jobs run.


def test_a_connection_that_is_cut(cluster, server, make_job, tmp_path):
    listener = WhenStarted(1, server.cut_connections)
    [outcome] = cluster.run([make_job("sleep", "3000")], listener)
    assert (outcome.exit_code, outcome.stopped) == (None, False)
    assert outcome.detail.startswith("the connection was lost while it ran: node 'far'")
    assert "may still run" not in outcome.detail
    assert carrying(f"SSH_TEST={tmp_path}") == []
    assert cluster.run([make_job("true", id="next")], Listener())[0].exit_code == 0


def test_a_program_that_will_not_end_is_killed_when_the_connection_is_cut(cluster, server, make_job, tmp_path):
    stubborn = "trap '' TERM; touch stubborn; while :; do sleep 0.1; done"
    cut = WhenStarted(1, lambda: (wait_for((tmp_path / "stubborn").exists), server.cut_connections()))
    [outcome] = cluster.run([make_job("sh", "-c", stubborn)], cut)
    assert "connection was lost" in outcome.detail
    assert carrying(f"SSH_TEST={tmp_path}") == []


def test_an_agent_that_is_killed_on_its_node(cluster, server, make_job, tmp_path):
    def kill() -> None:
        os.kill(agent_of(server), signal.SIGKILL)

    [outcome] = cluster.run([make_job("sleep", "300", grace_s=0.2)], WhenStarted(1, kill))
    assert outcome.exit_code is None
    assert "the agent was killed" in outcome.detail
    assert carrying(f"SSH_TEST={tmp_path}") == []
    assert cluster.run([make_job("true", id="next")], Listener())[0].exit_code == 0


def test_an_agent_that_is_killed_while_nothing_runs_is_replaced(cluster, server, make_job):
    for number in range(3):
        [outcome] = cluster.run([make_job("true", id=f"job{number}")], Listener())
        assert (outcome.exit_code, outcome.detail) == (0, None)
        os.kill(agent_of(server), signal.SIGKILL)


def test_other_nodes_go_on_when_one_is_lost(open_cluster, server, make_job):
    others = set(server.connections())
    executor = open_cluster("a", "b")
    first = make_job("true", node="a", id="first")
    executor.run([first], Listener())  # so that it is known which connection is whose
    to_a = set(server.connections()) - others

    def cut() -> None:
        kill(*to_a)

    jobs = [make_job("sleep", "2" if node != "a" else "300", node=node) for node in ("here", "a", "b")]
    here, a, b = executor.run(jobs, WhenStarted(3, cut))
    assert (here.exit_code, b.exit_code) == (0, 0)
    assert "the connection was lost" in a.detail


def test_a_node_that_is_gone_for_good_is_said_to_be(tmp_path_factory, make_job, tmp_path):
    server = start_ssh_server(tmp_path_factory.mktemp("doomed"))

    def cut() -> None:
        server.stop()
        for pid in psutil.pids():
            try:
                process = psutil.Process(pid)
                if process.name() == "sshd" and str(server.port) in repr(process.net_connections()):
                    process.kill()
            except psutil.Error:
                continue

    with ClusterExecutor(server.system(), ssh=server.client) as executor:
        [outcome] = executor.run([make_job("sleep", "300", grace_s=0.2)], WhenStarted(1, cut))
    assert "its processes may still be running" in outcome.detail
    assert wait_for(lambda: carrying(f"SSH_TEST={tmp_path}") == [])  # it ended by itself, when its orders did


def test_stop_ends_jobs_everywhere(open_cluster, make_job, tmp_path):
    executor = open_cluster("a", "b")
    jobs = [make_job("sleep", "300", node=node) for node in ("here", "a", "b")]
    outcomes = executor.run(jobs, WhenStarted(3, executor.stop))
    assert [outcome.stopped for outcome in outcomes] == [True, True, True]
    assert carrying(f"SSH_TEST={tmp_path}") == []
    assert executor.run([make_job("true", id="late")], Listener()) == [Outcome(job="late", stopped=True)]


def test_stop_while_a_node_is_being_reached(open_cluster, server, make_job):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        executor = open_cluster(system=System(nodes=(server.node(port=mute.getsockname()[1]),)))
        threading.Timer(0.5, executor.stop).start()
        [outcome] = executor.run([make_job("true")], Listener())
    assert outcome.stopped


def test_leaving_by_an_error_ends_what_runs_on_the_nodes(server, make_job, tmp_path):
    class Broken(Listener):
        def on_started(self, job_id: str, pid: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ClusterExecutor(server.system(), ssh=server.client) as executor:
        executor.run([make_job("sleep", "300")], Broken())
    assert carrying(f"SSH_TEST={tmp_path}") == []


@pytest.mark.long
def test_a_main_process_that_is_killed_leaves_nothing_on_the_nodes(server, make_job, tmp_path):
    job, others = make_job("sleep", "300", grace_s=0.2), set(server.connections())
    program = tmp_path / "main.py"
    program.write_text(f"""\
import msgspec
from benchwright.core.job import Job
from benchwright.core.system import System
from benchwright.executors.base import Listener
from benchwright.executors.ssh import ClusterExecutor
class Tell(Listener):
    def on_started(self, job_id, pid):
        print("started", flush=True)
system = msgspec.json.decode({msgspec.json.encode(server.system())!r}, type=System)
job = msgspec.json.decode({msgspec.json.encode(job)!r}, type=Job)
with ClusterExecutor(system, ssh={server.client!r}) as executor:
    executor.run([job], Tell())
""")
    main = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    assert main.stdout.readline() == "started\n"
    main.kill()
    main.communicate()
    assert wait_for(lambda: carrying(f"SSH_TEST={tmp_path}") == [])
    assert wait_for(lambda: set(server.connections()) <= others)
