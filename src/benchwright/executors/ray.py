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
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.core.system import Node
from benchwright.executors.allocated import AllocatedExecutor
from benchwright.executors.base import Executor, Site
from benchwright.executors.connection import Connection, last_line
from benchwright.executors.lender import Lender
from benchwright.executors.observer import Observer
from benchwright.executors.via_connection import ViaConnection

_FOLDER = os.path.dirname(os.path.abspath(__file__))
SCHEDULER = "ray"
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


class RayHub:
    """The process that speaks to Ray. `how`: all nodes at once (together), or each as it becomes free (apart)."""

    def __init__(self, address: str, nodes: int, how: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="benchwright-ray-")
        self.path = os.path.join(self._folder, "hub")
        words = [sys.executable, "-P", os.path.join(_FOLDER, "ray_hub.py"), self.path, str(nodes), how]
        with open(os.path.join(self._folder, "errors"), "wb") as errors:
            self.process = subprocess.Popen(
                [*words, *([address] if address else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,  # so that what was not read is seen by select
                start_new_session=True,
            )

    def hear(self, wait_s: float) -> dict[str, Any] | None:
        """Its next message; None if none comes in time. CannotMeasure if it failed."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], wait_s)[0]:
            return None
        line = self.process.stdout.readline()
        message: dict[str, Any] = json.loads(line) if line else {"problem": self._last_words()}
        if "problem" in message:
            raise CannotMeasure(f"ray: {message['problem']}")
        return message

    def connections(self, nodes: Mapping[str, str], python: str) -> dict[str, Connection]:
        """`nodes`: addresses by their names."""
        return {name: RayConnection(name, address, self.path, python) for name, address in nodes.items()}

    def give_back(self, node: str) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # it is gone, and with it all nodes
            self.process.stdin.write(f"{node}\n".encode())
            self.process.stdin.flush()

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _last_words(self) -> str:
        with open(os.path.join(self._folder, "errors"), encoding="utf-8", errors="replace") as errors:
            return last_line(errors.read()) or "it ended without a word"


class RayExecutor(AllocatedExecutor):
    """`address`: of the cluster; empty: where $RAY_ADDRESS says, or the one that runs here."""

    scheduler = SCHEDULER

    def __init__(self, site: Site, address: str) -> None:
        super().__init__(site)
        self._address = address
        self._hub: RayHub | None = None

    def _grant(self) -> dict[str, Connection]:
        self._tell("connecting to the cluster")
        self._hub = RayHub(self._address, self._site.nodes, "together")
        began, limit_s = time.monotonic(), self._site.wait_s
        while not self._stops:
            message = self._hub.hear(_LOOK_S) or {}
            if "nodes" in message:
                return self._hub.connections(message["nodes"], self._python)
            if "waiting" in message:
                self._tell(f"waiting for nodes: {message['waiting']}")
            if limit_s is not None and time.monotonic() - began > limit_s:
                raise CannotMeasure(_too_late(limit_s))
        raise Interrupted("interrupted while waiting for nodes")

    def _release(self) -> None:
        hub, self._hub = self._hub, None
        if hub is not None:
            hub.close()

    def lender(self, folder: str, observer: Observer) -> Lender:
        """See `Lending`."""
        return RayLender(self._site, self._address, observer, self._python)


class RayLender(Lender):
    """Takes those nodes of the cluster that are free first."""

    def __init__(self, site: Site, address: str, observer: Observer, python: str) -> None:
        self._site, self._address, self._observer, self._python = site, address, observer, python
        self._hub: RayHub | None = None
        self._wanted = site.nodes
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._observer.on_step(SCHEDULER, "connecting to the cluster")
        self._hub = RayHub(self._address, self._site.nodes, "apart")
        return self

    @property
    def waits(self) -> bool:
        return self._wanted > 0

    def granted(self) -> list[Connection]:
        assert self._hub is not None
        found: dict[str, Connection] = {}
        while self.waits and (message := self._hub.hear(0.0)) is not None:
            if "waiting" in message:
                self._observer.on_step(SCHEDULER, f"waiting for nodes: {message['waiting']}")
            found |= self._hub.connections(message.get("nodes", {}), self._python)
            self._wanted -= len(message.get("nodes", {}))
        limit_s = self._site.wait_s
        if self.waits and not found and limit_s is not None and time.monotonic() - self._began > limit_s:
            if self._wanted == self._site.nodes:
                raise CannotMeasure(_too_late(limit_s))
            self._wanted = 0  # go on with the nodes there are
        if not self.waits:
            self._observer.on_step_done(SCHEDULER)
        return list(found.values())

    def give_back(self, node: str) -> None:
        if self._hub is not None:
            self._hub.give_back(node)

    def __exit__(self, *error: object) -> None:
        hub, self._hub = self._hub, None
        if hub is not None:
            hub.close()


def _too_late(limit_s: float) -> str:
    return f"ray: no nodes were free within {limit_s:g} s; wait longer with --wait"


def open_executor(argument: str, site: Site) -> Executor:
    """`--on ray[:ADDRESS]`."""
    if site.slurm:
        raise InvalidInput("--slurm is for --on slurm", where="--on ray", remedy="leave --slurm out")
    if importlib.util.find_spec("ray") is None:
        raise CannotMeasure("ray is not installed; pip install 'benchwright[ray]'")
    return RayExecutor(site, argument)
