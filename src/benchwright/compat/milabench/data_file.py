"""One `.data` file of milabench, of any version: what one process was, did and reported."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchwright.compat.voir.company import STREAM
from benchwright.compat.voir.lines import add_event, add_line
from benchwright.core.errors import InvalidInput
from benchwright.core.reported import TRAIN, Reported, is_number
from benchwright.runs.foreign_json import MOST_LINES_BYTES, open_foreign, writable

KEYS = {"event", "data", "pipe"}
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_LINES_LOOKED_AT = 20
_LONGEST_LINE_BYTES = 64 << 20  # the rest of a longer one is broken lines
_LAUNCH = re.compile(r"R(\d+)")
_DEVICE = re.compile(r"D(\d+)")
_FIRST_TIME_NS = 10**15  # smaller ones are no wall-clock times, but numbers of lines
_SILENT = frozenset({"line", "binary"})  # program output, which is long
_SKIPPED = re.compile(r"Skip .+? because the following capability is not satisfied: (.+)", re.DOTALL)


class Energy(NamedTuple):
    """Energy of the accelerators, and the time between the first and the last sample."""

    kilojoules: float
    elapsed_s: float


class JobFile(msgspec.Struct, kw_only=True):
    """`config`, `meta`, `start` and `end` are the first event of that name; None if there is none."""

    path: str
    stem: str
    digest: str
    changed: float
    said: Reported
    config: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    start: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    starts: int = 0
    ends: int = 0
    broken: int = 0
    unmet: list[str] = []  # the conditions of `requires_capabilities` for which milabench skipped it

    @property
    def skipped(self) -> bool:
        """milabench leaves a file with nothing but a message where the machine lacks a capability."""
        return bool(self.unmet) and self.config is None and self.start is None

    @property
    def tag(self) -> list[str]:
        """The parts of its name, from its configuration, else from the file name; the benchmark's name may contain dots."""
        tag = (self.config or {}).get("tag")
        if isinstance(tag, list) and tag and all(isinstance(part, str) and part for part in tag):
            return tag
        name, *rest = self.stem.split(".")
        while rest and not re.fullmatch(r"[RD]?\d+", rest[0]):
            name += f".{rest.pop(0)}"
        return [name, *rest]

    @property
    def name(self) -> str:
        name = (self.config or {}).get("name")
        return name if isinstance(name, str) and name else self.tag[0]

    @property
    def launch(self) -> int | None:
        return next((int(found[1][:9]) for part in self.tag[1:] if (found := _LAUNCH.fullmatch(part))), None)

    @property
    def place(self) -> tuple[str, ...]:
        """The part of its tag that distinguishes it from processes that ran alongside."""
        return tuple(part for part in self.tag[1:] if not _LAUNCH.fullmatch(part))

    @property
    def device(self) -> int | str | None:
        """The accelerator that the process had to itself."""
        device = (self.config or {}).get("device")
        if isinstance(device, str) or (isinstance(device, int) and 0 <= device < 10_000):
            return device
        if self.config is not None:
            return None
        return next((int(found[1][:9]) for part in self.tag[1:] if (found := _DEVICE.fullmatch(part))), None)

    @property
    def devices(self) -> tuple[int, ...]:
        listed = (self.config or {}).get("devices")
        alone = [self.device] if self.device is not None else None
        words = alone or (listed if isinstance(listed, list) else [])
        return tuple(int(str(word)) for word in words if re.fullmatch(r"\d{1,4}", str(word)))

    @property
    def ngpu(self) -> int:
        """How many accelerators milabench says the process had: those listed for `njobs`, else one, on each machine."""
        config = self.config or {}
        plan, machines, listed = (config.get(key) for key in ("plan", "num_machines", "devices"))
        alone = not isinstance(plan, dict) or plan.get("method") != "njobs"
        each = 1 if alone else len(listed) if isinstance(listed, list) else 0
        return each * (machines if isinstance(machines, int) and 0 < machines < 100_000 else 1)

    @property
    def has_no_log(self) -> bool:
        """A rank above 0 of several machines: no data is expected of it."""
        return "nolog" in self.tag

    @property
    def energy(self) -> Energy | None:
        """Of its own accelerator, else of all that it saw; None if samples have no power or no time."""
        own = None if self.device is None else str(self.device)
        joules, first, last = 0.0, None, None
        for t, seen in itertools.groupby(self.said.gpus, key=lambda gpu: gpu.t):
            if t < _FIRST_TIME_NS:  # its line's number
                return None
            first = t if first is None else first
            watts = [gpu.values.get("power_w") for gpu in seen if own in (None, gpu.device)]
            if not watts:
                continue
            if last is not None:
                if any(w is None for w in watts):
                    return None
                joules += math.fsum(w for w in watts if w is not None) * (t - last) / 1e9
            last = t
        elapsed_s = 0.0 if first is None or last is None else (last - first) / 1e9
        return Energy(joules / 1000, elapsed_s) if elapsed_s > 0 else None

    @property
    def return_code(self) -> int | str | None:
        code = (self.end or {}).get("return_code")
        return code if isinstance(code, str) or (isinstance(code, int) and abs(code) < 2**31) else None

    @property
    def train_rates(self) -> list[float]:
        return [seen.value for seen in self.said.rates.get(TRAIN, [])]

    @property
    def has_nan_loss(self) -> bool:
        return any(not math.isfinite(loss) for losses in self.said.losses.values() for loss in losses)

    @property
    def counted(self) -> bool:
        """Whether milabench's own report counts the file."""
        return bool(self.config) and self.starts == 1 and self.ends == 1

    @property
    def success(self) -> bool:
        """By milabench's own rule, which trusts an early stop whatever came after."""
        nan = any(math.isnan(loss) for losses in self.said.losses.values() for loss in losses)
        measured = self.return_code == 0 and not nan and bool(self.train_rates)
        return self.said.stopped or measured or self.has_no_log

    def time(self, event: dict[str, object] | None) -> float | None:
        """The time of its start or end event, in seconds since 1970."""
        found = (event or {}).get("time")
        return float(found) if is_number(found) and math.isfinite(found) else None


def looks_like_milabench(path: Path) -> bool:
    """Whether one of the first lines is an event of milabench; never raises."""
    try:
        with open_foreign(path, MOST_LINES_BYTES) as file:
            lines = [file.readline(1 << 20) for _ in range(_LINES_LOOKED_AT)]
    except (OSError, InvalidInput):
        return False
    return any(_event(line) is not None for line in lines)


def read_job_file(path: Path) -> JobFile:
    """InvalidInput if it cannot be read or has no line of milabench; broken lines are counted and skipped."""
    where = str(path)
    stem = path.name.removesuffix(".data").removesuffix(".txt")
    digest = hashlib.sha256()
    job = JobFile(path=where, stem=stem, digest="", changed=0.0, said=Reported(dialect=STREAM))
    known = 0
    with open_foreign(path, MOST_LINES_BYTES) as file:
        job.changed = os.fstat(file.fileno()).st_mtime
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE_BYTES), b"")):
            digest.update(line)
            if not line.strip():
                continue
            event = _event(line)
            if event is None:
                job.broken += 1
            else:
                known += 1
                _add(job, event, number)
    job.digest = digest.hexdigest()
    if not known:
        raise InvalidInput(
            "not a file of milabench: no line is an object of event, data and pipe",
            where=where,
            line=1,
            remedy="give a .data file or a replay (.txt), or a folder of them",
        )
    return job


def _add(job: JobFile, event: dict[str, object], number: int) -> None:
    kind, data = event["event"], event["data"]
    if kind in _SILENT:
        return
    about = data if isinstance(data, dict) else {}
    if kind in ("config", "meta"):
        if getattr(job, kind) is None:
            setattr(job, kind, about)
    elif kind == "message":
        text = about.get("message", data)
        found = _SKIPPED.fullmatch(text) if isinstance(text, str) else None
        if found and found[1] not in job.unmet:
            job.unmet.append(found[1])
    elif kind == "start":
        job.start, job.starts = job.start or about, job.starts + 1
    elif kind == "end":
        job.end, job.ends = job.end or about, job.ends + 1
    elif kind == "data":
        # A line without a time gets its number, so that no line looks like a repetition.
        time = about.get("time")
        add_line(
            job.said,
            {key: value for key, value in about.items() if key != "$event"},
            int(time * 1e9) if is_number(time) and abs(time) < 1e11 else number,
        )
    else:
        add_event(job.said, kind, data, number)


def _event(line: bytes) -> dict[str, object] | None:
    found: Any
    try:
        found = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            found = json.loads(line)  # a bare NaN
        except (ValueError, UnicodeDecodeError, RecursionError):
            return None
    if b"\\u" in line:
        found = writable(found)
    known = isinstance(found, dict) and found.keys() >= KEYS and isinstance(found["event"], str)
    return found if known else None
