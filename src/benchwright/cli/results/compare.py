"""`benchwright compare`."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from benchwright import results as kept
from benchwright.analysis.comparison.differences import differences
from benchwright.cli.answer import in_json, json_option
from benchwright.cli.regressions.notify_options import notify_option, targets, tell
from benchwright.cli.results.output import chosen_format, output_option, put_out
from benchwright.cli.spinner import Working
from benchwright.cli.store_options import open_results, where_options
from benchwright.cli.terminal import terminal_width
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.quantities import parse_percentage
from benchwright.report.csv import csv_text
from benchwright.report.tables.machine_table import machine_ratios, ratio_table
from benchwright.report.text.layout import table_lines
from benchwright.report.text.markdown import markdown_table

if TYPE_CHECKING:
    from benchwright.core.comparison import Comparison


# `benchwright compare --env`.


def show_differences(runs: Sequence[str], base: str | None, store: str | None, format_: str | None) -> None:
    """How the machine, the settings and the package versions of two runs differ; of one run, to the last."""
    if len(runs) not in (1, 2):
        raise InvalidInput("compares the environments of two runs", where="--env", remedy="name one or two runs")
    control, treatment = (*runs, "last")[:2]

    with Working("reading the runs"), open_results(base, store) as results:
        found = differences(results.run(control), results.run(treatment))
    if in_json() or format_ == "json":
        click.echo(json.dumps(msgspec.to_builtins(found), indent=1))
        return
    for difference in found:
        click.echo(f"{difference.what}: {difference.control} → {difference.treatment}")
    if not found:
        click.echo("no differences")


# `benchwright compare --machines`.


def _side_by_side(
    benchmarks: Sequence[str],
    relative_to: str | None,
    prices: Sequence[str],
    metrics: Sequence[str],
    format_: str | None,
    base: str | None,
    store: str | None,
) -> str:
    """`benchmarks`: a glob, or none for all."""
    if len(benchmarks) > 1 or len(metrics) > 1:
        raise InvalidInput("takes one glob of benchmarks and one --metric", where="--machines", remedy="name fewer")
    if format_ == "html":
        raise InvalidInput("has no html", where="--machines", remedy="see /machines/compare of: benchwright serve")
    with Working("reading the store"), open_results(base, store) as results:
        found = kept.machines.latest_by_machine(
            results.existing_store, metric=next(iter(metrics), None), benchmark=next(iter(benchmarks), None)
        )
    hosts = sorted({figure.host for figure in found})
    if relative_to is not None and relative_to not in hosts:
        remedy = did_you_mean(relative_to, hosts) or f"known: {', '.join(hosts)}"
        raise InvalidInput(f"no results of '{relative_to}'", where="--relative-to", remedy=remedy)
    if len(hosts) < 2:
        remedy = "store the results of another machine: see docs/how-to/share-results.md"
        raise InvalidInput("only one machine has results of it", where="--machines", remedy=remedy)
    made = machine_ratios(found, relative_to, dict(map(_price, prices)))
    table = ratio_table(made)
    about = f"ratios to {made.base}; over 1 is better there; no verdict, since machines differ in more than speed"
    if format_ == "csv":
        return csv_text([table], finite=True)
    if in_json() or format_ == "json":
        return json.dumps({"relative_to": made.base, "hosts": made.hosts, "rows": table.records()}, indent=1) + "\n"
    if format_ == "markdown":
        return f"{about}\n\n{markdown_table(table)}\n"
    return "\n".join([f" {about}", *table_lines(table, terminal_width()), *(f" {note}" for note in table.notes), ""])


def _need_machines(machines: bool) -> None:
    if not machines:
        raise InvalidInput("--relative-to and --price belong to --machines", where="compare", remedy="give it, too")


def _price(text: str) -> tuple[str, float]:
    host, _, price = text.rpartition("=")
    try:
        value = float(price)
    except ValueError:
        value = 0.0
    if not host or not 0 < value < float("inf"):
        raise InvalidInput(f"'{text}' is not HOST=PRICE", where="--price", remedy="such as --price node1=2.50")
    return host, value


@click.command(epilog="Example: benchwright compare --baseline main last --fail-on regressed")
@click.argument("runs", nargs=-1, metavar="CONTROL TREATMENT...")
@click.option("--baseline", metavar="NAME", help="Use this baseline as the control.")
@click.option(
    "--between", nargs=2, metavar="A B", help="Compare two benchmarks of ONE run that were measured interleaved."
)
@click.option(
    "--env",
    is_flag=True,
    help="Show instead how the machine, the settings and the packages of two runs differ; with one run, from the last.",
)
@click.option(
    "--machines",
    is_flag=True,
    help="Show instead the machines of the store side by side: ratios of their newest values, without a verdict.",
)
@click.option("--relative-to", metavar="HOST", help="Of --machines, the one to compare with.  [default: measured most]")
@click.option(
    "--price", "prices", multiple=True, metavar="HOST=PRICE", help="Of --machines, the price of an hour. Repeatable."
)
@click.option(
    "--margin",
    metavar="PERCENT",
    help="Differences up to this count as the same.  [default: 2%; of an A/B, its --min-effect]",
)
@click.option(
    "--run-to-run",
    metavar="PERCENT",
    help="Usual difference between separate runs of an unchanged program; smaller ones get no verdict.  [default: 5%]",
)
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this metric. Repeatable.")
@click.option("--all-metrics", is_flag=True, help="Also compare memory, CPU and process times.")
@click.option("--anyway", is_flag=True, help="Compare even runs of different machines or commands.")
@click.option(
    "--fail-on", type=click.Choice(["regressed", "inconclusive", "changed"]), help="Exit with 1 if any metric is."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["screen", "markdown", "csv", "json", "html"]),
    help="[default: by the file's ending, else screen]",
)
@output_option
@json_option("The same as --format json.")
@notify_option
@where_options
def command(
    runs: tuple[str, ...],
    baseline: str | None,
    between: tuple[str, str] | None,
    env: bool,
    machines: bool,
    relative_to: str | None,
    prices: tuple[str, ...],
    margin: str | None,
    run_to_run: str | None,
    metrics: tuple[str, ...],
    all_metrics: bool,
    anyway: bool,
    fail_on: str | None,
    format_: str | None,
    output: str | None,
    notify: tuple[str, ...],
    base: str | None,
    store: str | None,
) -> int:
    """Compare runs: for each metric the ratio, its confidence interval and a verdict.

    The first run is the control, the others are treatments. Runs of different machines or commands are refused without
    --anyway. To compare commands measured together (`run -c A -c B`) as pairs, use --between.
    """
    if machines or relative_to or prices:
        _need_machines(machines)
        put_out(_side_by_side(runs, relative_to, prices, metrics, format_, base, store), "screen", output)
        return 0
    if env:
        named = [f"baseline:{baseline}", *runs] if baseline else runs
        show_differences(named, base, store, format_)
        return 0

    format_ = chosen_format("compare", format_, output)
    words = _runs_to_compare(runs, baseline, between, run_to_run)
    receivers = targets(notify)
    with Working("reading the runs") as working:
        with open_results(base, store) as results:
            found = [results.run(word) for word in words]
            folder = results.base.path
        working.now("comparing")
        comparisons = kept.compare.compare_runs(
            found,
            between=between,
            margin=None if margin is None else parse_percentage(margin, where="--margin"),
            metrics=metrics,
            all_metrics=all_metrics,
            anyway=anyway,
            **({} if run_to_run is None else {"run_to_run": parse_percentage(run_to_run, where="--run-to-run")}),
        )
        text = kept.compare.render(comparisons, found, format_, terminal_width())
    put_out(text, format_, output)
    code = _code_of(comparisons, fail_on)
    if not receivers:
        return code
    from benchwright.regress.notify.notice import notice_of

    return tell(notice_of(comparisons, topic="compare"), receivers, folder, code)


def _code_of(comparisons: Sequence[Comparison], fail_on: str | None) -> int:
    """The exit code; says which comparisons failed."""
    from benchwright.report.comparison import count_words

    failed = [c for c in comparisons if fail_on and kept.compare.failing(c, fail_on)]
    for comparison in failed:
        why = "; ".join([count_words(comparison), *comparison.lost])
        click.echo(f"benchwright: --fail-on {fail_on}: {comparison.treatment}: {why}", err=True)
    return 1 if failed else 0


def _refuse_scripts(words: Sequence[str]) -> None:
    """InvalidInput with the line that measures and compares them, where scripts are named instead of runs."""
    if len(words) == 2 and all(word.endswith(".py") and os.path.isfile(word) for word in words):
        commands = shlex.join(word for script in words for word in ("-c", shlex.join(["python", script])))
        raise InvalidInput(
            "are scripts, not runs",
            where=" and ".join(words),
            remedy=f"to measure and compare them: benchwright run --repeat 20 {commands}",
        )


def _runs_to_compare(
    runs: tuple[str, ...], baseline: str | None, between: tuple[str, str] | None, run_to_run: str | None
) -> list[str]:
    words = ([f"baseline:{baseline}"] if baseline else []) + list(runs)
    if len(words) == (0 if between else 1) and (between or baseline):
        words.append("last")
    _refuse_scripts(runs)
    if between and len(words) != 1:
        raise InvalidInput("--between compares two benchmarks of one run", where="compare", remedy="name one run")
    if between and run_to_run is not None:
        raise InvalidInput(
            "--run-to-run is about separate runs, and --between compares pairs of one run",
            where="--run-to-run",
            remedy="leave it out",
        )
    if not between and len(words) < 2:
        remedy = "name two runs, such as: benchwright compare BEFORE last; 'benchwright runs' lists them"
        raise InvalidInput("there is nothing to compare with", where="compare", remedy=remedy)
    return words
