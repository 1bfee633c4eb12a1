"""The table of one model: its columns and cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from benchwright.core.model import PRECISIONS
from benchwright.core.quantities import format_bytes, format_duration, format_prefixed
from benchwright.core.run import Result, Run
from benchwright.core.status import Reason, Status
from benchwright.kinds.models.report.facts import fact
from benchwright.kinds.models.report.fields import TextOf, figure_fields, model_cells
from benchwright.kinds.models.report.rows import ModelGroup, ModelRow, OperatorTime, operators
from benchwright.report.document import Cell, Column, Field, ReportTable, Row, table_of, word
from benchwright.report.text.numbers import format_value, tenths
from benchwright.runs.fan_out_folder import NODE

SHOWN_DIGITS = 8  # of an identity
_MOST_IDENTITIES = 3
_SHORT_HEADS = {"batch_size": "batch"}
_PLAIN_HEADS = ("runtime", "device", "precision", "inputs", "model")  # their cells speak for themselves


_FEW_OPERATORS = 5
_MOST_OPEN = 3  # tables of operators; more of them are folded
_MOST_OPEN_ROWS = 25


class ModelTable(msgspec.Struct, frozen=True, kw_only=True):
    """`labels`: by row number, what tells a row from the others, such as `batch 8 onnxruntime bf16`."""

    table: ReportTable
    labels: dict[int, str]


def model_table(group: ModelGroup, run: Run) -> ModelTable:
    """The reason for a row without numbers; both, for one that failed in part."""
    index = _index_fields(group.rows)
    measured = [row for row in group.rows if row.measured]
    cells = {row.number: model_cells(row, run) for row in measured}
    figures = figure_fields(measured, lambda row: cells[row.number])
    of_row = dict(zip((row.number for row in measured), table_of(figures, measured).rows, strict=True))
    rows: list[Row] = []
    for row in group.rows:
        head = tuple(field.cell(row) for field in index)
        if (words := trouble_words(row.result, row.measured) or built_words(row)) is not None:
            rows.append(Row(head, words, len(index)))
        if row.measured:
            rows.append(Row((*head, *of_row[row.number].cells)))
    columns = tuple(field.column for field in index)
    headed = bool(measured) or [c.title for c in columns] != ["runtime"]  # a runtime alone needs no head
    columns += tuple(field.column for field in figures) if measured else ()
    labels = {row.number: _label(row, index) for row in group.rows}
    return ModelTable(table=ReportTable(columns=columns, rows=tuple(rows), headed=headed), labels=labels)


def _share(o: OperatorTime) -> Cell:
    return Cell(tenths(o.share), o.share, share=o.share if math.isfinite(o.share) else None)


def operators_table(row: ModelRow, group: ModelGroup) -> ReportTable | None:
    """Where the time of a profiled model goes, the slowest operators first; None if it was not profiled."""
    found = operators(row)
    if not found:
        return None
    fields: list[Field[OperatorTime]] = [
        Field(Column("operator", quoted=True), lambda o: word(o.op)),
        Field(Column("time in a call", right=True), lambda o: Cell(format_value(o.seconds, "s"), o.seconds)),
        Field(Column("share", right=True), _share),
        Field(Column("calls", right=True), lambda o: word(o.calls)),
    ]
    table = table_of(fields, found, title=f"where the time goes: {profile_words(row, group.every)}")
    opened = len(found) <= _MOST_OPEN_ROWS and len(group.profiles) <= _MOST_OPEN
    table = msgspec.structs.replace(table, opened=opened)
    if len(found) <= _FEW_OPERATORS + 1:
        return table
    others = found[_FEW_OPERATORS:]
    rest = OperatorTime(
        op=f"{len(others)} others ('bw show')",
        seconds=sum(o.seconds for o in others),
        share=sum(o.share for o in others),
        calls="",
    )
    return msgspec.structs.replace(table, most=_FEW_OPERATORS, rest=table_of(fields, [rest]).rows[0])


def heading(group: ModelGroup) -> tuple[str, ...]:
    """`bert.py`, `BertModel`, `109.5 M parameters`, `22.4 GFLOP`, `(bert.py:21)`, `8c1f02aa`."""
    row = group.every[0]
    model = row.model
    shown = [identity[:SHOWN_DIGITS] for identity in group.identities]
    if _needs_identity(group.rows):
        shown = []
    elif len(shown) > _MOST_IDENTITIES:
        shown = [*shown[:1], f"and {len(shown) - 1} more"]
    node = row.result.benchmark.labels.get(NODE)
    parts = (
        f"{group.source} on {node}" if node else group.source,
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
    """Why numbers are missing, of all launches or some; None if none are."""
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
    reason = f" {result.reason.words}" if result.reason and not stage else ""
    failed = sum(1 for x in result.launches if not x.warmup and x.status is Status.FAILED)
    of = f" ({failed} of {failed + len(result.counted)} launches failed)" if measured or result.counted else ""
    wrong = " of the check" if result.reason is Reason.INVALID and not detail else ""
    return f"FAILED{reason} {detail}{wrong}{of}" if stage else f"FAILED{reason}: {detail}{wrong}{of}"


def built_words(row: ModelRow) -> str | None:
    """`built in 7.1 s, 92 kB: …/model.onnx` of a model that was only built; None of any other."""
    built = fact(row.result, "built") if row.model.stops_after else None
    if built is None:
        return None
    word = "exported" if row.model.stops_after == "export" else "built"
    took = "before" if built.get("cached") else f"in {format_duration(row.build_s or 0.0)}"
    return f"{word} {took}, {format_bytes(float(built['bytes']))}: {built.get('onnx') or built['folder']}"


def _label(row: ModelRow, index: Sequence[Field[ModelRow]]) -> str:
    cells = [(field.column.title, field.cell(row).text) for field in index]
    words = (text if title in _PLAIN_HEADS else f"{title} {text}" for title, text in cells if text)
    return " ".join(words) or row.model.identity[:SHOWN_DIGITS]


def profile_words(row: ModelRow, beside: Sequence[ModelRow] = ()) -> str:
    """`torch-eager on cpu in fp32, batch_size=8, 8×128`: which row of its model a profile is of, among those `beside`."""
    model = row.model
    point = [f"{name}={value}" for name, value in row.result.benchmark.parameters.items()]
    shapes = [_inputs(row)] if _shapes_differ(beside) else []
    identity = [model.identity[:SHOWN_DIGITS]] if _needs_identity(beside) else []
    return ", ".join([f"{model.runtime} on {model.device} in {row.precision}", *point, *shapes, *identity])


def _flops_words(rows: Sequence[ModelRow]) -> str:
    """Per call; per item if batches differ; nothing if that differs, too."""
    for flops, unit in (
        ([row.flops for row in rows], "FLOP"),
        ([row.flops_per_item for row in rows], "FLOP an item"),
    ):
        words = {format_prefixed(f, unit) for f in flops if f is not None}
        if len(words) == 1:
            return words.pop()
    return ""


def _index_fields(rows: Sequence[ModelRow]) -> list[Field[ModelRow]]:
    """Requested parameters, then runtime; device, precision, inputs and identity only if they differ."""
    names = list(dict.fromkeys(name for row in rows for name in row.result.benchmark.parameters))
    found: list[tuple[str, TextOf]] = [(_SHORT_HEADS.get(name, name), _parameter(name)) for name in names]
    if _shapes_differ(rows):
        found.append(("inputs", _inputs))
    if _needs_identity(rows):
        found.append(("model", lambda row: row.model.identity[:SHOWN_DIGITS]))
    tried = [row for row in rows if row.result.benchmark.withheld is None]
    found.append(("runtime", _where_tried(lambda row: row.model.runtime)))
    if len({row.model.device for row in tried}) > 1:
        found.append(("device", _where_tried(lambda row: row.model.device)))
    if len({row.precision for row in tried}) > 1:
        found.append(("precision", _where_tried(lambda row: row.precision)))
    return [_index_field(title, text) for title, text in found if any(map(text, rows))]


def _index_field(title: str, text: TextOf) -> Field[ModelRow]:
    def cell(row: ModelRow) -> Cell:
        return word(text(row), link=f"b{row.number}" if title == "runtime" else "")

    return Field(Column(title, quoted=True), cell)


def _common(rows: Sequence[ModelRow]) -> list[str]:
    """`on cuda`, `in bf16`: what all rows share, unless it is the default."""
    tried = [row for row in rows if row.result.benchmark.withheld is None]
    devices, precisions = {row.model.device for row in tried}, {row.precision for row in tried}
    words = [f"on {device}" for device in devices if len(devices) == 1 and device != "cpu"]
    words += [f"in {word}" for word in precisions if len(precisions) == 1 and word != PRECISIONS[0]]
    ways = dict.fromkeys(way for row in tried for way in row.model.build_variant)
    return [*words, *([f"built with {', '.join(ways)}"] if ways else [])]


def _where_tried(text: TextOf) -> TextOf:
    """Nothing for a model that was only listed, on no runtime."""
    return lambda row: text(row) if row.result.benchmark.withheld is None else ""


def _parameter(name: str) -> TextOf:
    return lambda row: row.result.benchmark.parameters.get(name, "")


def _inputs(row: ModelRow) -> str:
    """`1×128`, or the shape of each input if they differ."""
    shapes = ["×".join(map(str, i.shape)) or "scalar" for i in row.inputs if i.shape is not None]
    return ", ".join(dict.fromkeys(shapes))


def _shapes_differ(rows: Sequence[ModelRow]) -> bool:
    """Whether a model was called with several shapes at the same parameters."""
    seen: dict[object, set[str]] = {}
    for row in rows:
        seen.setdefault(_point(row), set()).add(_inputs(row))
    return any(len(inputs) > 1 for inputs in seen.values())


def _needs_identity(rows: Sequence[ModelRow]) -> bool:
    """Whether two models have the same parameters and shapes."""
    seen: dict[object, set[str]] = {}
    for row in rows:
        seen.setdefault((_point(row), _inputs(row)), set()).add(row.model.identity)
    return any(len(identities) > 1 for identities in seen.values())


def _point(row: ModelRow) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(row.result.benchmark.parameters.items()))
