"""An explanation on the screen, in Markdown and in JSON: the same sections, each only if it has something to say."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchwright.analysis.operator_times import OperatorChange, OperatorsExplained
from benchwright.core.comparison import Effect, Verdict
from benchwright.regress.explain import Explanation
from benchwright.report.document import OPTIONAL, Cell, Column, Field, ReportTable, Row, table_of, word
from benchwright.report.tables.comparison import MARKS, change, launches_words, metric_words
from benchwright.report.text.layout import table_lines, wrapped
from benchwright.report.text.markdown import code, markdown_table, plain
from benchwright.report.text.numbers import format_value, json_body

_MOST = 8  # operators on the screen
_NONE = "–"
_FEW = "one profiled launch on a side cannot tell a difference from noise"


class _Section(msgspec.Struct, frozen=True, kw_only=True):
    """Sentences, then a table, then small print."""

    title: str
    sentences: tuple[str, ...] = ()
    table: ReportTable | None = None
    notes: tuple[str, ...] = ()


def explanation_text(explanation: Explanation, *, width: int = 80) -> str:
    lines = wrapped(_headline(explanation), width, " ")
    for section in _sections(explanation):
        lines += ["", f" {section.title}"]
        lines += [line for text in section.sentences for line in wrapped(text, width, "   ")]
        if section.table is not None:
            lines += [f"  {line}" for line in table_lines(section.table, width - 2)]
        lines += [line for text in section.notes for line in wrapped(text, width, "   ")]
    return "\n".join(lines) + "\n"


def explanation_markdown(explanation: Explanation) -> str:
    """With every operator."""
    blocks = [f"#### {code(explanation.benchmark)}", plain(_headline(explanation))]
    for section in _sections(explanation):
        blocks.append(f"**{plain(section.title)}**")
        blocks += ["\n".join(f"- {plain(text)}" for text in section.sentences)] if section.sentences else []
        blocks += [markdown_table(section.table)] if section.table is not None else []
        blocks += [plain(text) for text in section.notes]
    return "\n\n".join(blocks) + "\n"


def explanation_body(explanation: Explanation) -> dict[str, object]:
    """For JSON; documented in docs/how-to/explain-a-regression.md."""
    body = {"format": "benchwright-explanation", "version": 1} | msgspec.to_builtins(explanation)
    body["conditions"] = [str(note) for note in explanation.conditions]
    return json_body(body)


def _headline(explanation: Explanation) -> str:
    effect = explanation.headline
    if effect is None:
        return f"? {explanation.benchmark}: nothing to compare"
    return f"{MARKS[effect.verdict]} {effect.verdict.value}: {explanation.benchmark} {_effect_words(effect)}"


def _effect_words(effect: Effect) -> str:
    figures = f"{format_value(effect.control, effect.unit)} → {format_value(effect.treatment, effect.unit)}"
    return f"{metric_words(effect)} {change(effect)}, {figures}, {launches_words(effect)}"


def _sections(explanation: Explanation) -> list[_Section]:
    found = []
    if explanation.causes:
        found.append(
            _Section(
                title="what kind of slow-down" if _is_slower(explanation) else "what changed",
                sentences=explanation.causes,
            )
        )
    if explanation.operators is not None:
        found.append(_operators(explanation.operators))
    if explanation.moved:
        found.append(_Section(title="what else moved", table=_effects_table(explanation.moved)))
    if explanation.memory:
        found.append(_Section(title="memory", table=_effects_table(explanation.memory)))
    found += _surroundings(explanation)
    if explanation.advice:
        found.append(_Section(title="to learn more", sentences=explanation.advice))
    return found


def _is_slower(explanation: Explanation) -> bool:
    return explanation.headline is not None and explanation.headline.verdict is Verdict.REGRESSED


def _surroundings(explanation: Explanation) -> list[_Section]:
    """Other differences, and the conditions of the measurement."""
    found = []
    if (revisions := explanation.revisions) is not None:
        more = revisions.total - len(revisions.commits)
        commits = (*revisions.commits, *([f"… and {more} more"] if more > 0 else []))
        words = f"{revisions.control} → {revisions.treatment}"
        found.append(_Section(title=f"revisions: {words}", sentences=commits))
    if explanation.environment:
        texts = tuple(
            f"{'✗ ' if d.severe else ''}{d.what}: {d.control} → {d.treatment}" for d in explanation.environment
        )
        found.append(_Section(title="what else differs", sentences=texts))
    if explanation.conditions:
        found.append(_Section(title="conditions", sentences=tuple(f"⚠ {note}" for note in explanation.conditions)))
    return found


def _operators(found: OperatorsExplained) -> _Section:
    notes = [_accounted(found)]
    shown = found.operators[:_MOST]
    if any(each.clear is None for each in shown):
        notes.append(f"{_FEW[0].upper()}{_FEW[1:]}; use --launches 3.")
    elif any(not each.clear for each in shown):
        notes.append("~ within the range of the profiled launches: may be noise.")
    counts = f"{found.launches[0]} + {found.launches[1]} profiled launches"
    return _Section(
        title=f"{_noun(found)}s, time in a {found.per} ({counts})", table=_operators_table(found), notes=tuple(notes)
    )


def _accounted(found: OperatorsExplained) -> str:
    """How much of the slow-down the operators account for, and the rest."""
    what = _noun(found)
    if found.slow_down_s is None or found.rest_s is None:
        return f"The {what}s differ by {_signed(found.explained_s)} in all. No shares: it is not known to be slower."
    slow_down, rest = found.slow_down_s, found.rest_s
    timed = f"The timed launches differ by {_signed(slow_down)} a {found.per}"
    if slow_down <= 0:
        return f"{timed}, the {what}s by {_signed(found.explained_s)}."
    if rest < 0:
        more = f"the {what}s by {_signed(found.explained_s)}: profiling slows them down, so shares are of that"
        return f"{timed}, {more}."
    left = f"{_signed(rest)} ({_percent(rest / slow_down)}) is time between {what}s, or noise"
    return f"{timed}; the {what}s account for {_signed(found.explained_s)}, and the rest, {left}."


def _noun(found: OperatorsExplained) -> str:
    return "operator" if found.per == "call" else "function"


def _operators_table(found: OperatorsExplained) -> ReportTable:
    fields: list[Field[OperatorChange]] = [
        Field(Column(_noun(found), quoted=True), lambda e: word(e.op)),
        Field(Column("control", right=True), lambda e: _time(e, e.control_s)),
        Field(Column("treatment", right=True), lambda e: _time(e, e.treatment_s)),
        Field(Column("difference", right=True), _difference),
        Field(Column("share", right=True), lambda e: Cell("" if e.share is None else _percent(e.share), e.share)),
        Field(Column("runs", right=True, drop_priority=OPTIONAL), lambda e: Cell(_runs(e))),
    ]
    table = table_of(fields, found.operators[:_MOST])
    rest = found.operators[_MOST:]
    if not rest:
        return table
    shares = [each.share for each in rest if each.share is not None]
    share = Cell(_percent(sum(shares))) if shares else Cell()
    summed = Cell(_signed(sum(each.difference_s for each in rest)))
    others = Row((word(f"{len(rest)} others"), Cell(), Cell(), summed, share, Cell()))
    return msgspec.structs.replace(table, rows=(*table.rows, others))


def _time(each: OperatorChange, seconds: float | None) -> Cell:
    if seconds is not None:
        return Cell(format_value(seconds, "s"), seconds)
    return Cell(_NONE if each.below_s is None else f"< {format_value(each.below_s, 's')}")


def _difference(each: OperatorChange) -> Cell:
    least = "≥ " if each.below_s is not None and each.difference_s > 0 else ""
    doubt = "~" if each.clear is False else ""
    return Cell(f"{least}{doubt}{_signed(each.difference_s)}", each.difference_s)


def _runs(each: OperatorChange) -> str:
    """How often it runs; on both sides, if that changed and is known."""
    before, after = each.calls
    return f"{before} → {after}" if before and after and before != after else after or before


def _signed(seconds: float) -> str:
    return ("+" if seconds >= 0 else "-") + format_value(abs(seconds), "s")


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _effects_table(effects: Sequence[Effect]) -> ReportTable:
    fields: list[Field[Effect]] = [
        Field(Column("metric", quoted=True), lambda e: Cell(metric_words(e), e.metric)),
        Field(Column("control", right=True), lambda e: Cell(format_value(e.control, e.unit), e.control)),
        Field(Column("treatment", right=True), lambda e: Cell(format_value(e.treatment, e.unit), e.treatment)),
        Field(Column("change", right=True), lambda e: Cell(change(e), e.ratio)),
        Field(Column("verdict", drop_priority=1), lambda e: word(e.verdict.value)),
    ]
    return table_of(fields, effects)
