"""Splitting a run into a document and its samples for the store, and joining them again."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from benchwright.core.measurement import Measurement
from benchwright.core.run import Launch, Run
from benchwright.core.stored_run import stored_run
from benchwright.store.samples import DamagedSamples, Packed, checksum, unpack_column

ENCODING = "json-zlib"
Place = tuple[int, int, int]  # which result of the run, which launch of that, which measurement of that


class RunSamples(msgspec.Struct, frozen=True):
    warmup: tuple[float, ...]
    measured: tuple[float, ...]


class DamagedDocument(ValueError):
    """The stored document is not a run."""


class PackedArray(Protocol):
    """The array of one measurement, among those of its run: a row of `measurements`, or its copy on the way to a server."""

    @property
    def result(self) -> int: ...
    @property
    def launch(self) -> int: ...
    @property
    def measurement(self) -> int: ...
    @property
    def warmup_samples(self) -> int: ...
    @property
    def samples(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def encoding(self) -> str: ...
    @property
    def checksum(self) -> int: ...


def measurements_of(run: Run) -> Iterator[tuple[Place, Launch, Measurement]]:
    for r, result in enumerate(run.results):
        for x, launch in enumerate(result.launches):
            for m, measurement in enumerate(launch.measurements):
                yield (r, x, m), launch, measurement


def pack_document(run: Run) -> bytes:
    """The run without its samples.

    Python's own JSON: it keeps NaN, infinities, integers of any size and text that is not valid Unicode, all of which a
    program may put into its facts.
    """

    def bare(_: Place, measurement: Measurement) -> Measurement:
        return replace(measurement, samples=(), warmup_samples=())

    body = msgspec.to_builtins(_rebuilt(run, measurement=bare, facts=_mark))
    return zlib.compress(json.dumps(body, separators=(",", ":")).encode(), level=1)


def unpack_array(array: PackedArray, data: bytes) -> RunSamples:
    """DamagedSamples unless `data` is what was packed."""
    values, warmup = tuple(unchanged_column(array, data)), array.warmup_samples
    return RunSamples(values[:warmup], values[warmup:]) if warmup else RunSamples((), values)


def unchanged_column(array: PackedArray, data: bytes) -> Sequence[float]:
    """The same, warm-up first, in less memory."""
    if checksum(data) != array.checksum:
        raise DamagedSamples("its samples have changed since they were stored")
    return unpack_column(Packed(array.encoding, data), array.warmup_samples + array.samples)


def unpacked(rows: Iterable[PackedArray], arrays: bytes) -> Iterator[tuple[Place, RunSamples | DamagedSamples]]:
    """The samples of each measurement, or what is wrong with them."""
    view, start = memoryview(arrays), 0
    for m in rows:
        data = bytes(view[start : start + m.size_bytes])
        start += m.size_bytes
        place = (m.result, m.launch, m.measurement)
        try:
            yield place, unpack_array(m, data)
        except DamagedSamples as error:
            yield place, error


def matched(rows: Sequence[PackedArray], arrays: bytes) -> dict[Place, RunSamples]:
    """DamagedSamples if the arrays do not match the measurements exactly."""
    found: dict[Place, RunSamples] = {}
    for place, samples in unpacked(rows, arrays):
        if isinstance(samples, DamagedSamples):
            raise samples
        found[place] = samples
    expected = sum(row.size_bytes for row in rows)
    if expected != len(arrays):
        raise DamagedSamples(f"its arrays have {len(arrays)} bytes instead of {expected}")
    return found


def unpack_bare(data: bytes, encoding: str, *, most_bytes: int) -> Run:
    """The run without its samples, from somebody who is not trusted; DamagedDocument also if it is larger than that."""
    return _read_document(data, encoding, lambda run: _rebuilt(run, measurement=_same, facts=_unmark), most_bytes)


def _same(_: Place, measurement: Measurement) -> Measurement:
    return measurement


def unpack_document(data: bytes, encoding: str, samples: Mapping[Place, RunSamples]) -> Run:
    """The run with its samples; DamagedDocument if the two do not fit together."""

    def whole(place: Place, measurement: Measurement) -> Measurement:
        return replace(measurement, samples=samples[place].measured, warmup_samples=samples[place].warmup)

    def finished(run: Run) -> Run:
        expected = {place for place, _, _ in measurements_of(run)}
        if expected != samples.keys():
            raise DamagedDocument(f"has {len(expected)} measurements, but {len(samples)} have samples")
        return _rebuilt(run, measurement=whole, facts=_unmark)

    return _read_document(data, encoding, finished, 0)


def _read_document(data: bytes, encoding: str, finish: Callable[[Run], Run], most_bytes: int) -> Run:
    """`most_bytes`: how large it may be; 0 for any size."""
    if encoding != ENCODING:
        raise DamagedDocument(f"has the unknown encoding '{encoding}'")
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(data, most_bytes)
        if unpacking.unconsumed_tail:
            raise DamagedDocument(f"is larger than {most_bytes >> 20} MiB")
        if not unpacking.eof:
            raise DamagedDocument("is cut off")
        return stored_run(json.loads(text), finish=finish)
    except DamagedDocument:
        raise
    except (zlib.error, ValueError, RecursionError) as error:  # Unreadable is a ValueError
        raise DamagedDocument(f"cannot be read: {error}") from error


def _rebuilt(
    run: Run, *, measurement: Callable[[Place, Measurement], Measurement], facts: Callable[[object], object]
) -> Run:
    def launch(r: int, x: int, old: Launch) -> Launch:
        changed = tuple(measurement((r, x, m), old_one) for m, old_one in enumerate(old.measurements))
        return replace(old, measurements=changed, facts=facts(old.facts))

    results = tuple(
        replace(result, launches=tuple(launch(r, x, old) for x, old in enumerate(result.launches)))
        for r, result in enumerate(run.results)
    )
    return replace(run, results=results)


def hash_of(*parts: object) -> str:
    """A key of fixed length, to look up texts of any length."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def plain(text: str) -> str:
    """Text that every database can store: without NUL and lone surrogates. The document has the original."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def labels_json(labels: Mapping[str, str]) -> str:
    """For columns that are searched, so without escapes."""
    return json.dumps({plain(k): plain(v) for k, v in labels.items()}, sort_keys=True, ensure_ascii=False)


def folder_bytes(run: Run) -> int:
    """The size of the run's own folder; 0 if it is not on this machine. An imported run has none: it names a foreign file."""
    if os.path.basename(run.folder) != run.id:
        return 0
    try:
        with os.scandir(run.folder) as entries:
            return sum(e.stat(follow_symlinks=False).st_size for e in entries if e.is_file(follow_symlinks=False))
    except (OSError, ValueError):
        return 0


_TUPLE = "__tuple__"


def _mark(value: object) -> object:
    """Nothing in the facts' type tells a tuple from a list, so tuples are marked."""
    if isinstance(value, dict):
        return {k: _mark(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return {_TUPLE: [_mark(v) for v in value]}
    return [_mark(v) for v in value] if isinstance(value, list) else value


def _unmark(value: object) -> object:
    if isinstance(value, dict):
        if value.keys() == {_TUPLE} and isinstance(value[_TUPLE], list):
            return tuple(_unmark(v) for v in value[_TUPLE])
        return {k: _unmark(v) for k, v in value.items()}
    return [_unmark(v) for v in value] if isinstance(value, list) else value
