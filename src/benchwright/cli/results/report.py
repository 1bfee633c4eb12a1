"""`benchwright report`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from benchwright import results as kept
from benchwright.cli.answer import in_json, json_option
from benchwright.cli.options import label_pairs, options
from benchwright.cli.results.output import chosen_format, output_option, put_out
from benchwright.cli.spinner import Working
from benchwright.cli.store_options import open_results
from benchwright.cli.terminal import coloured, terminal_width
from benchwright.core.errors import InvalidInput
from benchwright.options.table import OPTIONS, Options
from benchwright.report.score_rule import SCORES
from benchwright.runs.base_folder import BaseFolder

if TYPE_CHECKING:
    from benchwright.core.comparison import Comparison
    from benchwright.core.run import Run
    from benchwright.report.base import Report

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

_OPTIONS = [
    click.option(
        "--score",
        type=click.Choice(["ours", *SCORES.names()]),
        help="Scoring rule: ours (medians after warm-up, failures left out) or that of another tool.  [default: ours]",
    ),
    click.option(
        "--config",
        metavar="SUITE",
        help="Use the weights of this suite; its benchmarks that the run lacks count as missing.",
    ),
    click.option(
        "--price",
        type=click.FloatRange(min=0, min_open=True),
        metavar="PRICE",
        help="Price of the machine, to show the price per point.",
    ),
    click.option(
        "--per-device",
        "--compare-gpus",
        "--compare_gpus",
        "per_device",
        is_flag=True,
        help="Compare each device with the best one.",
    ),
    click.option("--compare", metavar="RUN", help="Show this run's scores beside these, as ratios."),
]


class FormatOption(click.Option):
    """Its help lists the built-in formats, and formats of installed packages."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from benchwright.report.registry import REPORTERS

        names = [name for name in REPORTERS.built_in if name != "screen"]
        self.help = (self.help or "").replace("{names}", ", ".join(names))
        record = super().get_help_record(ctx)
        added = ", ".join(f"{name} ({entry.package})" for name, entry in REPORTERS.plugins().items())
        return (record[0], f"{record[1]} Installed besides: {added}.") if record and added else record


def scoring_options(function: AnyFunction) -> AnyFunction:
    """`--score`, `--config`, `--price`, `--per-device` and `--compare`."""
    for add in reversed(_OPTIONS):
        function = add(function)
    return function


@click.command(
    epilog="""\b
Examples:
  benchwright report last -o report.html
  benchwright report --cache-dir A B --report-dir reports
"""
)
@click.argument("runs", nargs=-1)
@click.option(
    "-d",
    "--cache-dir",
    "caches",
    multiple=True,
    metavar="DIR",
    help="Report all results of models in this cache folder as one corpus. Repeatable, or name several.",
)
@click.option("--all", "everything", is_flag=True, help="The same for the base folder.")
@click.option(
    "-r", "--report-dir", metavar="DIR", help="Write the corpus report there: YYYY-MM-DD.csv, .html, .md and .json."
)
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Of a corpus only models with this label. Repeatable."
)
@click.option(
    "--format",
    "format_",
    cls=FormatOption,
    help="{names} or screen, which is the default.",
)
@click.option("--sort", type=click.Choice(["status", "name", "duration"]), default="status", show_default=True)
@output_option
@json_option("The same as --format json.")
@click.option("--html", metavar="FILE", help="The same as --format html --output FILE.")
@scoring_options
@click.option("--base", metavar="DIR", help=OPTIONS["base"].help.replace(", also --cache-dir", ""))
@options(store="Store to use.  [default: $BENCHWRIGHT_STORE, else store.db in the base folder]")
def command(
    runs: tuple[str, ...],
    caches: tuple[str, ...],
    everything: bool,
    report_dir: str | None,
    labels: tuple[str, ...],
    format_: str | None,
    sort: str,
    output: str | None,
    html: str | None,
    base: str | None,
    store: str | None,
    **scoring: object,
) -> None:
    """Report RUNS: `last` (the default), a name, the beginning of one, or a folder.

    For a suite: a line per benchmark, the failures, and the score. For a corpus: success and speed-up of each runtime, how far
    models get and why no further, and their times; after a run of one, that of all results, with YYYY-MM-DD.csv written here.
    """
    from benchwright.report.multi_run import render_several
    from benchwright.report.registry import reporter_named

    if html is not None:
        if output is not None or in_json() or format_ not in (None, "html"):
            raise InvalidInput(
                "--html names a format and a file", where="report", remedy="drop --format, --json and -o"
            )
        format_, output = "html", html
    plain = not (runs or format_ or output or in_json() or store or any(scoring.values()))
    format_ = chosen_format("report", format_, output)
    if plain and not (caches or everything or report_dir or labels) and _ended_with_corpus(base):
        _report_corpus(_caches((), (), base), (), format_, None, ".", table_only=True)
        click.echo(" the last run alone: benchwright report last", err=True)
        return
    if caches or everything or report_dir is not None or labels:
        found_in = _caches(caches, runs, base)
        _report_corpus(found_in, label_pairs(labels), format_, output, report_dir)
        return
    reporter = reporter_named(format_)
    with Working("reading the runs") as working:
        with open_results(base, store) as results:
            named = results.each(runs or ("last",))
            nodes = kept.fan_outs.fan_out_folder(named[0]) if runs in ((), ("last",)) else None
            named = kept.fan_outs.runs_of(nodes) if nodes is not None else named
            found = [kept.after_run.sorted_by(run, sort) for run in named]
            asked = scoring_of(scoring, results, base)
            peaks = kept.peaks.peaks_for(found, results)
            logs = [results.stored_logs(run) for run in found]
        working.now("writing the report")
        width, with_logs = terminal_width(), format_ == "html"
        built = partial(_report, width=width, with_logs=with_logs, scoring=asked)
        reports = [built(run, peaks=peaks.get(run.id), stored_logs=log) for run, log in zip(found, logs, strict=True)]
        rule = kept.scores.rule_named(asked.rule)
        pooled = rule.pooled(found) if rule is not None else None
        together = built(kept.after_run.sorted_by(pooled, sort), comparisons=()) if pooled is not None else None
        if together is None and nodes is not None:
            together = kept.fan_outs.joint_report(nodes, found, width=width)
        text = render_several(reporter, reports, together)
    put_out(text, format_, output)


def _report(run: Run, *, comparisons: Sequence[Comparison] | None = None, **options: Any) -> Report:
    """`comparisons`: between its commands, if they are not given."""
    compared = kept.compare.compare_commands(run) if comparisons is None else comparisons
    return kept.after_run.report_of(run, comparisons=compared, **options)


def _caches(caches: tuple[str, ...], words: tuple[str, ...], base: str | None) -> list[str]:
    """The cache folders that were named; several may follow one option."""
    for text in words:
        if not kept.corpora.is_cache(text):
            raise InvalidInput(
                "is not a cache folder",
                where=text,
                remedy="a corpus has all runs of its caches: leave it out, or report this run alone with --base instead of --cache-dir",
            )
    return [*caches, *words] or [str(BaseFolder.choose(base, os.environ).path)]


def _ended_with_corpus(base: str | None) -> bool:
    """Whether the last run is one of a corpus; its report is then that of the cache."""
    with open_results(base, None) as results:
        return kept.corpora.is_corpus(results.run("last"))


def _report_corpus(
    caches: list[str],
    labels: tuple[tuple[str, str], ...],
    format_: str,
    output: str | None,
    report_dir: str | None,
    *,
    table_only: bool = False,
) -> None:
    width = terminal_width()
    with Working("reading the runs") as working:
        report = kept.corpora.corpus_report(caches, labels)
        working.now("writing the report")
        if report_dir is None:
            written = []
        else:
            written = (
                kept.corpora.write_table(report, report_dir)
                if table_only
                else kept.corpora.write_all(report, report_dir, width=width)
            )
        text = kept.corpora.rendered(report, format_, width=width)
    put_out(text, format_, output)
    if written:
        click.echo(coloured(f" saved: {', '.join(written)}"), err=format_ != "screen" or output is not None)


def scoring_of(values: dict[str, Any], results: Any, base: str | None) -> kept.scores.Scoring:
    """The scoring that the options ask for; `results` finds the run to compare with."""
    return kept.scores.Scoring(
        rule=values["score"],
        weights=None if values["config"] is None else _weights(values["config"], base),
        price=values["price"],
        per_device=values["per_device"],
        against=None if values["compare"] is None else results.run(values["compare"]),
    )


def _weights(suite: str, base: str | None) -> dict[str, float]:
    from benchwright.kinds.suite.suites import every_benchmark

    folder = BaseFolder.choose(base, os.environ)
    return kept.scores.weights_of(every_benchmark(suite, Options(base=str(folder.path))))
