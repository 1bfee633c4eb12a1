"""The run folder: the truth about a run. Whole files are written aside and renamed; streams are appended by others.

runs/<name>.<time>/
  plan.json        what is to be measured and how; never changed after the start
  run.json         how far it got: statuses and condensed numbers, derived from the streams
  machine.json     what it ran on
  packages.json    package versions of the measured environments
  <stem>.data      event streams, one for each job          <stem>.log.gz   what the program printed
  lock             held while a benchwright writes here
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from benchwright.domain.benchmark import Benchmark
from benchwright.domain.errors import BenchwrightError, CannotMeasure, InvalidInput, RunFolderBusy
from benchwright.domain.machine import Machine
from benchwright.domain.secrets import REDACTED, redact
from benchwright.domain.settings import RunSettings

TIME = "{time}"  # in a name: when the run began
PLAN_VERSION = 1
RUN_VERSION = 1
MACHINE_VERSION = 1
PACKAGES_VERSION = 1
_LONGEST_NAME_BYTES = 200  # file systems take 255, and a number may follow


class StoredPlan(msgspec.Struct, frozen=True, kw_only=True):
    """plan.json: enough to make the same plan again, except for secrets that were given for the environment."""

    format: str = "benchwright-plan"
    version: int = PLAN_VERSION
    name: str  # as it was given: `{time}` stays in it
    started: str
    benchmarks: tuple[Benchmark, ...]
    settings: RunSettings
    labels: dict[str, str] = {}
    not_ready: dict[str, str] = {}  # benchmarks that could not be run, with what they lacked

    def name_of(self, run_id: str) -> str:
        """What the run is called. Where the time is part of its name, that is its id."""
        return run_id if TIME in self.name else self.name

    def same_target(self, benchmarks: tuple[Benchmark, ...], settings: RunSettings) -> bool:
        return not self.differences(benchmarks, settings)

    def without_secrets(self) -> StoredPlan:
        return msgspec.structs.replace(self, benchmarks=tuple(map(_without_secrets, self.benchmarks)))

    def secrets_left_out(self) -> list[str]:
        """Variables whose values were not kept."""
        return [name for b in self.benchmarks for name, value in b.env.items() if value and REDACTED in value]

    def differences(self, benchmarks: tuple[Benchmark, ...], settings: RunSettings) -> list[str]:
        """What differs between this plan and another, in words; empty if a resume is right."""
        before = {b.name: b for b in self.benchmarks}
        after = {b.name: b for b in benchmarks}
        lines = [f"{name} was part of it" for name in before if name not in after]
        lines += [f"{name} was not part of it" for name in after if name not in before]
        for name in before:
            if name in after:
                lines += _benchmark_differences(name, _without_secrets(before[name]), _without_secrets(after[name]))
        shown = ("echo",)  # how output is shown does not change what is measured
        for field in RunSettings.__struct_fields__:
            if field not in shown:
                old, new = (_setting(s, field) for s in (self.settings, settings))
                lines += _value_differences(field, old, new)
        return lines


def _without_secrets(benchmark: Benchmark) -> Benchmark:
    kept = redact({name: value for name, value in benchmark.env.items() if value is not None})
    pack = benchmark.pack
    if pack is not None and isinstance(written := pack.config.get("env"), dict):
        shown = redact({str(name): str(value) for name, value in written.items()})
        pack = msgspec.structs.replace(pack, config=pack.config | {"env": shown})
    return msgspec.structs.replace(benchmark, env={name: kept.get(name) for name in benchmark.env}, pack=pack)


def _setting(settings: RunSettings, field: str) -> Any:
    """As plain values. What the system file is called changes nothing, and what was overridden is seen elsewhere."""
    value = msgspec.to_builtins(getattr(settings, field))
    if field == "surroundings" and value is not None:
        value["system"]["file"] = value["overrides"] = None
    return value


def _benchmark_differences(name: str, old: Benchmark, new: Benchmark) -> list[str]:
    """What a suite's entry says is kept twice; as it was written, it is told only where nothing else differs."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    for body in (before, after):  # where something is said, and what is remarked about that, changes nothing
        del body["source"], body["notes"]
    written = [(body.get("pack") or {}).pop("config", None) for body in (before, after)]
    return _value_differences(name, before, after) or _value_differences(name, *written)


def _value_differences(what: str, old: Any, new: Any) -> list[str]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        return [line for k in old | new for line in _value_differences(f"{what}: {k}", old.get(k), new.get(k))]
    return [f"{what} was {_in_words(old)}, is {_in_words(new)}"]


def _in_words(value: Any) -> str:
    if isinstance(value, tuple | list) and all(isinstance(word, str) for word in value):
        return f"'{shlex.join(value)}'"
    return "not set" if value is None else str(value)


class RunFolder:
    """A folder of one run. Constructing it touches nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def id(self) -> str:
        return self.path.name

    @staticmethod
    def create(runs: Path, name: str, now: float | None = None) -> RunFolder:
        """A new, empty folder `<name>.<time>`; a second one within the same second gets a number."""
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
                path.mkdir()
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
            handle = open(self.path / "lock", "a")  # noqa: SIM115 - closed below
        except OSError as error:
            raise _unwritable(self.path / "lock", error) from error
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RunFolderBusy(
                    f"{self.path} is being written by another benchwright; wait for it, or choose another run"
                ) from error
            yield

    def remove_unused(self) -> None:
        """Takes back a folder that nothing was measured into, not even planned."""
        with suppress(OSError):
            (self.path / "lock").unlink(missing_ok=True)
            self.path.rmdir()

    def is_busy(self) -> bool:
        """Whether another process writes here, or nobody could: nothing should be done with it then."""
        try:
            with self.locked():
                return False
        except (RunFolderBusy, DiskTrouble):
            return True

    def is_being_made(self) -> bool:
        """Whether another process measures into it; looking changes nothing in it."""
        try:
            with open(self.path / "lock", "rb") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False  # nobody ever locked it, or it cannot be told
        return False

    def write_plan(self, plan: StoredPlan) -> None:
        self.write("plan.json", plan.without_secrets())

    def read_plan(self) -> StoredPlan:
        """InvalidInput if it is missing, damaged or of a later version."""
        path = self.path / "plan.json"
        try:
            raw = path.read_bytes()
            head = msgspec.json.decode(raw)
        except (FileNotFoundError, NotADirectoryError):
            raise InvalidInput(
                "there is no plan.json: this is no run folder", where=str(self.path), remedy="see 'benchwright runs'"
            ) from None
        except (OSError, msgspec.DecodeError) as error:
            raise InvalidInput(f"not readable: {error}", where=str(path), remedy="start the run anew") from error
        version = head.get("version") if isinstance(head, dict) else None
        if version != PLAN_VERSION:
            raise InvalidInput(
                f"has format version {version}, this benchwright reads {PLAN_VERSION}",
                where=str(path),
                remedy="use the benchwright that wrote it",
            )
        try:
            return msgspec.json.decode(raw, type=StoredPlan)
        except msgspec.DecodeError as error:
            raise InvalidInput(f"is damaged: {error}", where=str(path), remedy="start the run anew") from error

    def write_machine(self, machine: Machine) -> None:
        body = {"format": "benchwright-machine", "version": MACHINE_VERSION, "fingerprint": machine.fingerprint}
        self.write("machine.json", body | msgspec.to_builtins(machine))

    def read_machine(self) -> Machine | None:
        """What the run was begun on, or None if that was never written or is damaged."""
        try:
            return msgspec.json.decode((self.path / "machine.json").read_bytes(), type=Machine)
        except (OSError, msgspec.DecodeError):
            return None

    def read_packages(self) -> dict[str, dict[str, str]]:
        """Package versions of the measured environments; empty if they are not known."""
        try:
            body = msgspec.json.decode((self.path / "packages.json").read_bytes())
            return msgspec.convert(body["environments"], dict[str, dict[str, str]])
        except (OSError, msgspec.MsgspecError, KeyError, TypeError):
            return {}

    def write_packages(self, environments: dict[str, dict[str, str]]) -> None:
        self.write(
            "packages.json",
            {"format": "benchwright-packages", "version": PACKAGES_VERSION, "environments": environments},
        )

    def write_annotation(self, text: str | None) -> None:
        """What a user says of the run; None removes it."""
        if text is None:
            (self.path / "annotation.json").unlink(missing_ok=True)
        else:
            self.write("annotation.json", {"format": "benchwright-annotation", "version": 1, "text": text})

    def read_annotation(self) -> str | None:
        try:
            body = msgspec.json.decode((self.path / "annotation.json").read_bytes())
            return str(body["text"])
        except (OSError, msgspec.DecodeError, KeyError, TypeError):
            return None

    def write_run(self, body: dict[str, Any]) -> None:
        self.write("run.json", {"format": "benchwright-run", "version": RUN_VERSION} | body)

    def read_run(self) -> dict[str, Any] | None:
        """run.json as it stands, or None if it was never written or is damaged."""
        try:
            body = msgspec.json.decode((self.path / "run.json").read_bytes())
        except (OSError, msgspec.DecodeError):
            return None
        return body if isinstance(body, dict) else None

    def write(self, name: str, body: Any) -> None:
        """Writes a whole JSON file aside and renames it; a full disk leaves the old one as it was."""
        path = self.path / name
        aside = self.path / f".{name}.{os.getpid()}"
        try:
            with open(aside, "wb") as handle:
                handle.write(msgspec.json.format(msgspec.json.encode(body), indent=1) + b"\n")
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(aside, path)
        except OSError as error:
            with suppress(OSError):
                aside.unlink()
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


def _check_name(name: str, folder: str) -> None:
    """InvalidInput for a name that would be no folder of its own below `runs`."""
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


class DiskTrouble(BenchwrightError):
    """A file of a run could not be written."""


def _unwritable(path: Path, error: OSError) -> DiskTrouble:
    if error.errno == errno.ENOSPC:
        return DiskTrouble(f"{path}: the disk is full; free some space, then resume the run with --resume")
    return DiskTrouble(f"{path}: {error.strerror or error}; choose another folder with --base")
