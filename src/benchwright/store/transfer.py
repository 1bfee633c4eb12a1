"""A run on its way between a client and a server, packed as the store keeps it.

    BWRUN1\\n      then the length of the head, 8 bytes, big-endian
    head          JSON: digest, annotation, and the size, encoding and checksum of each array
    document      the run without its samples
    arrays        one after the other

Several runs follow one another. What is received stays in its file; only one array at a time is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, BinaryIO, Self

import msgspec
from msgspec import Meta

from benchwright.core.measurement import in_order
from benchwright.core.run import Run
from benchwright.store.base import StoreEntry
from benchwright.store.run_document import (
    ENCODING,
    PackedArray,
    folder_bytes,
    matched,
    measurements_of,
    pack_document,
    plain,
    unpack_bare,
    unpack_document,
)
from benchwright.store.samples import checksum, pack

MAGIC = b"BWRUN1\n"
MOST_BYTES = 256 << 20  # of one request
MOST_DOCUMENT_BYTES = 64 << 20  # unpacked
MOST_HEAD_BYTES = 32 << 20
MOST_ARRAY_SAMPLES = 1 << 25
MOST_SAMPLES = 1 << 27  # of one request: small arrays may unpack to a thousand times their size
_LENGTH_BYTES = 8
Size = Annotated[int, Meta(ge=0, lt=1 << 40)]


class DamagedTransfer(ValueError):
    """The data that arrived is no run of ours, or only a part of one."""


class ArrayHead(msgspec.Struct, frozen=True, array_like=True):
    """See `PackedArray`."""

    result: Size
    launch: Size
    measurement: Size
    warmup_samples: Size
    samples: Size
    size_bytes: Size
    encoding: str
    checksum: int

    @classmethod
    def of(cls, row: PackedArray) -> Self:
        return cls(*(getattr(row, name) for name in cls.__struct_fields__))


class RunHead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`folder_bytes`: the files of the run's folder, which only its own machine sees. The annotation and the logs are as in `StoreEntry`."""

    digest: str
    document_bytes: Size
    arrays: list[ArrayHead]
    encoding: str = ENCODING
    folder_bytes: Annotated[int, Meta(ge=0, lt=1 << 62)] = 0
    annotation: str | msgspec.UnsetType | None = msgspec.UNSET
    logs: dict[str, list[str]] = {}


def framed(head: RunHead) -> Iterator[bytes]:
    """The header in front of the document."""
    body = msgspec.json.encode(head)
    yield MAGIC + len(body).to_bytes(_LENGTH_BYTES, "big")
    yield body


def packed_entry(entry: StoreEntry) -> list[bytes]:
    """A run to be sent."""
    heads: list[ArrayHead] = []
    arrays: list[bytes] = []
    for place, _, measurement in measurements_of(entry.run):
        packed = pack(in_order(measurement))
        counts = len(measurement.warmup_samples), len(measurement.samples)
        heads.append(ArrayHead(*place, *counts, len(packed.data), packed.encoding, checksum(packed.data)))
        arrays.append(packed.data)
    document = pack_document(entry.run)
    said = entry.annotation
    head = RunHead(
        digest=plain(entry.digest),
        document_bytes=len(document),
        arrays=heads,
        folder_bytes=folder_bytes(entry.run),
        annotation=plain(said) if isinstance(said, str) else said,
        logs={plain(job): [plain(line) for line in lines] for job, lines in entry.logs.items()},
    )
    return [*framed(head), document, *arrays]


class ReceivedRun(msgspec.Struct, frozen=True):
    """A run that arrived. `run` has no samples; they are in `file`, from `start` on."""

    head: RunHead
    run: Run
    document: bytes
    file: Any
    start: int

    @property
    def uid(self) -> str:
        return plain(self.run.unique_id)

    def arrays(self) -> Iterator[bytes]:
        at = self.start
        for array in self.head.arrays:
            self.file.seek(at)
            yield self.file.read(array.size_bytes)
            at += array.size_bytes

    def pieces(self, size: int) -> Iterator[dict[str, Any]]:
        """All arrays, cut into rows of that many bytes."""
        total = sum(array.size_bytes for array in self.head.arrays)
        for number, at in enumerate(range(0, total, size)):
            self.file.seek(self.start + at)
            yield {"piece": number, "data": self.file.read(min(size, total - at))}


def received_runs(file: BinaryIO, size_bytes: int) -> list[ReceivedRun]:
    """The runs in a file of that size; DamagedTransfer or DamagedDocument unless it holds nothing else."""
    found: list[ReceivedRun] = []
    at = samples = 0
    while at < size_bytes:
        file.seek(at)
        head = _read_head(file.read)
        document = _exactly(file.read, head.document_bytes)
        start = file.tell()
        at = start + sum(array.size_bytes for array in head.arrays)
        if at > size_bytes:
            raise DamagedTransfer("it ends too early")
        counts = [array.warmup_samples + array.samples for array in head.arrays]
        samples += sum(counts)
        if samples > MOST_SAMPLES or max(counts, default=0) > MOST_ARRAY_SAMPLES:
            raise DamagedTransfer(f"it has more than {MOST_SAMPLES:,} samples, or {MOST_ARRAY_SAMPLES:,} in one array")
        run = unpack_bare(document, head.encoding, most_bytes=MOST_DOCUMENT_BYTES)
        if [place for place, _, _ in measurements_of(run)] != [
            (a.result, a.launch, a.measurement) for a in head.arrays
        ]:
            raise DamagedTransfer("its arrays are not those of its measurements")
        found.append(ReceivedRun(head, run, document, file, start))
    return found


def next_run(read: Callable[[int], bytes]) -> Run | None:
    """The next run of an answer; None after the last one. DamagedTransfer, DamagedDocument, DamagedSamples."""
    first = read(1)
    if not first:
        return None
    head = _read_head(lambda size: first + read(size - 1) if size == len(MAGIC) else read(size))
    document = _exactly(read, head.document_bytes)
    arrays = _exactly(read, sum(array.size_bytes for array in head.arrays))
    return unpack_document(document, head.encoding, matched(head.arrays, arrays))


def _read_head(read: Callable[[int], bytes]) -> RunHead:
    magic = read(len(MAGIC))
    if magic != MAGIC:
        if magic[:5] == MAGIC[:5]:
            raise DamagedTransfer(
                f"it has format {magic[5:6]!r}; known is {MAGIC[5:6]!r}: one side is of another version"
            )
        raise DamagedTransfer("it is no run")
    size = int.from_bytes(_exactly(read, _LENGTH_BYTES), "big")
    if size > MOST_HEAD_BYTES:
        raise DamagedTransfer("its head is too large")
    try:
        return msgspec.json.decode(_exactly(read, size), type=RunHead)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DamagedTransfer(f"its head cannot be read: {error}") from None


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    data = read(size) if size else b""
    if len(data) != size:
        raise DamagedTransfer("it ends too early")
    return data
