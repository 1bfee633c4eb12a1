"""`benchwright report`."""

from __future__ import annotations

import click

from benchwright.cli.colour import coloured
from benchwright.cli.looking import open_results, terminal_width, where_options
from benchwright.domain.errors import InvalidInput

_ONE_DOCUMENT = ("html", "json", "driver")


@click.command(epilog="Example: benchwright report last --format html --output report.html")
@click.argument("runs", nargs=-1)
@click.option(
    "--format", "format_", default="screen", show_default=True, help="screen, json, csv, markdown, html or driver."
)
@click.option("--sort", type=click.Choice(["status", "name", "duration"]), default="status", show_default=True)
@click.option("-o", "--output", metavar="FILE", help="Write it there instead of to stdout.")
@where_options
def command(
    runs: tuple[str, ...], format_: str, sort: str, output: str | None, base: str | None, store: str | None
) -> None:
    """Show what RUNS measured: `last` (the default), a name, the beginning of one, or a folder."""
    from benchwright.pipeline import report_of, sorted_by
    from benchwright.reporters.registry import reporter_named
    from benchwright.stores.whole_file import write_whole

    reporter = reporter_named(format_)
    with open_results(base, store) as results:
        found = [sorted_by(results.run(word), sort) for word in runs or ("last",)]
    texts = [reporter.render(report_of(run, width=terminal_width(), with_logs=format_ == "html")) for run in found]
    if format_ in _ONE_DOCUMENT and len(texts) > 1:
        raise InvalidInput(f"a {format_} report holds one run", where="report", remedy="name one run, or use compare")
    if format_ == "csv":
        texts = [texts[0], *(text.partition("\n")[2] for text in texts[1:])]  # one header
    text = "".join(texts)
    if output is None:
        click.echo(coloured(text) if format_ == "screen" else text, nl=False)
    else:
        write_whole(output, text.encode())
        click.echo(f"written: {output}", err=True)
