"""Several runs as one document, in every format that can hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from benchwright.core.errors import InvalidInput
from benchwright.report.base import OneRunReporter, Report, Reporter
from benchwright.report.csv import CsvReporter, csv_text
from benchwright.report.html.reporter import several_html
from benchwright.report.tables.scores import score_bodies
from benchwright.report.text.one_line import clip

FORMAT = "benchwright-report"
VERSION = 1


def render_several(reporter: Reporter, reports: Sequence[Report], pooled: Report | None = None) -> str:
    """The report of one run, or one document that holds them all; InvalidInput if there can be none.

    `pooled`: all of them as one run, where the scoring rule takes them so. On the screen and in Markdown it stands for them.
    """
    if len(reports) == 1:
        return reporter.render(reports[0])
    if reporter.name == "html":
        return several_html([*([pooled] if pooled else []), *reports])
    if pooled is not None and reporter.name in ("screen", "markdown"):
        return reporter.render(pooled)
    if isinstance(reporter, OneRunReporter):
        raise InvalidInput(reporter.why_one_run, where="report", remedy="name one run")
    if reporter.name == "csv" and any(report.added.table is not None for report in reports):
        if all(tables := [report.added.table for report in reports]):
            return csv_text([table for table in tables if table is not None])
        reporter = CsvReporter(metrics=True)  # one document has one kind of row
    texts = [reporter.render(report) for report in reports]
    if reporter.name == "json":
        body = {"format": FORMAT, "version": VERSION, "runs": [json.loads(text) for text in texts]}
        body |= score_bodies(None, pooled.by_rule, None) if pooled else {}
        return json.dumps(body, indent=1) + "\n"
    if reporter.name == "csv":
        return "".join([texts[0], *(text.partition("\n")[2] for text in texts[1:])])  # one header
    if reporter.name == "screen":
        heads = (clip(f" {r.run.id}", r.width) for r in reports)
        return "\n".join(f"{head}\n {'─' * (len(head) - 1)}\n{text}" for head, text in zip(heads, texts, strict=True))
    # A blank line: in Markdown a title right below a folded block would be part of it.
    return "\n".join(texts)
