"""The output of measured programs, kept with the run: raw while a job runs, compressed afterwards.

Data lines that a program hid in it are left out: they are in the job's stream.
"""

from __future__ import annotations

import time
import zlib
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.hidden_lines import HiddenLines
from benchwright.core.private_files import not_through_a_link
from benchwright.core.run import Run
from benchwright.core.secrets import redact_text
from benchwright.core.status import Reason, Status
from benchwright.plan.file_names import safe_name
from benchwright.runs.run_folder import RunFolder

DISCOVERY = "discovery"  # in a run's folder: output of the scripts, and the models found in them
_BLOCK_BYTES = 1 << 16
_POLL_S = 0.2
_KEPT_LINES = 200  # of each failed launch, in a store
_MOST_KEPT = 8 << 20  # characters of one run
# A script may fail so while its models are looked for.
OF_SCRIPTS = (Reason.CRASHED, Reason.TIMED_OUT, Reason.OUT_OF_MEMORY, Reason.SIGNALLED)


class Log(msgspec.Struct, frozen=True):
    job: str
    path: str

    @property
    def compressed(self) -> bool:
        return self.path.endswith(".gz")


def logs_in(folder: Path) -> list[Log]:
    """Every log of a run, in the order of writing. A link is none: it may lead to a file that is nobody else's business."""
    found: dict[str, Path] = {}
    for path in folder.iterdir():
        for suffix in (".log", ".log.gz"):
            if path.name.endswith(suffix) and path.is_file() and not path.is_symlink():
                job = path.name[: -len(suffix)]
                if (
                    suffix == ".log" or job not in found
                ):  # both exist: compressing was interrupted, and the raw one is complete
                    found[job] = path
    return [Log(job, str(p)) for job, p in sorted(found.items(), key=lambda item: item[1].stat().st_mtime_ns)]


def choose_logs(folder: Path, bench: str | None) -> list[Log]:
    """The logs of one benchmark or job, or those of searching scripts for models if it has no other; InvalidInput for none."""
    searched = logs_in(folder / DISCOVERY) if (folder / DISCOVERY).is_dir() else []
    logs = logs_in(folder) or searched
    if bench is None:
        if not logs:
            raise InvalidInput(
                f"{folder.name} has no logs", remedy="either --discard-logs was given, or no program of it was started"
            )
        return logs
    chosen = _of(bench, logs) or _of(bench, searched)
    if not chosen:
        known = {log.job for log in logs}
        remedy = did_you_mean(bench, known) or f"it has {', '.join(sorted(known)[:8]) or 'none'}"
        raise InvalidInput(f"{folder.name} has no log of '{bench}'", remedy=remedy)
    return chosen


def _of(bench: str, logs: list[Log]) -> list[Log]:
    return [log for log in logs if log.job == bench or log.job.startswith(bench + ".")]


def read_log(log: Log) -> Iterator[bytes]:
    """The log in blocks; a truncated or damaged compressed log is read as far as possible."""
    import gzip

    hidden = HiddenLines()
    with ExitStack() as stack:
        raw = stack.enter_context(open(log.path, "rb", opener=not_through_a_link))
        handle = stack.enter_context(gzip.GzipFile(fileobj=raw)) if log.compressed else raw
        try:
            while block := handle.read(_BLOCK_BYTES):
                yield hidden.feed(block)[0]
        except (EOFError, gzip.BadGzipFile, zlib.error):
            pass
    yield hidden.close()


def tail_of(log: Log, lines: int, most_bytes: int = 1 << 20) -> list[bytes]:
    """The last lines, with their line ends."""
    kept: deque[bytes] = deque()
    size = 0
    for block in read_log(log):
        kept.append(block)
        size += len(block)
        while size - len(kept[0]) > most_bytes:
            size -= len(kept.popleft())
    whole = b"".join(kept).splitlines(keepends=True)
    return whole[len(whole) - min(lines, len(whole)) :]


def tail_texts(folder: Path, jobs: Collection[str], lines: int) -> dict[str, list[str]]:
    """The last lines that each of these jobs printed, as text; jobs whose log is gone or empty are left out."""
    try:
        found = {log.job: _text(log, lines) for log in logs_in(folder) if log.job in jobs} if jobs else {}
    except (OSError, ValueError):  # it is elsewhere, or its name cannot be a path
        return {}
    return {job: found[job] for job in jobs if found.get(job)}


def failure_logs(run: Run) -> dict[str, list[str]]:
    """The last lines that each failed launch printed, without secrets, by job; those of scripts that failed in `script_tails`, too.

    They go into a store, where others see them. Of very many the first: at most 8 MiB.
    """
    failed = [x.job for r in run.results for x in r.launches if x.status is Status.FAILED]
    folder, found, size = Path(run.folder), {}, 0
    for job, lines in (tail_texts(folder, failed, _KEPT_LINES) | script_tails(run, _KEPT_LINES)).items():
        size += sum(map(len, lines)) + len(lines)
        if size > _MOST_KEPT:
            break
        found[job] = [redact_text(line) for line in lines]
    return found


def script_tails(run: Run, lines: int) -> dict[str, list[str]]:
    """The last lines of scripts that failed while their models were looked for, by the name of the benchmark."""
    found = {}
    for name in [r.benchmark.name for r in run.results if not r.launches and r.reason in OF_SCRIPTS]:
        job = f"{safe_name(name)}.D0"
        if texts := tail_texts(Path(run.folder) / DISCOVERY, [job], lines):
            found[name] = texts[job]
    return found


def _text(log: Log, lines: int) -> list[str]:
    decoded = [line.decode("utf-8", "replace").rstrip("\r\n") for line in tail_of(log, lines, 1 << 16)]
    return ["".join(c if c.isprintable() else " " for c in line.rsplit("\r", 1)[-1]) for line in decoded]


def follow_log(folder: RunFolder, log: Log) -> Iterator[bytes]:
    """A raw log from its beginning, followed until the run ends or the log is compressed."""
    path = Path(log.path)
    hidden = HiddenLines()
    with open(path, "rb", opener=not_through_a_link) as handle:
        while True:
            busy = folder.is_busy()  # checked before reading, so that the last output is not missed
            block = handle.read(_BLOCK_BYTES)
            if block:
                yield hidden.feed(block)[0]
            elif not busy or not path.exists():
                yield hidden.close()
                return
            else:
                time.sleep(_POLL_S)
