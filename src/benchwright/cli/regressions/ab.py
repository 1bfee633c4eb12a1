"""`benchwright ab`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from benchwright.cli.options import TargetCommand, order_from, target_options
from benchwright.cli.terminal import coloured, forget_stdout, terminal_width
from benchwright.core.errors import InvalidInput

if TYPE_CHECKING:
    from benchwright.app.regressions.ab import AbOrder, AbOutcome
    from benchwright.app.run import RunOrder
    from benchwright.core.decision import Decision

_EXAMPLES = """\b
Examples:
  benchwright ab suite.yaml --control main --build 'pip install -e .'
  benchwright ab --control main --treatment HEAD -- python bench.py
  benchwright ab --control env:OMP_NUM_THREADS=1 --treatment env:OMP_NUM_THREADS=2 train.py
  benchwright ab --control bin:./old --treatment bin:./new -- app --size 100
  benchwright ab --control 'cmd:python old.py' --treatment 'cmd:python new.py'
"""
# They change how two sides are launched, which is fixed here; or have a narrower meaning.
_WITHOUT = ("commands", "interleave", "turns", "repeat", "metrics", "platform", "device_names", "excluded_devices")
_OWN = ("control", "treatment", "build", "repo_dir", "budget", "min_effect", "alpha", "repeat")


@click.command(cls=TargetCommand, epilog=_EXAMPLES)
@click.option(
    "--control",
    metavar="REVISION",
    help="What to compare with: a commit, branch or tag; env:NAME=VALUE, args:WORDS, bin:PROGRAM or cmd:COMMAND.",
)
@click.option(
    "--treatment", metavar="REVISION", help="What to judge, as --control.  [default: the target as it is here]"
)
@click.option(
    "--build", metavar="LINE", help="Shell line that builds a commit, run in its own worktree and environment."
)
@click.option("--repo-dir", metavar="DIR", help="Folder of the repository.  [default: this one]")
@click.option("--budget", metavar="TIME", default="10m", show_default=True, help="Measure for at most this long.")
@click.option(
    "--min-effect",
    metavar="PERCENT",
    default="1%",
    show_default=True,
    help="Smallest change that matters; less counts as the same.",
)
@click.option(
    "--alpha", metavar="PERCENT", default="1%", show_default=True, help="Chance of a false verdict in the whole table."
)
@click.option(
    "--repeat", metavar="N", type=click.IntRange(6), help="Exactly N launches a side.  [default: until it is clear]"
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[=PATTERN]",
    help="Only this metric; with a PATTERN, read it from the output. Repeatable.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regressed", "inconclusive", "changed"]),
    default="regressed",
    show_default=True,
    help="Exit with 1 if any metric is; also on regressions.",
)
@target_options(without=_WITHOUT)
@click.pass_context
def command(ctx: click.Context, /, targets: tuple[str, ...], **values: Any) -> int:
    """Is the treatment slower than the control? Measures both by turns, until the answer is clear.

    Exit code: 0 fine, 1 regressed, 2 wrong input, 3 could not measure, 130 interrupted (resumable).
    """
    from benchwright.app.progress.terminal import open_progress
    from benchwright.app.regressions.ab import outcome_of, run_ab
    from benchwright.app.run import run

    own = {name: values.pop(name) for name in _OWN}
    fail_on, metrics = values.pop("fail_on"), values.pop("metrics")
    own["metrics"] = tuple(metric for metric in metrics if "=" not in metric)
    values["metrics"] = tuple(metric for metric in metrics if "=" in metric)
    order = order_from(ctx, values, targets)
    as_json = values["as_json"]
    with open_progress(quiet=values["quiet"] or as_json, verbose=values["verbose"]) as progress:
        progress.begin("getting ready")
        if order.resume is not None and own["control"] is None:
            outcome = outcome_of(run(order, progress), fail_on=fail_on)
        else:
            outcome = run_ab(_ab_order(order, own, fail_on), progress)
    try:
        click.echo(_report(outcome, as_json=as_json), nl=False)
    except BrokenPipeError:
        forget_stdout()  # nobody reads the report (`| head`); the exit code tells the verdict all the same
    return outcome.exit_code


def _ab_order(order: RunOrder, own: dict[str, Any], fail_on: str) -> AbOrder:
    from benchwright.app.regressions.ab import AbOrder
    from benchwright.core.inputs.revision import parse_revision
    from benchwright.regress.builds import BuildRecipe, checked_recipe

    if own["control"] is None:
        remedy = "name it, such as --control main; for the noise of this machine: --control args: --treatment args:"
        raise InvalidInput("there is nothing to compare with", where="--control", remedy=remedy)
    treatment = own["treatment"]
    return AbOrder(
        order=order,
        control=parse_revision(own["control"], "--control"),
        treatment=None if treatment is None else parse_revision(treatment, "--treatment"),
        repository=own["repo_dir"],
        recipe=checked_recipe(BuildRecipe(command=own["build"], python=order.request.python)),
        decision=_decision(own),
        fail_on=fail_on,
    )


def _decision(own: dict[str, Any]) -> Decision:
    from benchwright.core.decision import Decision
    from benchwright.core.numbers.quantities import parse_duration, parse_percentage

    margin = parse_percentage(own["min_effect"], where="--min-effect")
    alpha = parse_percentage(own["alpha"], where="--alpha")
    if own["repeat"] is not None:
        return Decision(alpha=alpha, margin=margin, most_blocks=own["repeat"], looks=(own["repeat"],))
    return Decision(alpha=alpha, margin=margin, budget_s=parse_duration(own["budget"], where="--budget"))


def _report(outcome: AbOutcome, *, as_json: bool) -> str:
    from benchwright.report.tables.ab import ab_text

    if as_json:
        from benchwright.app.results.compare import render

        return render([outcome.table], [outcome.run], "json", 80)
    return coloured(ab_text(outcome.table, width=terminal_width()))
