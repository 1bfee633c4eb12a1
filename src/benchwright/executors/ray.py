"""`--on ray[:ADDRESS]`: whole nodes of a Ray cluster. Ray only carries the pipes; benchwright's agents run the jobs."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.core.system import Node
from benchwright.executors.allocated import AllocatedExecutor
from benchwright.executors.base import Executor, Site
from benchwright.executors.connection import Connection, last_line
from benchwright.executors.via_connection import ViaConnection

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_LOOK_S = 0.2
_PATIENCE_S = 20.0  # for the hub to end


class RayConnection(ViaConnection):
    """`path`: the socket of the run's hub."""

    foreign_variables = ("RAY_", "OMP_")

    def __init__(self, name: str, address: str, path: str, python: str) -> None:
        words = (sys.executable, "-P", os.path.join(_FOLDER, "ray_pipe.py"), path, name)
        super().__init__(Node(name=name, ip=address, via=words), python)
        self.program = "the connection"

    def __str__(self) -> str:
        return f"node '{self.node.name}' of the Ray cluster"

    def explain_loss(self, printed: str) -> str:
        return f"Ray has lost it: {last_line(printed) or 'no reason given'}; check with: ray status"


class RayExecutor(AllocatedExecutor):
    """`address`: of the cluster; empty: where $RAY_ADDRESS says, or the one that runs here."""

    scheduler = "ray"

    def __init__(self, site: Site, address: str) -> None:
        super().__init__(site)
        self._address = address
        self._hub: subprocess.Popen[bytes] | None = None
        self._folder_of_hub: str | None = None

    def _grant(self) -> dict[str, Connection]:
        self._tell("connecting to the cluster")
        self._folder_of_hub = tempfile.mkdtemp(prefix="benchwright-ray-")
        path = os.path.join(self._folder_of_hub, "hub")
        address = [self._address] if self._address else []
        words = [sys.executable, "-P", os.path.join(_FOLDER, "ray_hub.py"), path, str(self._site.nodes), *address]
        with open(os.path.join(self._folder_of_hub, "errors"), "wb") as errors:
            self._hub = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        nodes = self._wait(self._hub)
        return {name: RayConnection(name, address, path, self._python) for name, address in nodes.items()}

    def _wait(self, hub: subprocess.Popen[bytes]) -> dict[str, str]:
        """The names of the nodes, with their addresses, once the hub has them."""
        assert hub.stdout is not None
        began, limit_s = time.monotonic(), self._site.wait_s
        while not self._stops:
            if select.select([hub.stdout], [], [], _LOOK_S)[0]:
                line = hub.stdout.readline()
                if not line:
                    raise CannotMeasure(f"ray: {self._last_words()}")
                message = json.loads(line)
                if "nodes" in message:
                    return dict(message["nodes"])
                if "problem" in message:
                    raise CannotMeasure(f"ray: {message['problem']}")
                self._tell(f"waiting for nodes: {message['waiting']}")
            if limit_s is not None and time.monotonic() - began > limit_s:
                raise CannotMeasure(f"ray: no nodes were free within {limit_s:g} s; wait longer with --wait")
        raise Interrupted("interrupted while waiting for nodes")

    def _last_words(self) -> str:
        assert self._folder_of_hub is not None
        with open(os.path.join(self._folder_of_hub, "errors"), encoding="utf-8", errors="replace") as errors:
            return last_line(errors.read()) or "it ended without a word"

    def _release(self) -> None:
        hub, self._hub = self._hub, None
        if hub is not None:
            assert hub.stdin is not None
            assert hub.stdout is not None
            hub.stdin.close()
            try:
                hub.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                hub.kill()
                hub.wait()
            hub.stdout.close()
        if self._folder_of_hub is not None:
            shutil.rmtree(self._folder_of_hub, ignore_errors=True)


def open_executor(argument: str, site: Site) -> Executor:
    """`--on ray[:ADDRESS]`."""
    if site.slurm:
        raise InvalidInput("--slurm is for --on slurm", where="--on ray", remedy="leave --slurm out")
    if importlib.util.find_spec("ray") is None:
        raise CannotMeasure("ray is not installed; pip install 'benchwright[ray]'")
    return RayExecutor(site, argument)
