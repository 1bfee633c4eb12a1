"""Scaling files: how much memory a benchmark needed at which batch size.

Two formats are read: `model: {batch size: memory}`, and `observations`, a list of
`{batch_size, memory, perf, cpu, time}`. A memory of null says that this size did not fit.
"""

from __future__ import annotations

from benchwright.core.errors import InvalidInput
from benchwright.core.node.system import Observation, Scaling
from benchwright.kinds.suite.yaml.checked_values import CheckedValues, parse_capacity, shown
from benchwright.kinds.suite.yaml.nodes import Path, YamlFile, read_yaml

VERSION = "version"
ENTRY_KEYS = ("arg", "model", "observations", "optimized", "tags", VERSION)
OBSERVATION_KEYS = ("batch_size", "memory", "perf", "cpu", "time")
_ALLOCATOR_KEYS = ("torchmem", "jaxmem")  # what the framework says it allocated, where `memory` was not seen
_SOFTWARE_KEYS = ("torch", "backend", "backend_version")
_NEWEST_VERSION = 2


def read_scaling(path: str) -> dict[str, Scaling]:
    """What is known of each benchmark; InvalidInput points at what is wrong."""
    return _ScalingFile(read_yaml(path, kind="scaling file")).read()


class _ScalingFile:
    def __init__(self, file: YamlFile) -> None:
        self._file = file
        self._values = CheckedValues(file)

    def read(self) -> dict[str, Scaling]:
        version = self._values.number((VERSION,), "the version")
        if version is not None and not 0 <= version <= _NEWEST_VERSION:
            raise self._file.error(
                f"version {version:g} is not known", (VERSION,), "use 1 or 2, or a newer benchwright"
            )
        entries = self._values.mapping((), "a scaling file")
        return {shown(name): self._entry((name,)) for name in entries if name != VERSION}

    def _entry(self, path: Path) -> Scaling:
        self._values.mapping(path, f"'{shown(path[0])}'", ENTRY_KEYS)
        return Scaling(
            observations=(*self._model((*path, "model")), *self._observations((*path, "observations"))),
            arg=self._values.text((*path, "arg"), "arg"),
            optimized=self._values.whole((*path, "optimized"), "optimized", least=1),
        )

    def _model(self, path: Path) -> list[Observation]:
        found = []
        for batch_size, memory in self._values.mapping(path, "model").items():
            if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
                raise self._file.error(
                    f"'{shown(batch_size)}' is not a batch size", (*path, batch_size), "write 1 or more", key=True
                )
            memory_bytes = self._memory(memory, (*path, batch_size))
            found.append(Observation(batch_size=batch_size, memory_bytes=memory_bytes))
        return sorted(found, key=lambda observation: observation.batch_size)

    def _observations(self, path: Path) -> list[Observation]:
        return [self._observation((*path, n)) for n, _ in enumerate(self._values.items(path, "observations"))]

    def _observation(self, path: Path) -> Observation:
        values = self._values
        known = (*OBSERVATION_KEYS, *_ALLOCATOR_KEYS, *_SOFTWARE_KEYS)
        written = values.mapping(path, "an observation", known)
        batch_size = values.whole((*path, "batch_size"), "batch_size", least=1)
        if batch_size is None:
            raise self._file.error("an observation without a batch_size", path, "give it one, or remove it")
        source = next((key for key in ("memory", *_ALLOCATOR_KEYS) if written.get(key) is not None), "memory")
        return Observation(
            batch_size=batch_size,
            memory_bytes=self._memory(written.get(source), (*path, source)),
            perf=values.number((*path, "perf"), "perf"),
            cpu=values.whole((*path, "cpu"), "cpu"),
            time=values.number((*path, "time"), "time"),
        )

    def _memory(self, value: object, path: Path) -> int | None:
        if value is None:
            return None
        try:
            memory_bytes = parse_capacity(value)
        except InvalidInput as error:
            raise self._file.error(error.what, path, "write 4108 MiB, or null if it did not fit") from None
        if memory_bytes is None:
            raise self._file.error(f"'{shown(value)}' is not an amount of memory", path, "write 4108 MiB")
        return memory_bytes
