"""A real Ray cluster for tests: a head and a second node on this machine, at addresses of their own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from processes import kill

ADDRESSES = ("127.0.0.2", "127.0.0.3")
_OF_RAYS_AGENT = 52365
_NODE = ("--num-cpus=2", "--object-store-memory=80000000", "--disable-usage-stats", "--block")


def _free_port(address: str) -> int:
    """Not one that Ray wants for something else."""
    while True:
        with socket.socket() as free:
            free.bind((address, 0))
            if free.getsockname()[1] != _OF_RAYS_AGENT:
                return int(free.getsockname()[1])


class RayCluster:
    """`environment`: the variables that drivers need; `address`: of the head. `hosts`: of the head and the other node."""

    def __init__(self, folder: Path, hosts: tuple[str, str] = ADDRESSES) -> None:
        self.folder = folder
        self._head, self._other = hosts
        (folder / "token").write_text(os.urandom(16).hex())
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(folder / "token")}
        self.address = f"{self._head}:{_free_port(self._head)}"
        self._sockets = tempfile.mkdtemp(prefix="ray-")  # their paths must be short
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        port = self.address.rpartition(":")[2]
        self._start(self._head, "--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self._sockets}")
        self._wait(lambda: _answers(self.address), "the head answers")
        self._start(self._other, f"--address={self.address}")
        logs = [self.folder / f"{address}.log" for address in self._nodes]
        self._wait(lambda: all("Ray runtime started" in log.read_text() for log in logs), "both nodes have started")

    def _start(self, address: str, *words: str) -> None:
        with open(self.folder / f"{address}.log", "wb") as log:
            self._nodes[address] = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", f"--node-ip-address={address}", *words, *_NODE],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_other(self) -> None:
        """The raylet of the second node, with SIGKILL."""
        for process in psutil.Process(self._nodes[self._other].pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.name() == "raylet":
                    process.kill()

    def _wait(self, condition: object, what: str) -> None:
        limit = time.monotonic() + 300
        while not condition():  # type: ignore[operator]
            for address, node in self._nodes.items():
                assert node.poll() is None, (self.folder / f"{address}.log").read_text()
            assert time.monotonic() < limit, f"not in time: {what}"
            time.sleep(0.2)

    def stop(self) -> None:
        for node in reversed(list(self._nodes.values())):
            children = psutil.Process(node.pid).children(recursive=True) if node.poll() is None else []
            node.terminate()
            try:
                node.wait(20)
            except subprocess.TimeoutExpired:
                node.kill()
                node.wait()
            kill(*children)
        shutil.rmtree(self._sockets, ignore_errors=True)


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


def start_ray_cluster(folder: Path, hosts: tuple[str, str] = ADDRESSES) -> RayCluster:
    """Skips the test where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed (pip install 'benchwright[ray]')")
    cluster = RayCluster(folder, hosts)
    try:
        cluster.start()
    except BaseException:
        cluster.stop()
        raise
    return cluster
