"""Adds observed memory use by batch size to a scaling file, from which later runs choose their batch sizes.

Works with files of both formats. Everything in them is kept except comments, since the file is rewritten.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from benchwright.core.errors import InvalidInput
from benchwright.core.stored_file import read_stored
from benchwright.core.system import Observation
from benchwright.core.whole_file import alone_in, unwritable, write_whole

_MIB = 1 << 20
_NO_WRAPPING = 1 << 20


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of saving the file."""

    path: Path
    observations: int
    lost_comments: bool = False  # the file had comments, which are gone


def add_observations(path: str | os.PathLike[str], found: Mapping[str, Sequence[Observation]]) -> Saved:
    """Adds to each benchmark's `observations`, sorted by batch size. Of two for the same batch size and number of CPUs, the
    newer stays. Creates the file if needed; it is complete at every moment."""
    target = Path(os.path.realpath(Path(path).expanduser()))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with alone_in(target.parent):
            text = _text(target, os.fspath(path))
            content = _parsed(text, target)
            for benchmark, observations in found.items():
                _add(content, benchmark, observations, target)
            write_whole(target, _dumped(content).encode())
    except UnicodeDecodeError:
        raise InvalidInput("is not UTF-8 text", where=str(target), remedy="name a scaling file") from None
    except OSError as error:
        raise unwritable(target, error) from error
    return Saved(
        path=target,
        observations=sum(map(len, found.values())),
        lost_comments=any(line.lstrip().startswith("#") for line in text.splitlines()),
    )


def _text(path: Path, named: str) -> str:
    if path.exists() and not path.is_file():
        raise InvalidInput("is not a file", where=named, remedy="name a scaling file")
    return read_stored(path).decode() if path.exists() else ""


def _parsed(text: str, path: Path) -> dict[object, object]:
    try:
        content = yaml.load(text, Loader=_LOADER)  # noqa: S506 a safe one
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
        what = f"is not YAML: {getattr(error, 'problem', None) or 'it cannot be read'}"
        raise InvalidInput(what, where=str(path), line=line, column=column, remedy="correct it") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InvalidInput("is not a scaling file", where=str(path), remedy="name another, or one that does not exist")
    return content


def _add(content: dict[object, object], benchmark: str, found: Sequence[Observation], path: Path) -> None:
    entry = content.setdefault(benchmark, {})
    if entry is None:
        entry = content[benchmark] = {}
    if not isinstance(entry, dict):
        raise InvalidInput(f"'{benchmark}' is not a map", where=str(path), remedy="correct it")
    before = entry.get("observations") or []
    if not isinstance(before, list) or not all(isinstance(one, dict) for one in before):
        raise InvalidInput(f"the observations of '{benchmark}' are not a list of maps", where=str(path), remedy="correct it")  # fmt: skip
    kept: dict[tuple[str, str], dict[object, object]] = {}
    for one in [*before, *map(_written, found)]:
        key = (repr(one.get("batch_size")), repr(one.get("cpu")))
        if key not in kept or not _is_older(one, kept[key]):
            kept[key] = one
    entry["observations"] = [_Line(one) for one in sorted(kept.values(), key=_order)]


def _written(observation: Observation) -> dict[str, object]:
    """With the keys of the file. A memory of null means that it did not fit."""
    memory = observation.memory_bytes
    fields = {
        "batch_size": observation.batch_size,
        "cpu": observation.cpu,
        "memory": None if memory is None else f"{round(memory / _MIB, 3):.12g} MiB",
        "perf": None if observation.perf is None else float(f"{observation.perf:.6g}"),
        "time": None if observation.time is None else int(observation.time),
    }
    return {name: value for name, value in fields.items() if value is not None or name == "memory"}


def _is_older(one: Mapping[object, object], other: Mapping[object, object]) -> bool:
    """Without times, what comes later in the file is newer."""
    when, then = one.get("time"), other.get("time")
    return isinstance(when, int | float) and isinstance(then, int | float) and when < then


def _order(one: Mapping[object, object]) -> tuple[float, float]:
    size, cpu = (one.get(name) for name in ("batch_size", "cpu"))
    return (size if isinstance(size, int) else 0, cpu if isinstance(cpu, int) else 0)


class _Line(dict[Any, Any]):
    """A map that is written on one line."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    _Line, lambda dumper, line: dumper.represent_mapping("tag:yaml.org,2002:map", line, flow_style=True)
)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _dumped(content: dict[object, object]) -> str:
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_NO_WRAPPING)
    return text
