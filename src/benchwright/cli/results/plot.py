"""`benchwright plot`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from benchwright.cli.terminal import coloured, terminal_width
from benchwright.cli.where import open_results, where_options
from benchwright.core.errors import InvalidInput, did_you_mean

if TYPE_CHECKING:
    from benchwright.app.results.kept_runs import Results
    from benchwright.core.run import Run

_MOST = 6  # benchmarks of a run that are drawn unless they are named


@click.command(
    epilog="""\b
Examples:
  benchwright plot                      the last run
  benchwright plot last 'resnet*'       one of its benchmarks
  benchwright plot resnet50             a benchmark over the runs that measured it"""
)
@click.argument("words", nargs=-1, metavar="[RUN] [BENCH]...")
@click.option("--metric", metavar="NAME", help="Draw this metric.  [default: the one the benchmark is known by]")
@click.option("--history", is_flag=True, help="Draw BENCH over runs, even if a run has the same name.")
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="Runs of a history.")
@where_options
def command(
    words: tuple[str, ...], metric: str | None, history: bool, limit: int, base: str | None, store: str | None
) -> None:
    """Draw in the terminal: a RUN's samples and their distribution, or a benchmark BENCH over its runs.

    BENCH may be a glob. The first word is a run if one is called so, or a benchmark.
    """
    from benchwright.app.after_run import report_of
    from benchwright.report.plots import run_plot

    with open_results(base, store) as results:
        run = None if history else _run(results, words)
        if run is None:
            text = _history(results, words, metric, limit)
        else:
            numbers = _meant(run, words[1:], metric)
            most = len(numbers) if len(words) > 1 else _MOST
            text = run_plot(report_of(run, width=terminal_width()), numbers, metric, most=most)
    click.echo(coloured(text), nl=False)


def _run(results: Results, words: Sequence[str]) -> Run | None:
    """The run that is meant; None if the first word can only be a benchmark."""
    try:
        return results.run(words[0] if words else "last")
    except InvalidInput:
        if not words or words[0] == "last" or words[0].startswith("baseline:") or "/" in words[0]:
            raise
        return None


def _meant(run: Run, globs: Sequence[str], metric: str | None) -> list[int]:
    """The numbers of the benchmarks that the globs name, all if there are none."""
    names = [r.benchmark.name for r in run.results]
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in names):
            remedy = did_you_mean(glob, names) or f"it measured {', '.join(names)}"
            raise InvalidInput(f"{run.id} did not measure '{glob}'", where="plot", remedy=remedy)
    meant = [n for n, name in enumerate(names) if not globs or any(fnmatchcase(name, glob) for glob in globs)]
    known = {m.metric for n in meant for x in run.results[n].launches for m in x.measurements}
    if metric is not None and metric not in known:
        remedy = did_you_mean(metric, known) or f"it measured {', '.join(sorted(known))}"
        raise InvalidInput(f"{run.id} did not measure '{metric}'", where="--metric", remedy=remedy)
    return meant


def _history(results: Results, globs: Sequence[str], metric: str | None, limit: int) -> str:
    from benchwright.app.results.history import past_results
    from benchwright.report.plots import history_plot

    if not globs:
        raise InvalidInput(
            "--history needs a benchmark", where="plot", remedy="name one, such as: bw plot --history train"
        )
    blocks = []
    for glob in globs:
        found = past_results(results, glob, metric, limit)
        if not found:
            raise InvalidInput(
                f"neither a run nor a benchmark is called '{glob}'", where="plot", remedy="see 'benchwright runs'"
            )
        blocks += [history_plot(name, past, terminal_width()) for name, past in found.items()]
    return "\n".join(blocks)
