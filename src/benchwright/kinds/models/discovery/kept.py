"""Results of searches, kept: in the run, so that resuming it searches nothing again, and for later runs of the same script."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from benchwright.agent.machine.packages import list_packages
from benchwright.artifacts.builds import DISCOVERIES
from benchwright.artifacts.probe_folder import probe_digest
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import CannotWrite
from benchwright.core.kept_variables import kept_variables
from benchwright.core.machine import Machine
from benchwright.core.model import ModelScript, ScriptDiscovery
from benchwright.core.stored_file import Unreadable, decode_stored_json, read_stored
from benchwright.core.whole_file import write_own
from benchwright.executors.observer import is_this_machine
from benchwright.kinds.models.kind import ModelsKind, discovery_settings
from benchwright.options.table import Options
from benchwright.plan.file_names import safe_name
from benchwright.runs.provenance.file_digests import digest_of
from benchwright.runs.provenance.packages import site_folders

_VERSION = 1


class KeptDiscovery(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the folder `discoveries`; its name is a digest of everything else that the search depends on."""

    format: str = "benchwright-discovery"
    version: int = _VERSION
    searched: str  # when
    files: dict[str, str]  # the script and the modules of the user's that it imported, with their digests
    discovery: ScriptDiscovery


def keep_in(folder: Path, script: Benchmark, discovery: ScriptDiscovery) -> None:
    """Beside the script's events, in the folder of the run."""
    write_own(_file_in(folder, script), msgspec.json.encode(discovery) + b"\n")


def kept_in(folder: Path, script: Benchmark) -> ScriptDiscovery | None:
    """The models found earlier in this run; None if the search had not ended."""
    return _read(_file_in(folder, script))


def all_kept_in(folder: Path) -> list[ScriptDiscovery]:
    return [found for path in sorted(folder.glob("*.json")) if (found := _read(path)) is not None]


def _read(path: Path) -> ScriptDiscovery | None:
    try:
        return decode_stored_json(read_stored(path), ScriptDiscovery)
    except (OSError, Unreadable):
        return None


def _file_in(folder: Path, script: Benchmark) -> Path:
    return folder / f"{safe_name(script.name)}.json"


class KeptDiscoveries:
    """Searches of earlier runs. A script that failed, or did not end, is searched again: the cause may be gone."""

    def __init__(self, builds: Path, options: Options, machine: Machine) -> None:
        self._folder = builds / DISCOVERIES
        self._options = options
        self._machine = machine
        self._packages: dict[str, dict[str, str]] = {}

    def of(self, script: Benchmark) -> ScriptDiscovery | None:
        """The models an earlier search of this script found, if everything it depends on is the same."""
        assert isinstance(script.workload, ModelScript)
        if self._options.rebuild == "always" or not self._is_here:
            return None
        try:
            kept = decode_stored_json(read_stored(self._file(script)), KeptDiscovery)
        except (OSError, Unreadable):
            return None
        if kept.version != _VERSION or any(digest_of(path) != digest for path, digest in kept.files.items()):
            return None
        return msgspec.structs.replace(kept.discovery, script=script.source, searched=kept.searched)

    def keep(self, script: Benchmark, discovery: ScriptDiscovery) -> None:
        """A cache that cannot be written costs a search, no run."""
        assert isinstance(script.workload, ModelScript)
        if discovery.trouble is not None or not discovery.ended or not self._is_here:
            return
        files = {path: digest_of(path) for path in (script.workload.path, *discovery.modules)}
        when = datetime.now().astimezone().isoformat(timespec="seconds")
        with suppress(OSError, CannotWrite):
            self._folder.mkdir(parents=True, exist_ok=True)
            kept = KeptDiscovery(searched=when, files=files, discovery=discovery)
            write_own(self._file(script), msgspec.json.encode(kept) + b"\n")

    def forget(self, script: Benchmark) -> None:
        """It proved wrong: the script depends on something that is not among what is compared, such as a file it reads."""
        with suppress(OSError):
            self._file(script).unlink()

    @property
    def _is_here(self) -> bool:
        """Of another machine, neither files nor packages can be compared."""
        return is_this_machine(self._machine)

    def _file(self, script: Benchmark) -> Path:
        work = script.workload
        assert isinstance(work, ModelScript)
        depends_on = {
            "search": probe_digest(ModelsKind.probe_packages),
            "script": work.path,
            "args": work.args,
            "cwd": work.cwd,
            "python": work.python,
            "packages": self._packages_of(work.python),
            "settings": discovery_settings(self._options, count_work=False),
            "env": sorted(script.env.items()),
            "variables": kept_variables(os.environ, also=self._options.keep_env),
            "machine": self._machine.fingerprint,
        }
        return self._folder / f"{hashlib.sha256(msgspec.json.encode(depends_on)).hexdigest()[:32]}.json"

    def _packages_of(self, python: str) -> dict[str, str]:
        if python not in self._packages:
            self._packages[python] = list_packages(site_folders(Path(python)))
        return self._packages[python]
