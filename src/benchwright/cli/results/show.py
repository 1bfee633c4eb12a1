"""`benchwright show`."""

from __future__ import annotations

import json

import click

from benchwright.cli.terminal import coloured, terminal_width
from benchwright.cli.where import open_results, where_options


@click.command(epilog="Example: benchwright show last")
@click.argument("run", default="last")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@where_options
def command(run: str, as_json: bool, base: str | None, store: str | None) -> None:
    """Show everything about RUN: its report, every launch, machine and packages."""
    from benchwright.app.after_run import report_of
    from benchwright.app.results.peaks import peaks_for
    from benchwright.report.details import details
    from benchwright.report.run_json import JsonReporter
    from benchwright.report.screen import ScreenReporter

    with open_results(base, store) as results:
        found = results.run(run)
        annotation = results.annotation(found)
        peaks = peaks_for([found], results)
    report = report_of(found, width=terminal_width(), peaks=peaks.get(found.id))
    if as_json:
        body = json.loads(JsonReporter().render(report))
        body["packages"] = found.packages
        body["annotation"] = annotation
        click.echo(json.dumps(body, indent=1))
        return
    click.echo(coloured(ScreenReporter().render(report) + details(report, annotation)), nl=False)
