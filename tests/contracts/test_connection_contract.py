"""What every connection to a node must do: run a command there as if it ran here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import fake_kubectl
import pytest
from ray_cluster import RayCluster
from slurm_cluster import start_slurm_cluster, wait_until
from ssh_server import start_ssh_server

from benchwright.core.errors import CannotMeasure
from benchwright.core.system import Node
from benchwright.executors.base import Site
from benchwright.executors.connection import Connection, read_look, wait_for
from benchwright.executors.registry import open_executor
from benchwright.executors.slurm_commands import cancel, submit
from benchwright.executors.slurm_connection import SlurmConnection
from benchwright.executors.ssh_connection import SshConnection
from benchwright.executors.transfer.shell import ANSWER, ask, fetch
from benchwright.executors.via_connection import ViaConnection

LIMIT_S = 60.0


def via_node(pod: str = "pod") -> Node:
    return Node(name="far", ip="far", via=(sys.executable, fake_kubectl.__file__, "exec", "-i", pod, "--"))


def slurm_connection(folder: Path) -> Iterator[Connection]:
    cluster = start_slurm_cluster(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
        job = submit(2, "", ["--time=20"], "benchwright-contract", str(folder / "sign"))
        wait_until((folder / "sign").exists, "the holder runs")
        yield SlurmConnection("n2", job, sys.executable)
        cancel(job, "benchwright-contract")
    cluster.stop()


def ray_connection(cluster: RayCluster) -> Iterator[Connection]:
    with open_executor(f"ray:{cluster.address}", Site()) as executor:
        executor.machine()
        [connection] = executor._connections.values()
        yield connection


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.xdist_group("ray" if name == "ray" else f"connection {name}"))
        for name in ("ssh", "via", "slurm", "ray")
    ],
)
def connection(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    if request.param == "via":
        yield ViaConnection(via_node(), sys.executable)
        return
    if request.param == "slurm":
        yield from slurm_connection(tmp_path_factory.mktemp("slurm"))
        return
    if request.param == "ray":
        yield from ray_connection(request.getfixturevalue("ray_cluster"))
        return
    server = start_ssh_server(tmp_path_factory.mktemp("ssh"))
    yield SshConnection(server.node(), str(server.folder / "key"), sys.executable, server.client)
    server.stop()


def run(connection: Connection, *command: str, given: bytes = b"", **environment: str) -> tuple[int, bytes]:
    words = connection.words(command, environment)
    done = subprocess.run(words, input=given, stdout=subprocess.PIPE, timeout=LIMIT_S, check=False)
    return connection.ended(done.returncode), done.stdout


def test_what_is_written_to_it_comes_back_unchanged(connection):
    data = bytes(range(256)) * 4096 + b"\r\n\0no newline at the end"
    assert run(connection, "cat", given=data) == (0, data)


def test_words_stay_words(connection):
    odd = ["a  b", "it's", '"', "$HOME", "*", "\\", "-n", "ü", "", "a;b&c|d"]
    assert run(connection, "printf", "<%s>", *odd) == (0, "".join(f"<{word}>" for word in odd).encode())


def test_variables_are_added(connection):
    assert run(connection, "sh", "-c", 'echo "$ONE-$TWO"', ONE="1 2", TWO="ü=;") == (0, "1 2-ü=;\n".encode())


@pytest.mark.parametrize("code", [0, 1, 2, 3, 77, 126, 127])
def test_exit_codes_come_back(connection, code):
    assert run(connection, "sh", "-c", f"exit {code}")[0] == code


def test_a_command_that_is_not_there(connection):
    code, _ = run(connection, "no-such-command-anywhere")
    assert code == 127
    assert str(connection) in connection.explain(code, "")


def test_a_lost_connection_is_no_exit_code_of_the_command(connection):
    assert connection.ended(255) == 255
    assert str(connection) in connection.explain(255, "")


def test_output_arrives_while_the_command_runs_and_input_reaches_it(connection):
    words = connection.words(["sh", "-c", "echo ready; read word; echo got $word"])
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"it\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"got it\n"
        process.stdin.close()
        assert connection.ended(process.wait(LIMIT_S)) == 0


def test_the_end_of_the_input_reaches_the_command(connection):
    words = connection.words(["sh", "-c", "cat >/dev/null; echo over"])
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        time.sleep(0.2)
        process.stdin.close()
        assert process.stdout.read() == b"over\n"


def test_scripts_are_answered(connection):
    script = f"echo noise; echo '{ANSWER}'; cat; echo \"$1\""
    feed = lambda pipe: pipe.write(b"fed\n")  # noqa: E731
    assert ask(connection, script, "an argument", feed=feed).lines == ["fed", "an argument"]
    with pytest.raises(CannotMeasure, match="it broke"):
        ask(connection, "echo it broke >&2; exit 3")


def test_output_of_many_bytes_is_fetched(connection):
    taken: list[int] = []

    def take(pipe: IO[bytes]) -> None:
        taken.append(len(pipe.read()))

    fetch(connection, "head -c 3000000 /dev/zero", take=take)
    assert taken == [3_000_000]


def test_its_agent_is_greeted(connection):
    with subprocess.Popen(connection.agent_words("a-token"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b'"say":"ready"' in process.stdout.readline()
        assert process.stdin is not None
        process.stdin.close()
        assert connection.ended(process.wait(LIMIT_S)) == 0


def test_a_look_finds_files_that_are_shared(connection, tmp_path):
    (tmp_path / "check").write_text("word")
    visit = connection.start_visit("look", str(tmp_path / "check"))
    wait_for([visit], LIMIT_S, lambda: False)
    look = read_look(connection, visit, [str(tmp_path)], "word", {})
    assert look.problem is None
    assert look.machine.hostname == os.uname().nodename


@pytest.mark.xdist_group("connection via")
def test_a_pod_that_is_gone_is_named_with_its_remedy():
    connection = ViaConnection(via_node("gone"), sys.executable)
    with pytest.raises(
        CannotMeasure, match=r'node .far. .*pods "gone" not found; try it by hand: .*exec -i gone -- true'
    ):
        ask(connection, f"echo '{ANSWER}'")


@pytest.mark.xdist_group("connection via")
def test_a_connection_that_is_cut_is_lost():
    connection = ViaConnection(via_node("cut"), sys.executable)
    with pytest.raises(CannotMeasure, match=r"connection to node 'far' .* was lost .*lost connection to pod"):
        ask(connection, f"echo '{ANSWER}'; sleep 60")
