"""The run folder: the truth about a run. Whole files are written aside and renamed; streams are appended by others.

runs/<name>.<time>/
  plan.json        what is to be measured and how; never changed after the start
  run.json         how far it got: statuses and condensed numbers, derived from the streams
  jobs.json        the jobs that were planned for it, without secrets
  machine.json     what it ran on
  provenance.json  code, repositories, environment and packages that its numbers depend on
  packages.json    package versions of the measured environments
  <stem>.data      event streams, one for each job          <stem>.log.gz   what the program printed
  checksums.sha256  of each stream, when its launch had ended
  lock             held while a benchwright writes here
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from benchwright.core.errors import CannotMeasure, CannotWrite, InvalidInput, RunFolderBusy
from benchwright.core.file_lock import try_lock
from benchwright.core.health import Mark
from benchwright.core.machine import Machine
from benchwright.core.private_files import PRIVATE_FOLDER, file_mode
from benchwright.core.provenance import History
from benchwright.core.secrets import redact_text
from benchwright.core.stored_file import Unreadable, decode_stored_json, open_stored, read_stored
from benchwright.core.whole_file import write_own
from benchwright.runs.checksums import CHECKSUMS, Checksums
from benchwright.runs.stored_plan import JOBS_VERSION, PLAN_VERSION, TIME, StoredJobs, StoredPlan, decoded_plan

T = TypeVar("T")
RunState = Literal["running", "interrupted", "ended"]  # `running` while nobody holds the lock: it was killed
RUN_VERSION = 1
MACHINE_VERSION = 1
PACKAGES_VERSION = 1
PROVENANCE_VERSION = 1
_HEAD_BYTES = 8192  # of a plan: enough for its first fields, however long its name
_UID = re.compile(rb'"uid":\s*"([0-9a-f]{32})"')
_STARTED = re.compile(rb'"started":\s*"([^"\\]{1,40})"')
_LONGEST_NAME_BYTES = 200  # file systems take 255, and a number may follow


class _Packages(msgspec.Struct):
    environments: dict[str, dict[str, str]]


class _Annotation(msgspec.Struct):
    text: str


class Ending(msgspec.Struct):
    """Part of run.json, which may have been edited by hand: of any type."""

    ended: Any = None
    notes: Any = None
    headline: Any = None


def new_uid() -> str:
    """An id that no other run has, on any machine."""
    return os.urandom(16).hex()


class PlanHead(msgspec.Struct, frozen=True):
    """The first fields of plan.json, read without the rest. `started`: seconds since 1970; `written_ns`: when the file
    was written."""

    uid: str
    started: float
    written_ns: int


class RunFolder:
    """A folder of one run. Constructing it touches nothing."""

    def __init__(self, path: Path, head: PlanHead | None = None) -> None:
        self.path = path
        self._head = head
        self._read: dict[str, bytes] | None = None  # files read already, if each is to be read once
        self._checksums: Checksums | None = None

    @property
    def id(self) -> str:
        return self.path.name

    def read_once(self) -> RunFolder:
        """The same folder, with each whole file read only once: a consistent snapshot, and cheaper."""
        same = RunFolder(self.path, self._head)
        same._read = {}
        return same

    def content(self, name: str) -> bytes:
        """The bytes of one of its whole files; OSError if there is none."""
        if self._read is None:
            return read_stored(self.path / name)
        if name not in self._read:
            self._read[name] = read_stored(self.path / name)
        return self._read[name]

    @property
    def checksums(self) -> Checksums:
        """For whoever makes the run: read once."""
        if self._checksums is None:
            self._checksums = Checksums(self.path)
        return self._checksums

    @property
    def unique_id(self) -> str:
        """As `Run.unique_id`."""
        if self._head is None:
            self._head = self.read_head()
        return (self._head.uid if self._head is not None else "") or self.id

    def read_head(self) -> PlanHead | None:
        """None if there is no plan.

        The plan itself says when it started, since copying or editing a file makes it no newer; the file's time decides
        only between runs of the same second, or if the plan is damaged.
        """
        try:
            with open_stored(self.path / "plan.json") as file:
                written_ns = os.fstat(file.fileno()).st_mtime_ns
                beginning = file.read(_HEAD_BYTES)
        except OSError:
            return None
        uid, said = _UID.search(beginning), _STARTED.search(beginning)
        try:
            started = datetime.fromisoformat(said[1].decode()).timestamp() if said else written_ns / 1e9
        except (ValueError, OverflowError):
            started = written_ns / 1e9
        return PlanHead(uid[1].decode() if uid else "", started, written_ns)

    @staticmethod
    def create(runs: Path, name: str, now: float | None = None, *, shared: bool = False) -> RunFolder:
        """A new, empty folder `<name>.<time>`; a second one within the same second gets a number.

        Nobody else can read it or its files, unless it is `shared`: then the umask decides.
        """
        moment = datetime.fromtimestamp(time.time() if now is None else now).strftime("%Y-%m-%d_%H:%M:%S")
        wanted = name.replace(TIME, moment) if TIME in name else f"{name}.{moment}"
        _check_name(name, wanted)
        try:
            runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(runs, error) from error
        for number in range(1, 10_000):
            path = runs / (wanted if number == 1 else f"{wanted}_{number}")
            try:
                path.mkdir(mode=0o777 if shared else PRIVATE_FOLDER)
                return RunFolder(path)
            except FileExistsError:
                continue
            except OSError as error:
                raise _unwritable(runs, error) from error
        raise CannotMeasure(f"no free name for a run called {wanted} in {runs}")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the folder for this process; RunFolderBusy if another one has it."""
        try:
            # Non-blocking, in case somebody put a pipe there.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
            lock = os.fspath(self.path / "lock")
            handle = open(os.open(lock, flags, file_mode(lock)), "a")  # noqa: SIM115 - closed below
        except OSError as error:
            raise _unwritable(self.path / "lock", error) from error
        with handle:
            if not try_lock(handle.fileno()):
                raise RunFolderBusy(
                    f"{self.path} is being written by another benchwright; wait for it, or choose another run"
                )
            yield

    def remove_unused(self) -> None:
        """Removes a folder into which nothing was planned or measured."""
        with suppress(OSError):
            for name in ("lock", "allocations.json"):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()

    def is_busy(self) -> bool:
        """Whether another process writes here, or nobody can: leave it alone then."""
        try:
            with self.locked():
                return False
        except (RunFolderBusy, DiskTrouble):
            return True

    def is_being_made(self) -> bool:
        """Whether another process measures into it; asking changes nothing."""
        try:
            with open_stored(self.path / "lock") as handle:
                return not try_lock(handle.fileno(), shared=True)
        except OSError:
            return False  # never locked

    def write_plan(self, plan: StoredPlan) -> None:
        self.write("plan.json", plan.without_secrets())

    def beginning(self) -> dict[str, bytes | None]:
        """The files that are written once, before the first launch; None for one that cannot be read."""
        found: dict[str, bytes | None] = dict.fromkeys(("plan.json", "jobs.json", "machine.json", "provenance.json"))
        for name in found:
            with suppress(OSError):
                found[name] = self.content(name)
        return found

    def write_jobs(self, jobs: StoredJobs) -> None:
        self.write("jobs.json", jobs, indent=None)

    def read_jobs(self) -> StoredJobs | None:
        """The planned jobs; None if never written, damaged or of a later version."""
        jobs = self._stored("jobs.json", StoredJobs)
        return jobs if jobs is not None and jobs.version == JOBS_VERSION else None

    def read_plan(self) -> StoredPlan:
        """InvalidInput if it is missing, damaged or of a later version."""
        path = self.path / "plan.json"
        try:
            raw = self.content("plan.json")
            try:
                plan = decoded_plan(raw)
            except Unreadable:
                _check_version(decode_stored_json(raw), path)
                raise
            _check_version({"version": plan.version}, path)
            return plan
        except (FileNotFoundError, NotADirectoryError):
            raise InvalidInput(
                "no plan.json: this is not a run folder", where=str(self.path), remedy="see 'benchwright runs'"
            ) from None
        except (OSError, Unreadable) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InvalidInput(f"cannot be read: {why}", where=str(path), remedy="start a new run") from error

    def write_machine(self, machine: Machine) -> None:
        body = {"format": "benchwright-machine", "version": MACHINE_VERSION, "fingerprint": machine.fingerprint}
        self.write("machine.json", body | msgspec.to_builtins(machine))

    def read_machine(self) -> Machine | None:
        """The machine that the run was started on."""
        return self._stored("machine.json", Machine)

    def write_history(self, history: History) -> None:
        body = {"format": "benchwright-provenance", "version": PROVENANCE_VERSION}
        self.write("provenance.json", body | msgspec.to_builtins(history))

    def read_history(self) -> History | None:
        """Provenance of the run's start and of each resumption."""
        return self._stored("provenance.json", History)

    def read_packages(self) -> dict[str, dict[str, str]]:
        """Package versions of the measured environments; empty if unknown."""
        found = self._stored("packages.json", _Packages)
        return found.environments if found is not None else {}

    def write_packages(self, environments: dict[str, dict[str, str]]) -> None:
        self.write(
            "packages.json",
            {"format": "benchwright-packages", "version": PACKAGES_VERSION, "environments": environments},
        )

    def write_annotation(self, text: str | None) -> None:
        """The user's remark about the run; None removes it."""
        if text is None:
            (self.path / "annotation.json").unlink(missing_ok=True)
        else:
            text = redact_text(text)
            self.write("annotation.json", {"format": "benchwright-annotation", "version": 1, "text": text})

    def read_annotation(self) -> str | None:
        found = self._stored("annotation.json", _Annotation)
        return found.text if found is not None else None

    def write_run(self, body: dict[str, object], *, state: RunState = "ended") -> None:
        self.write("run.json", {"format": "benchwright-run", "version": RUN_VERSION, "state": state} | body)

    def read_ending(self) -> Ending:
        """The part that only run.json holds: how the run ended, and notes about it. Empty if it is damaged."""
        return self._stored("run.json", Ending) or Ending()

    def read_run(self) -> dict[str, Any] | None:
        """run.json as it stands."""
        return self._stored("run.json", dict[str, Any])

    def _stored(self, name: str, kind: type[T]) -> T | None:
        """None if it was never written or is damaged."""
        try:
            return decode_stored_json(self.content(name), kind)
        except (OSError, Unreadable):
            return None

    def write(self, name: str, body: Any, *, indent: int | None = 1) -> None:
        """Writes a whole JSON file aside and renames it; a full disk leaves the old one as it was."""
        path = self.path / name
        text = msgspec.json.encode(body)
        try:
            write_own(path, (text if indent is None else msgspec.json.format(text, indent=indent)) + b"\n")
        except OSError as error:
            raise _unwritable(path, error) from error

    def set_aside(self, stem: str) -> None:
        """Renames what an unfinished job left, so that its repetition starts clean and nothing is lost."""
        for suffix in (".data", ".log", ".log.gz"):
            path = self.path / (stem + suffix)
            if path.exists():
                number = 1
                while (aside := self.path / f"{stem}.interrupted-{number}{suffix}").exists():
                    number += 1
                path.rename(aside)
        try:
            self.checksums.forget(f"{stem}.data")
        except OSError as error:
            raise _unwritable(self.path / CHECKSUMS, error) from error


def _check_version(plan: object, path: Path) -> None:
    version = plan.get("version") if isinstance(plan, dict) else None
    if version != PLAN_VERSION:
        raise InvalidInput(
            f"has format version {str(version)[:40]}, this benchwright reads {PLAN_VERSION}",
            where=str(path),
            remedy="use the benchwright that wrote it",
        )


def _check_name(name: str, folder: str) -> None:
    """InvalidInput for a name that is not a single folder below `runs`."""
    if not name.strip() or "/" in name or name.startswith((".", "-")) or not name.isprintable():
        raise InvalidInput(
            f"{name!a} cannot be the name of a run",
            where="--run-name",
            remedy="leave out slashes, control characters and a dot or dash at its beginning",
        )
    if len(folder.encode()) > _LONGEST_NAME_BYTES:
        raise InvalidInput(
            f"the name is longer than {_LONGEST_NAME_BYTES} bytes", where="--run-name", remedy="shorten it"
        )


class DiskTrouble(CannotWrite):
    """A file of a run could not be written."""


def _unwritable(path: Path, error: OSError) -> DiskTrouble:
    if error.errno == errno.ENOSPC:
        return DiskTrouble(f"{path}: the disk is full; free some space, then resume the run with --resume")
    return DiskTrouble(f"{path}: {error.strerror or error}; choose another folder with --base")


# The marks of all agents that wrote into a run folder, from the first line of each stream.


_FIRST_BYTES = 4096


def read_marks(folder: Path) -> list[Mark]:
    """Including streams set aside; skips a stream that cannot be read."""
    found: dict[Mark, None] = {}
    for path in sorted(folder.glob("*.data")):
        if not path.is_file():  # reading a pipe would block forever
            continue
        try:
            with open(path, "rb") as stream:
                first = msgspec.json.decode(stream.read(_FIRST_BYTES).partition(b"\n")[0])
            found[Mark(msgspec.convert(first["mark"], str), msgspec.convert(first.get("group"), str | None))] = None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
            continue
    return list(found)
