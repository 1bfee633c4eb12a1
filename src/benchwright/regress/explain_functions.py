"""Profiles of Python functions, as cProfile writes them: each launch with the own time of its functions."""

from __future__ import annotations

import os
import pstats
import re
from pathlib import Path

from msgspec.structs import replace

from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Result
from benchwright.core.status import Status
from benchwright.kinds.function_profile import ENDING
from benchwright.regress.explain_operators import OP_TIME, OTHER

_MOST = 40  # functions of a launch; the others are summed
_LIBRARY = re.compile(r".*/(?:site-packages|lib/python[0-9.]+)/")
_BUILT_IN = re.compile(r"<(?:built-in method |method ')?(.*?)'?(?: of '(.*)' objects)?>")


def with_functions(result: Result, folder: Path, root: str) -> Result | None:
    """`result` with the profiles in `folder` for its launches; None unless there is one for each. `root`: paths are shown
    relative to it."""
    launches = [launch for path in sorted(folder.glob(f"*{ENDING}")) if (launch := _launch(path, root)) is not None]
    return replace(result, launches=tuple(launches)) if 0 < len(launches) == len(result.counted) else None


def _launch(path: Path, root: str) -> Launch | None:
    """None for a file that its program could not finish."""
    try:
        stats = pstats.Stats(str(path)).stats  # type: ignore[attr-defined]  # which is all that it documents of the file
    except (OSError, ValueError, EOFError, TypeError):
        return None
    times: dict[str, tuple[float, int]] = {}
    for (file, _, function), (_, calls, own_s, _, _) in stats.items():
        name = _name(file, function, root)
        before = times.get(name, (0.0, 0))
        times[name] = (before[0] + own_s, before[1] + calls)
    ordered = sorted(times.items(), key=lambda each: (-each[1][0], each[0]))
    rest = sum(seconds for _, (seconds, _) in ordered[_MOST:])
    found = [_measured(name, seconds, str(calls)) for name, (seconds, calls) in ordered[:_MOST]]
    found += [_measured(OTHER, rest, "")] if len(ordered) > _MOST else []
    return Launch(job=path.stem, status=Status.OK, measurements=tuple(found))


def _measured(name: str, seconds: float, calls: str) -> Measurement:
    return Measurement(
        metric=OP_TIME,
        unit="s",
        direction=Direction.LOWER,
        samples=(seconds,),
        source="model",
        labels={"op": name, "calls": calls},
    )


def _name(file: str, function: str, root: str) -> str:
    """The same on both sides, whose folders differ, and after lines were moved: `pkg/module.py:function`."""
    if file == "~":
        found = _BUILT_IN.fullmatch(function)
        if found is None:
            return function
        return f"{found[2]}.{found[1]}" if found[2] else str(found[1])
    if found := _LIBRARY.match(file):
        return f"{file[found.end() :]}:{function}"
    inner = os.path.relpath(file, root) if os.path.isabs(file) else file
    return f"{os.path.basename(file) if inner.startswith('..') else inner}:{function}"
