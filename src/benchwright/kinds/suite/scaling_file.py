"""Scaling files: how much memory a benchmark needed at which batch size.

Two formats are read: `model: {batch size: memory}`, and `observations`, a list of
`{batch_size, memory, perf, cpu, time}`. A memory of null says that this size did not fit.
"""

from __future__ import annotations

from typing import Any

import msgspec

from benchwright.core.node.system import Observation, Scaling
from benchwright.kinds.text_file import Path
from benchwright.kinds.yaml.nodes import YamlFile, read_yaml
from benchwright.kinds.yaml.value_types import (
    ANYTHING,
    CAPACITY,
    PLAIN_NUMBER,
    PLAIN_TEXT,
    MapOf,
    as_text,
    check,
    parse_capacity,
    plain_list,
    plain_table,
    shown,
    whole,
)

VERSION = "version"
_NEWEST_VERSION = 2
_SOURCES = ("memory", "torchmem", "jaxmem")  # where it was not seen: what the framework says it allocated
_MEMORY = msgspec.structs.replace(CAPACITY, example="4108 MiB, or null if it did not fit")
_OBSERVATION = plain_table(
    "an observation",
    batch_size=whole(1),
    perf=PLAIN_NUMBER,
    cpu=whole(),
    time=PLAIN_NUMBER,
    **dict.fromkeys(_SOURCES, _MEMORY),
    **dict.fromkeys(("torch", "backend", "backend_version"), ANYTHING),
)
_ENTRY = plain_table(
    "a benchmark",
    arg=PLAIN_TEXT,
    model=MapOf(_MEMORY),
    observations=plain_list(_OBSERVATION),
    optimized=whole(1),
    tags=ANYTHING,
    version=ANYTHING,
)


def read_scaling(path: str) -> dict[str, Scaling]:
    """What is known of each benchmark; InvalidInput points at what is wrong."""
    file = read_yaml(path, kind="scaling file")
    check(file, MapOf(ANYTHING), "a scaling file")
    written = dict(file.value or {})
    check(file, PLAIN_NUMBER, "the version", (VERSION,))
    version = written.pop(VERSION, None)
    if version is not None and not 0 <= version <= _NEWEST_VERSION:
        raise file.error(f"version {version:g} is not known", (VERSION,), "use 1 or 2, or a newer benchwright")
    return {as_text(name): _entry(file, name, entry or {}) for name, entry in written.items()}


def _entry(file: YamlFile, name: object, entry: Any) -> Scaling:
    check(file, _ENTRY, shown(name), (name,))
    observations = [
        _observation(file, (name, "observations", n), body or {})
        for n, body in enumerate(entry.get("observations") or ())
    ]
    arg = entry.get("arg")
    return Scaling(
        observations=(*_model(file, (name, "model"), entry.get("model") or {}), *observations),
        arg=None if arg is None else as_text(arg),
        optimized=entry.get("optimized"),
    )


def _model(file: YamlFile, path: Path, model: dict[Any, Any]) -> list[Observation]:
    found = []
    for batch_size, memory in model.items():
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            what = f"'{as_text(batch_size)}' is not a batch size"
            raise file.error(what, (*path, batch_size), "write 1 or more", key=True)
        found.append(Observation(batch_size=batch_size, memory_bytes=_memory(file, (*path, batch_size), memory)))
    return sorted(found, key=lambda observation: observation.batch_size)


def _observation(file: YamlFile, path: Path, written: dict[str, Any]) -> Observation:
    if written.get("batch_size") is None:
        raise file.error("an observation without a batch_size", path, "give it one, or remove it")
    source = next((key for key in _SOURCES if written.get(key) is not None), _SOURCES[0])
    perf, time = (None if written.get(key) is None else float(written[key]) for key in ("perf", "time"))
    return Observation(
        batch_size=written["batch_size"],
        memory_bytes=_memory(file, (*path, source), written.get(source)),
        perf=perf,
        cpu=written.get("cpu"),
        time=time,
    )


def _memory(file: YamlFile, path: Path, value: object) -> int | None:
    memory_bytes = None if value is None else parse_capacity(value)
    if memory_bytes is None and value is not None:  # `All` is an amount of memory only where a device is known
        raise file.error(f"{shown(value)} is not {_MEMORY.says}", path, f"write {_MEMORY.example}")
    return memory_bytes
