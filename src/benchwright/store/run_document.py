"""Splitting a run into a document and its samples for the store, and joining them again."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from benchwright.core.measurement import Measurement
from benchwright.core.results.stored_run import stored_run
from benchwright.core.run import Launch, Run

ENCODING = "json-zlib"
Place = tuple[int, int, int]  # which result of the run, which launch of that, which measurement of that


class RunSamples(msgspec.Struct, frozen=True):
    warmup: tuple[float, ...]
    measured: tuple[float, ...]


class DamagedDocument(ValueError):
    """The stored document is not a run."""


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


def unpack_document(data: bytes, encoding: str, samples: Mapping[Place, RunSamples]) -> Run:
    """The run with its samples; DamagedDocument if the two do not fit together."""
    if encoding != ENCODING:
        raise DamagedDocument(f"has the unknown encoding '{encoding}'")

    def whole(place: Place, measurement: Measurement) -> Measurement:
        return replace(measurement, samples=samples[place].measured, warmup_samples=samples[place].warmup)

    def finished(run: Run) -> Run:
        expected = {place for place, _, _ in measurements_of(run)}
        if expected != samples.keys():
            raise DamagedDocument(f"has {len(expected)} measurements, but {len(samples)} have samples")
        return _rebuilt(run, measurement=whole, facts=_unmark)

    try:
        return stored_run(json.loads(zlib.decompress(data)), finish=finished)
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
