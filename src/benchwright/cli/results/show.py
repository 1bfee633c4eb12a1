"""`benchwright show`."""

from __future__ import annotations

import json

import click

from benchwright import results as kept
from benchwright.cli.answer import json_option
from benchwright.cli.results.output import chosen_format, put_out
from benchwright.cli.spinner import Working
from benchwright.cli.store_options import open_results, where_options
from benchwright.cli.terminal import terminal_width


@click.command(epilog="Example: benchwright show last")
@click.argument("run", default="last")
@json_option()
@click.option("-o", "--output", metavar="FILE", help="Write to FILE: .html, .json or .txt.")
@where_options
def command(run: str, output: str | None, base: str | None, store: str | None) -> None:
    """Show everything about RUN: its report, every launch, machine and packages."""
    from benchwright.report.details import details
    from benchwright.report.registry import reporter_named
    from benchwright.report.run_json import JsonReporter
    from benchwright.report.screen import ScreenReporter

    format_ = chosen_format("show", None, output, known=("html", "json", "screen"))
    with Working("reading the run"), open_results(base, store) as results:
        found = results.run(run)
        annotation = results.annotation(found)
        peaks = kept.peaks.peaks_for([found], results)
        logs = results.stored_logs(found)
    report = kept.after_run.report_of(
        found,
        width=terminal_width(),
        with_logs=format_ == "html",
        peaks=peaks.get(found.id),
        comparisons=kept.compare.compare_commands(found),
        stored_logs=logs,
    )
    if format_ == "json":
        body = json.loads(JsonReporter().render(report))
        text = json.dumps(body | {"packages": found.packages, "annotation": annotation}, indent=1) + "\n"
    elif format_ == "html":
        text = reporter_named("html").render(report)
    else:
        text = ScreenReporter().render(report) + details(report, annotation)
    put_out(text, format_, output)
