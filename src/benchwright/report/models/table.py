"""The table of one model, as texts: which columns it needs and what stands in them, whatever the format."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchwright.core.model import PRECISIONS
from benchwright.core.numbers.quantities import format_prefixed
from benchwright.core.run import Result
from benchwright.core.status import Reason, Status
from benchwright.report.models.columns import Cell, value_columns
from benchwright.report.models.rows import ModelGroup, ModelRow
from benchwright.report.score.screen import NONE
from benchwright.report.text.columns import Column

SHOWN_DIGITS = 8  # of an identity
_MOST_IDENTITIES = 3
_SHORT_HEADS = {"batch_size": "batch"}
_PLAIN_HEADS = ("runtime", "device", "precision", "inputs", "model")  # what stands below says enough


class TableLine(msgspec.Struct, frozen=True, kw_only=True):
    """`index` says which row it is; then come either its `values` or, if it has none, what is the `trouble`."""

    row: ModelRow
    index: tuple[str, ...]
    values: tuple[str, ...] = ()
    trouble: str | None = None


class ModelTable(msgspec.Struct, frozen=True, kw_only=True):
    """Columns that every row leaves empty are not there."""

    heading: tuple[str, ...]
    index: tuple[Column, ...]
    values: tuple[Column, ...]
    lines: tuple[TableLine, ...]


def model_table(group: ModelGroup) -> ModelTable:
    index = _index_columns(group.rows)
    numbered = [row for row in group.rows if row.measured]
    values = [(column, cells) for column, cells in value_columns(numbered) if any(cells)]
    of_row = {
        row.number: tuple(cells[i] or NONE for _, cells in values) for i, row in enumerate(numbered)
    }  # a hole is marked: nothing was forgotten there
    lines: list[TableLine] = []
    for row in group.rows:
        words = tuple(cell(row) for _, cell in index)
        trouble = trouble_words(row.result, row.measured)
        if trouble is not None:
            lines.append(TableLine(row=row, index=words, trouble=trouble))
        if row.measured:
            lines.append(TableLine(row=row, index=words, values=of_row[row.number]))
    return ModelTable(
        heading=heading(group),
        index=tuple(column for column, _ in index),
        values=tuple(column for column, _ in values),
        lines=tuple(lines),
    )


def heading(group: ModelGroup) -> tuple[str, ...]:
    """`bert.py`, `BertModel`, `109.5 M parameters`, `22.4 GFLOP`, `(bert.py:21)`, `8c1f02aa`."""
    row = group.every[0]
    model = row.model
    shown = [identity[:SHOWN_DIGITS] for identity in group.identities]
    if _needs_identity(group.rows):
        shown = []
    elif len(shown) > _MOST_IDENTITIES:
        shown = [*shown[:1], f"and {len(shown) - 1} more"]
    parts = (
        group.source,
        model.class_ if model.class_ != group.source else "",
        count_words(row.parameter_count) + " parameters" if row.parameter_count else "",
        _flops_words(group.every),
        f"({model.place})" if model.place else "",
        " ".join(shown),
        *_common(group.rows),
    )
    return tuple(filter(None, parts))


def count_words(count: int) -> str:
    """`1,433`, `109.5 M`, `7.24 B`."""
    if count < 100_000:
        return f"{count:,}"
    scaled, letter = (count / 1e6, "M") if count < 999.95e6 else (count / 1e9, "B")
    return f"{scaled:.4g} {letter}"


def trouble_words(result: Result, measured: bool) -> str | None:
    """Why there are no numbers, or not of all launches; None if all is well."""
    if result.status is Status.OK:
        return None
    if result.status in (Status.INTERRUPTED, Status.PENDING):
        done = len(result.counted)
        return f"interrupted, {done} launches done" if done else "not measured yet"
    if result.benchmark.withheld is not None:
        return f"not measured: {result.benchmark.withheld}"
    if result.status is Status.SKIPPED:
        return f"skipped: {result.detail or (result.reason.value if result.reason else '')}"
    detail = result.detail or ""
    stage = detail.startswith("in ")
    reason = f" {result.reason.value.replace('_', ' ')}" if result.reason and not stage else ""
    failed = sum(1 for x in result.launches if not x.warmup and x.status is Status.FAILED)
    of = f" ({failed} of {failed + len(result.counted)} launches failed)" if measured or result.counted else ""
    wrong = " of the check" if result.reason is Reason.INVALID and not detail else ""
    return f"FAILED{reason} {detail}{wrong}{of}" if stage else f"FAILED{reason}: {detail}{wrong}{of}"


def row_label(line: TableLine, made: ModelTable) -> str:
    """`batch 8 onnxruntime bf16`: what tells it from the others."""
    pairs = zip(made.index, line.index, strict=True)
    words = (word if c.head in _PLAIN_HEADS else f"{c.head} {word}" for c, word in pairs if word)
    return " ".join(words) or line.row.model.identity[:SHOWN_DIGITS]


def profile_words(row: ModelRow, beside: Sequence[ModelRow] = ()) -> str:
    """`torch-eager on cpu in fp32, batch_size=8, 8×128`: which row of its model a profile is of, among those `beside`."""
    model = row.model
    point = [f"{name}={value}" for name, value in row.result.benchmark.parameters.items()]
    shapes = [_inputs(row)] if _shapes_differ(beside) else []
    identity = [model.identity[:SHOWN_DIGITS]] if _needs_identity(beside) else []
    return ", ".join([f"{model.runtime} on {model.device} in {row.precision}", *point, *shapes, *identity])


def _flops_words(rows: Sequence[ModelRow]) -> str:
    """Of a call; of an item where calls differ in their batch; nothing where that differs as well."""
    for flops, unit in (
        ([row.flops for row in rows], "FLOP"),
        ([row.flops_per_item for row in rows], "FLOP an item"),
    ):
        words = {format_prefixed(f, unit) for f in flops if f is not None}
        if len(words) == 1:
            return words.pop()
    return ""


def _index_columns(rows: Sequence[ModelRow]) -> list[tuple[Column, Cell]]:
    """Parameters that were asked for, then runtime; device, precision, inputs and identity only where they differ."""
    names = list(dict.fromkeys(name for row in rows for name in row.result.benchmark.parameters))
    found: list[tuple[Column, Cell]] = [(Column(_SHORT_HEADS.get(name, name)), _parameter(name)) for name in names]
    if _shapes_differ(rows):
        found.append((Column("inputs"), _inputs))
    if _needs_identity(rows):
        found.append((Column("model"), lambda row: row.model.identity[:SHOWN_DIGITS]))
    tried = [row for row in rows if row.result.benchmark.withheld is None]
    found.append((Column("runtime"), _where_tried(lambda row: row.model.runtime)))
    if len({row.model.device for row in tried}) > 1:
        found.append((Column("device"), _where_tried(lambda row: row.model.device)))
    if len({row.precision for row in tried}) > 1:
        found.append((Column("precision"), _where_tried(lambda row: row.precision)))
    return [(column, cell) for column, cell in found if any(map(cell, rows))]


def _common(rows: Sequence[ModelRow]) -> list[str]:
    """`on cuda`, `in bf16`: what is the same for all rows, and not the usual."""
    tried = [row for row in rows if row.result.benchmark.withheld is None]
    devices, precisions = {row.model.device for row in tried}, {row.precision for row in tried}
    words = [f"on {device}" for device in devices if len(devices) == 1 and device != "cpu"]
    return words + [f"in {word}" for word in precisions if len(precisions) == 1 and word != PRECISIONS[0]]


def _where_tried(cell: Cell) -> Cell:
    """Nothing for a model that was only listed: it was tried on no runtime."""
    return lambda row: cell(row) if row.result.benchmark.withheld is None else ""


def _parameter(name: str) -> Cell:
    return lambda row: row.result.benchmark.parameters.get(name, "")


def _inputs(row: ModelRow) -> str:
    """`1×128`, or each input's shape if they differ."""
    shapes = ["×".join(map(str, i.shape)) or "scalar" for i in row.inputs if i.shape is not None]
    return ", ".join(dict.fromkeys(shapes))


def _shapes_differ(rows: Sequence[ModelRow]) -> bool:
    """Whether a model was called with several shapes at the same parameters."""
    seen: dict[object, set[str]] = {}
    for row in rows:
        seen.setdefault(_point(row), set()).add(_inputs(row))
    return any(len(inputs) > 1 for inputs in seen.values())


def _needs_identity(rows: Sequence[ModelRow]) -> bool:
    """Whether neither parameters nor shapes tell two models apart."""
    seen: dict[object, set[str]] = {}
    for row in rows:
        seen.setdefault((_point(row), _inputs(row)), set()).add(row.model.identity)
    return any(len(identities) > 1 for identities in seen.values())


def _point(row: ModelRow) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(row.result.benchmark.parameters.items()))
