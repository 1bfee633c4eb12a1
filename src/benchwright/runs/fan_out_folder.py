"""Runs that share the benchmarks of one target, one run on each node: which of them measured what.

runs/.fan-outs/<name>.<time>/
  plan.json         all that is to be measured
  allocations.json  the nodes that a scheduler lent
  measured.jsonl    one line for each part of the work, once its node has ended it
  run.json          when all of it had ended
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import msgspec

from benchwright.core.status import Status
from benchwright.runs.run_folder import RunFolder

FOLDER = ".fan-outs"
FAN_OUT, NODE = "fan_out", "node"  # labels of such a run
_FILE = "measured.jsonl"


class MeasuredPart(msgspec.Struct, frozen=True, kw_only=True):
    """Benchmarks that were measured by one run. `names`: as they were asked for; `results`: as they are called in the run, which
    differs for scripts. `lost`: their node was, so they are measured elsewhere."""

    names: tuple[str, ...]
    run: str
    node: str
    results: tuple[str, ...]
    lost: bool = False


def fan_outs(runs: Path) -> Path:
    return runs / FOLDER


def add_part(folder: str, part: MeasuredPart) -> None:
    """One write, so that workers do not get in each other's way; the line break comes first, in case one was killed."""
    handle = os.open(os.path.join(folder, _FILE), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, b"\n" + msgspec.json.encode(part))
    finally:
        os.close(handle)


def read_parts(folder: Path) -> list[MeasuredPart]:
    """The last word about each part, in the order in which they ended."""
    try:
        lines = (folder / _FILE).read_bytes().split(b"\n")
    except OSError:
        return []
    found: dict[tuple[str, ...], MeasuredPart] = {}
    for line in lines:
        try:
            part = msgspec.json.decode(line, type=MeasuredPart)
        except msgspec.MsgspecError:
            continue  # torn: whoever wrote it was killed, and the part is measured again
        if part.names not in found or found[part.names].lost:  # a part that was measured stays so
            found[part.names] = part
    return list(found.values())


def write_ended(folder: RunFolder) -> None:
    ended = datetime.now().astimezone().isoformat(timespec="seconds")
    folder.write_run({"ended": ended, "status": Status.OK.value, "results": []})
