"""A node that shares no file system with this machine: benchwright's agent and what jobs use are sent there."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable

import msgspec

from benchwright.core.entry_points import own_metadata
from benchwright.core.errors import CannotMeasure
from benchwright.core.job import Job
from benchwright.executors.agent_process import AGENT_FOLDER
from benchwright.executors.base import Listener, Site
from benchwright.executors.connection import Connection
from benchwright.executors.observer import Observer
from benchwright.executors.transfer.depot import Depot, Tree, place_below
from benchwright.executors.transfer.environments import (
    environment_manifest,
    folders_named_in,
    python_there,
    version_of,
)
from benchwright.executors.transfer.manifest import read_manifest
from benchwright.executors.transfer.needs import needs_of
from benchwright.executors.transfer.pull import pull
from benchwright.executors.transfer.push_progress import push_progress
from benchwright.executors.transfer.relocation import Relocation
from benchwright.executors.transfer.shell import ANSWER, ask
from benchwright.executors.transfer.survey import Survey, survey

_OWN_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_CLEAN_S = 20.0
_IN_BASE = (
    "runs",
    "artifacts",
    "builds",
    "venv",
    "data",
    "extra",
    "cache",
    "store.db",
)  # each is sent on its own, if at all
_REMOVE = f"rm -rf \"$@\"; echo '{ANSWER}'"


class RemoteNode:
    """A node that does not see our files: what its jobs need is sent, what they write is fetched."""

    def __init__(self, connection: Connection, site: Site, *, stopped: Callable[[], bool]) -> None:
        self._connection = connection
        self._site = site
        self._stopped = stopped
        self._found: Survey | None = None
        self._places: dict[str, str] = {}  # path here → there
        self._runs: set[str] = set()  # folders there that jobs write to
        self._sent: set[str] = set()

    def outfit(self) -> None:
        """Send the agent; CannotMeasure says what the node lacks."""
        found = survey(self._connection, self._site.folder_there, self._stopped)
        python = python_there(_OWN_VERSION, "benchwright's agent", self._connection, found)
        manifests = [read_manifest(path, self._site.digests) for path in _own_code()]
        identity = hashlib.sha256("".join(manifest.identity for manifest in manifests).encode()).hexdigest()[:12]
        code = f"{found.folder}/placed/code-{identity}"
        trees = [Tree(manifest, f"{code}/{os.path.basename(manifest.root)}") for manifest in manifests]
        Depot(self._connection, found, self._stopped).push(trees)
        self._found = found
        self._connection.use(python, f"{code}/benchwright/agent")

    def bring(self, jobs: Iterable[Job], listener: Listener) -> None:
        """Send what these jobs use and was not sent yet. CannotMeasure says what went wrong."""
        jobs = list(jobs)
        assert self._found is not None
        depot = Depot(self._connection, self._found, self._stopped)
        made = {os.path.dirname(job.stream) for job in jobs}
        for folder in made:
            self._places[folder] = place_below(f"{depot.folder}/runs", folder)
            self._runs.add(self._places[folder])
        anchors = {self._site.folder, os.path.join(self._site.folder, "runs")} if self._site.folder else set()
        apart = {os.path.join(self._site.folder, name) for name in _IN_BASE} if self._site.folder else set()
        needs = needs_of(jobs, made, anchors, apart)
        self._places |= {path: depot.place_of(path) for path in anchors if path not in self._places}
        new = [path for path in (*needs.environments, *needs.trees) if path not in self._sent]
        trees, notes = self._trees(depot, new, needs.environments, made | apart)
        for python in needs.pythons:
            self._places[python] = python_there(_version_of_program(python), python, self._connection, self._found)
        if trees:
            pushed = depot.push(trees, push_progress(listener, self._connection.node.name))
            notes += [*needs.notes, *pushed.notes]
        self._sent.update(new, (tree.manifest.root for tree in trees))
        if isinstance(listener, Observer):
            listener.on_step_done(self._connection.node.name)
            for note in dict.fromkeys(notes):
                listener.on_note(f"{self._connection.node.name}: {note}")

    def _trees(
        self, depot: Depot, paths: list[str], environments: Collection[str], excluded: Collection[str]
    ) -> tuple[list[Tree], list[str]]:
        assert self._found is not None
        outside = {e: [f for f in folders_named_in(e) if f not in self._sent] for e in environments if e in paths}
        plain = dict.fromkeys(
            [*(p for p in paths if p not in environments), *(f for fs in outside.values() for f in fs)]
        )
        self._places |= {path: depot.place_of(path) for path in (*paths, *plain)}
        trees = [
            Tree(read_manifest(path, self._site.digests, excluded=(*excluded, *environments)), self._places[path])
            for path in plain
        ]
        notes: list[str] = []
        for environment in outside:
            version = version_of(environment)
            python = python_there(version, f"the environment {environment}", self._connection, self._found)
            manifest, doubts = environment_manifest(environment, self._places, python, self._site.digests)
            trees.append(Tree(manifest, self._places[environment]))
            notes += doubts
        return trees, notes

    def relocated(self, job: Job) -> Job:
        """The job as the node is to run it: in its folder, or in that of the run if its own was not sent."""
        relocated = Relocation(self._places).job(job)
        if any(job.cwd == path or job.cwd.startswith(f"{path}/") for path in self._sent):
            return relocated
        return msgspec.structs.replace(relocated, cwd=os.path.dirname(relocated.stream))

    def fetch(self, job: Job) -> None:
        """Bring back the files that the job was to write for us; CannotMeasure if one is not there."""
        for here, there in zip(job.fetch, self.relocated(job).fetch, strict=True):
            pull(self._connection, there, here, self._stopped)

    def clean(self) -> None:
        """Remove what jobs wrote; what was sent stays for the next run."""
        if self._runs:
            try:
                ask(self._connection, _REMOVE, *self._runs, limit_s=_CLEAN_S, what="its files were removed")
            except CannotMeasure:
                pass  # the node is gone; the next run there uses other folders


def _own_code() -> list[str]:
    """The packages that the agent needs, side by side, and their entry points."""
    found = [os.path.dirname(AGENT_FOLDER), own_metadata()]
    for name in ("benchprobe", "msgspec", "pynvml"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(os.path.dirname(spec.origin) if spec.submodule_search_locations else spec.origin)
    return found


def _version_of_program(python: str) -> str:
    """Of an interpreter here."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.run(
            [python, "-c", code], capture_output=True, text=True, check=True, timeout=60
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotMeasure(f"{python} does not run here, so the node cannot be given the like: {error}") from error
