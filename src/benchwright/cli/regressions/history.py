"""`benchwright history`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchwright import regress
from benchwright.cli.answer import json_option
from benchwright.cli.regressions.notify_options import notify_option, targets, tell
from benchwright.cli.results.output import chosen_format, output_option, put_out
from benchwright.cli.spinner import Working
from benchwright.cli.store_options import open_results, where_options
from benchwright.cli.terminal import terminal_width
from benchwright.options.values import label_of
from benchwright.report.tables.history_table import change_words, heading
from benchwright.report.text.numbers import counted

if TYPE_CHECKING:
    from benchwright.regress.run_history import Histories

_FORMATS = ("screen", "markdown", "csv", "json", "html")


@click.command(
    epilog="""\b
Examples:
  benchwright history                          of what was measured last
  benchwright history train                    where its headline metric changed
  benchwright history 'resnet*' -o history.html
  benchwright history train --fail-on regressed --notify github:comment.md"""
)
@click.argument("benchmark", metavar="[BENCH]", required=False)
@click.option("--metric", metavar="NAME", help="Look at this metric.  [default: the one the benchmark is known by]")
@click.option(
    "--label", "--where", "labels", multiple=True, metavar="KEY=VALUE", help="Only runs with this label. Repeatable."
)
@click.option("--machine", metavar="MACHINE", help="Only runs of this machine: its host name or fingerprint.")
@click.option("--since", metavar="DATE", help="Only runs started on or after this date (ISO 8601).")
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="Only the newest N runs.  [default: all]")
@click.option("--by", type=click.Choice(["run", "commit"]), default="run", show_default=True, help="Order by time of.")
@click.option("--any-host", is_flag=True, help="Join machines of the same make, such as hosts of one cloud type.")
@click.option("--fail-on", type=click.Choice(["regressed", "changed"]), help="Exit with 1 if the last change is one.")
@click.option("--format", "format_", type=click.Choice(_FORMATS), help="[default: by the file's ending, else screen]")
@output_option
@json_option("The same as --format json.")
@notify_option
@where_options
def command(
    benchmark: str | None,
    metric: str | None,
    labels: tuple[str, ...],
    machine: str | None,
    since: str | None,
    limit: int | None,
    by: str,
    any_host: bool,
    fail_on: str | None,
    format_: str | None,
    output: str | None,
    notify: tuple[str, ...],
    base: str | None,
    store: str | None,
) -> int:
    """Show where a benchmark BENCH became slower or faster, over all its runs. BENCH may be a glob; without it, the benchmark of
    the last run.

    Each machine and setting is a separate series. Noise that wanders, outliers and runs on a busy machine are not taken for
    changes. Twelve runs or more are needed.
    """
    format_ = chosen_format("history", format_, output)
    receivers = targets(notify)
    with Working("reading the runs"), open_results(base, store) as results:
        order = regress.run_history.HistoryOrder(
            benchmark=benchmark or regress.run_history.last_benchmark(results),
            metric=metric,
            labels=dict(map(label_of, labels)),
            machine=machine,
            since=since,
            limit=limit,
            by_commit=by == "commit",
            any_host=any_host,
        )
        found = regress.run_history.histories(results, order)
        folder = results.base.path
    put_out(_rendered(found, format_), format_, output)
    _tell_what_is_missing(found)
    failed = regress.run_history.failing(found.series, fail_on) if fail_on else []
    for series, change in failed:
        click.echo(f"benchwright: --fail-on {fail_on}: {heading(series)} {change_words(series, change)}", err=True)
    code = 1 if failed else 0
    if not receivers:
        return code

    return tell(regress.run_history.history_notice(found.series, order.benchmark), receivers, folder, code)


def _rendered(found: Histories, format_: str) -> str:
    from benchwright.report.tables import history_table

    if format_ == "html":
        from benchwright.report.html.history_page import history_html

        return history_html(found.series)
    if format_ == "screen":
        return history_table.history_text(found.series, terminal_width())
    render = {
        "json": history_table.history_json,
        "markdown": history_table.history_markdown,
        "csv": history_table.history_csv,
    }[format_]
    return render(found.series)


def _tell_what_is_missing(found: Histories) -> None:
    if found.unreadable:
        runs = counted(len(found.unreadable), "run")
        click.echo(f"benchwright: {runs} could not be read; 'benchwright runs' says why", err=True)
    if found.trouble is not None:
        click.echo(f"benchwright: only runs of the base folder are shown: {found.trouble}", err=True)
