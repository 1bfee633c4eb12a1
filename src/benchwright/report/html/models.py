"""The models of a run: the table of each, and where its time goes."""

from __future__ import annotations

from benchwright.report.base import Report
from benchwright.report.html.figures import figure, hint
from benchwright.report.html.markup import Html, element, together
from benchwright.report.models.columns import CALLS, ITEMS, speedup_doubt
from benchwright.report.models.facts import checked, fact
from benchwright.report.models.rows import ModelGroup, ModelRow, model_groups, operators
from benchwright.report.models.table import ModelTable, TableLine, model_table, profile_words
from benchwright.report.text.columns import Column

MOST_OPEN = 3  # tables of operators; more of them are folded
_HINTS = {
    "± 95 %": "95 % interval of the median over launches",
    "vs eager": "how many times as fast as torch-eager in fp32, on the same device and inputs",
    "error": "relative L2 against the reference: ✓ within the tolerance, ~ nothing is claimed",
    "build": "the steps that were really done; cached: an earlier build was used",
    "memory": "the most that the measuring process had of the host's memory",
}


def models_section(report: Report) -> Html | None:
    """None for a run without models."""
    groups = model_groups(report)
    if not groups:
        return None
    return element("section", element("h2", "Models"), *(_model(group) for group in groups), id="models")


def _model(group: ModelGroup) -> Html:
    made = model_table(group)
    name, *about = made.heading
    inputs = dict.fromkeys(", ".join(map(str, row.inputs)) for row in group.every if row.inputs)
    return element(
        "div",
        element("h3", element("span", name, class_="name"), element("span", f"  {'  '.join(about)}", class_="figure")),
        *(element("p", text, class_="note") for text in list(inputs)[:4]),
        _table(made) if made.lines else None,
        *(
            element("p", f"⚠ {text}", class_="note")
            for text in dict.fromkeys(filter(None, map(speedup_doubt, group.rows)))
        ),
        *(_operators(row, group) for row in group.every),
        class_="card model",
    )


def _table(made: ModelTable) -> Html:
    columns = (*made.index, *(made.values or (Column(""),)))
    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", *(_head(column) for column in columns))),
            element("tbody", *(_line(line, made) for line in made.lines)),
            class_="plain",
        ),
        class_="scroll",
        tabindex="0",
    )


def _head(column: Column) -> Html:
    return element("th", column.head, scope="col", class_="n" if column.right else None, title=_HINTS.get(column.head))


def _line(line: TableLine, made: ModelTable) -> Html:
    cells = [
        element("td", _link(line.row, word) if word and column.head == "runtime" else word)
        for word, column in zip(line.index, made.index, strict=True)
    ]
    if line.trouble is not None:
        return element("tr", *cells, element("td", line.trouble, class_="why", colspan=len(made.values) or None))
    pairs = zip(line.values, made.values, strict=True)
    return element("tr", *cells, *(element("td", word, class_="n", title=_aside(line.row, c)) for word, c in pairs))


def _link(row: ModelRow, word: str) -> Html:
    return element("a", word, href=f"#b{row.number}", title=hint(word))


def _aside(row: ModelRow, column: Column) -> str | None:
    """What stands behind a cell: the check of an error, the steps of a build."""
    if column.head == "error":
        found = checked(row.result)
        if found is None:
            return None
        against = f", against {found.reference}" if found.reference else ""
        return f"{found.detail}{against}" or None
    if column.head == "vs eager":
        return speedup_doubt(row)
    if column.head in (ITEMS, CALLS):
        if row.items is None:
            return "how many items a call has is not known"
        return f"{row.items:,} items in a call: {row.items_from}" if row.items_from else None
    if column.head == "build":
        steps = fact(row.result, "build") or ()
        return ", ".join(f"{s.get('step')} {figure(float(s.get('seconds') or 0.0), 's')}" for s in steps) or None
    return None


def _operators(row: ModelRow, group: ModelGroup) -> Html | None:
    found = operators(row)
    if not found:
        return None
    rows = [
        element(
            "tr",
            element("td", o.op),
            element("td", figure(o.seconds, "s"), class_="n"),
            element("td", f"{o.share * 100:.1f} %", class_="n"),
            element("td", element("meter", min=0, max=1, value=f"{o.share:.4f}") if o.share == o.share else ""),
            element("td", o.calls, class_="n"),
        )
        for o in found
    ]
    heads = (("Operator", None), ("Time in a call", "n"), ("Share", "n"), ("", None), ("Calls", "n"))
    table = element(
        "table",
        element("thead", element("tr", *(element("th", text, scope="col", class_=kind) for text, kind in heads))),
        element("tbody", *rows),
    )
    title = f"Where the time goes: {profile_words(row, group.every)}"
    return element(
        "details",
        element("summary", title),
        together((element("div", table, class_="scroll", tabindex="0"),)),
        class_="fold",
        open=len(found) <= 25 and len(group.profiles) <= MOST_OPEN,
    )
