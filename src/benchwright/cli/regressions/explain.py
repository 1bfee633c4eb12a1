"""`benchwright explain`."""

from __future__ import annotations

import json

import click

from benchwright import regress, runner
from benchwright.cli.answer import json_option
from benchwright.cli.results.output import chosen_format, output_option, put_out
from benchwright.cli.store_options import open_results, where_options
from benchwright.cli.terminal import terminal_width
from benchwright.core.errors import InvalidInput
from benchwright.regress.explain_report import explanation_body, explanation_markdown, explanation_text

_EXAMPLES = """\b
Examples:
  benchwright explain last                     an A/B, or run -c A -c B
  benchwright explain last --profile           with the operators that changed
  benchwright explain BEFORE AFTER
"""


@click.command(epilog=_EXAMPLES)
@click.argument("runs", nargs=-1, required=True, metavar="RUN | CONTROL TREATMENT")
@click.option("--between", nargs=2, metavar="A B", help="Two benchmarks of ONE run that were measured interleaved.")
@click.option("--profile", is_flag=True, help="Launch both sides again, profiled: operators, or Python functions.")
@click.option(
    "--launches", type=click.IntRange(1, 100), default=3, show_default=True, help="Profiled launches of each side."
)
@click.option("--all", "every", is_flag=True, help="Every benchmark, not only those that regressed.")
@click.option("--anyway", is_flag=True, help="Explain even runs of different machines or commands.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["screen", "markdown", "json"]),
    help="[default: by the file's ending, else screen]",
)
@output_option
@json_option("The same as --format json.")
@where_options
def command(
    runs: tuple[str, ...],
    between: tuple[str, str] | None,
    profile: bool,
    launches: int,
    every: bool,
    anyway: bool,
    format_: str | None,
    output: str | None,
    base: str | None,
    store: str | None,
) -> int:
    """Say why the treatment is slower: work or waiting, which operators, memory, and what else differs.

    RUN has both sides: an A/B, or commands measured together. The timed launches are never profiled; --profile makes
    others, in a separate run.
    """
    format_ = chosen_format("explain", format_, output, known=("screen", "markdown", "json"))
    if len(runs) > 2 or (between and len(runs) != 1):
        remedy = "name a run with both sides, or a control and a treatment"
        raise InvalidInput("too many runs", where="explain", remedy=remedy)
    with runner.terminal.open_progress(quiet=format_ == "json") as progress:
        progress.begin("reading the runs")
        with open_results(base, store) as results:
            found = regress.explain_pairs.runs_to_explain(runs, results)
            folder = results.base
        order = regress.explain_pairs.ExplainOrder(
            runs=found,
            base=folder,
            store=store,
            between=between,
            every=every,
            anyway=anyway,
            profile=profile,
            launches=launches,
        )
        explained = regress.explain_pairs.explanations(order, progress)
    if format_ == "json":
        text = json.dumps([explanation_body(each) for each in explained], indent=1, allow_nan=False) + "\n"
    elif format_ == "markdown":
        text = "\n".join(map(explanation_markdown, explained)) or "nothing regressed\n"
    else:
        width = terminal_width()
        text = "\n".join(explanation_text(each, width=width) for each in explained) or " nothing regressed\n"
    put_out(text, format_, output)
    return 0
