"""`benchwright bisect`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from benchwright import regress, runner
from benchwright.cli.answer import answer, in_json
from benchwright.cli.options import REPO_DIR_HELP, OwnFirstCommand, order_from, target_options
from benchwright.cli.terminal import coloured, terminal_width
from benchwright.core.errors import InvalidInput
from benchwright.core.quantities import parse_duration, parse_percentage
from benchwright.kinds.metric_option import parse_metric_option
from benchwright.regress.builds import BuildRecipe, checked_recipe
from benchwright.runs.base_folder import BaseFolder

if TYPE_CHECKING:
    from benchwright.runner.progress import Progress

_EXAMPLES = """\b
Examples:
  benchwright bisect v1.2 main -- python bench.py
  benchwright bisect HEAD~64 HEAD suite.yaml --select resnet50 --build 'pip install -e .'
  benchwright bisect v1.2 main --metric process.cpu_time --budget 30m -- ./app --size 100
  benchwright bisect --resume --budget 1h
"""
_WORDS = "benchwright.words"
_OWN = ("build", "repo_dir", "metrics", "posterior", "min_effect", "budget", "most_launches", "direction", "resume")


class _BisectCommand(OwnFirstCommand):
    """`--resume` without anything else goes on with the newest bisection of this folder."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--resume" in args and "--" not in args:
            args = self._with_resumed(ctx, args)
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def _with_resumed(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            given = self.make_parser(ctx).parse_args(list(args))[0]
        except click.UsageError:
            return args  # said when it is parsed again
        if isinstance(given.get("good"), str):
            return args

        base = given.get("base")
        base = BaseFolder.choose(base if isinstance(base, str) else None, os.environ)
        return regress.bisect.words_to_resume(base, os.getcwd(), args)


@click.command(cls=_BisectCommand, epilog=_EXAMPLES)
@click.argument("good")
@click.argument("bad")
@click.option(
    "--build", metavar="LINE", help="Shell line that builds a commit, run in its own worktree and environment."
)
@click.option("--repo-dir", metavar="DIR", help=f"{REPO_DIR_HELP}  [default: this folder]")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[=PATTERN]",
    help="Metric to bisect; with a PATTERN, read it from the output.  [default: what the target is about]",
)
@click.option(
    "--direction",
    type=click.Choice(["worse", "better", "either"]),
    default="worse",
    show_default=True,
    help="What the commit did to the metric.",
)
@click.option(
    "--posterior",
    type=click.FloatRange(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Stop when a commit has this chance.",
)
@click.option(
    "--min-effect",
    metavar="PERCENT",
    default="1%",
    show_default=True,
    help="Smallest change that matters; a smaller one between GOOD and BAD does not count.",
)
@click.option("--budget", metavar="TIME", help="Stop after this long, builds included, such as 30m.")
@click.option("--most-launches", type=click.IntRange(6), default=200, show_default=True, help="Stop after this many.")
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with a bisection that was stopped: this one or, without GOOD and BAD, the newest of this folder.",
)
@target_options("bisect")
@click.pass_context
def command(ctx: click.Context, /, good: str, bad: str, targets: tuple[str, ...], **values: Any) -> int:
    """Find the commit after GOOD, up to BAD, that made TARGET slower, larger or less accurate.

    Exit code: 0 found, 1 not found (no change, or a limit was reached), 2 wrong input, 3 could not measure, 130 interrupted.
    """
    own = {name: values.pop(name) for name in _OWN} | {"words": ctx.meta[_WORDS]}
    values["metrics"] = tuple(metric for metric in own["metrics"] if "=" in metric)
    order = order_from(ctx, values, targets)
    quiet = values["quiet"] or in_json()
    with runner.terminal.open_progress(quiet=quiet, verbose=values["verbose"]) as progress:
        progress.begin("reading the repository")
        found = regress.bisect.bisect(_bisect_order(order, good, bad, own), _watching(progress, quiet=quiet))
    answer(
        lambda: regress.bisect_report.outcome_body(found),
        lambda: coloured(regress.bisect_report.outcome_text(found, terminal_width())),
    )
    return 0 if found.found else 1


def _name(metric: str) -> str:
    """Of NAME, or of NAME[unit,…]=PATTERN."""
    return parse_metric_option(metric).name if "=" in metric else metric


def _bisect_order(order: Any, good: str, bad: str, own: dict[str, Any]) -> regress.bisect.BisectOrder:
    if len(own["metrics"]) > 1:
        raise InvalidInput("only one metric can be bisected", where="--metric", remedy="name one")
    options = order.options
    if not (options.targets or options.command):
        raise InvalidInput("there is no target", remedy="name one, or write a command after --")
    return regress.bisect.BisectOrder(
        order=order,
        good=good,
        bad=bad,
        repository=own["repo_dir"],
        recipe=checked_recipe(BuildRecipe(command=own["build"], python=options.python)),
        metric=_name(own["metrics"][0]) if own["metrics"] else None,
        wanted=own["direction"],
        posterior=own["posterior"],
        least=parse_percentage(own["min_effect"], where="--min-effect"),
        budget_s=None if own["budget"] is None else parse_duration(own["budget"], where="--budget"),
        most_launches=own["most_launches"],
        resume=own["resume"],
        words=own["words"],
    )


def _watching(progress: Progress, *, quiet: bool) -> regress.bisect.BisectObserver:
    """Shows builds in the panel, and each step as a line of standard error."""

    class Watching(regress.bisect.BisectObserver):
        def on_begun(self, state: regress.bisect.BisectState) -> None:
            self._say(regress.bisect_report.head_text(state, terminal_width()))

        def on_narrowed(self, state: regress.bisect.BisectState, found: regress.bisect.BisectOutcome) -> None:
            self._say(f"{regress.bisect_report.step_line(state, found, terminal_width())}\n")

        def on_step(self, name: str, what: str, log: str | None = None) -> None:
            progress.begin(f"{name}: {what}")

        def on_trouble(self, text: str) -> None:
            progress.on_trouble(text)

        def _say(self, text: str) -> None:
            if not quiet:
                with progress.aside():
                    click.echo(text, nl=False, err=True)

    return Watching()
