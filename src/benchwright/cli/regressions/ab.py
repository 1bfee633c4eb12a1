"""`benchwright ab`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from benchwright import regress, runner
from benchwright.cli.answer import in_json
from benchwright.cli.options import REPO_DIR_HELP, OwnFirstCommand, order_from, target_options
from benchwright.cli.regressions import notify_options
from benchwright.cli.regressions.decision_options import decision_of, decision_options
from benchwright.cli.results.output import by_ending, put_out
from benchwright.cli.terminal import coloured, show, terminal_width
from benchwright.core.comparison import Verdict
from benchwright.core.errors import InvalidInput
from benchwright.core.revision import parse_revision
from benchwright.report.tables.ab import ab_text

if TYPE_CHECKING:
    from benchwright.core.decision import Decision
    from benchwright.executors.observer import Observer
    from benchwright.regress.ab import AbOutcome
    from benchwright.runner.run import RunOrder

_EXAMPLES = """\b
Examples:
  benchwright ab suite.yaml --control main --build 'pip install -e .'
  benchwright ab --control main --treatment HEAD -- python bench.py
  benchwright ab --control env:OMP_NUM_THREADS=1 --treatment env:OMP_NUM_THREADS=2 train.py
  benchwright ab --control bin:./old --treatment bin:./new -- app --size 100
  benchwright ab --control 'cmd:python old.py' --treatment 'cmd:python new.py'
  benchwright ab openai:http://new:8000/v1 --control openai:http://old:8000/v1 --model NAME
"""
_OWN = (
    *("control", "treatment", "build", "repo_dir", "fail_on"),
    *("output", "markdown", "junit", "notify", "explain"),
)


@click.command(cls=OwnFirstCommand, epilog=_EXAMPLES)
@click.option(
    "--control",
    metavar="REVISION",
    help="What to compare with: a commit, branch or tag; pip:PACKAGES, env:NAME=VALUE, args:WORDS, bin:PROGRAM, cmd:COMMAND or openai:URL.",
)
@click.option(
    "--treatment", metavar="REVISION", help="What to judge, as --control.  [default: the target as it is here]"
)
@click.option(
    "--build", metavar="LINE", help="Shell line that builds a commit, run in its own worktree and environment."
)
@click.option("--repo-dir", metavar="DIR", help=f"{REPO_DIR_HELP}  [default: this folder]")
@decision_options
@click.option(
    "--fail-on",
    type=click.Choice(["regressed", "inconclusive", "changed"]),
    default="regressed",
    show_default=True,
    help="Exit with 1 if any metric is; also on regressions.",
)
@click.option(
    "-o",
    "--output",
    multiple=True,
    metavar="FILE",
    help="Also write FILE: .md, .html, .csv, .json or .txt. Repeatable.",
)
@click.option("--markdown", multiple=True, metavar="FILE", help="Also write FILE as Markdown, for a pull request.")
@click.option("--junit", multiple=True, metavar="FILE", help="Also write FILE as JUnit XML, for a CI server.")
@click.option(
    "--explain", is_flag=True, help="If it regressed, say why: launch both sides again, profiled, and see what differs."
)
@notify_options.notify_option
@target_options("ab")
@click.pass_context
def command(ctx: click.Context, /, targets: tuple[str, ...], **values: Any) -> int:
    """Is the treatment slower than the control? Measures both by turns, until the answer is clear.

    Exit code: 0 fine, 1 regressed, 2 wrong input, 3 could not measure, 130 interrupted (resumable).
    """
    own = {name: values.pop(name) for name in _OWN}
    decision = decision_of(values)
    if own["control"] is None:
        _refuse_bare_revisions(targets, ctx.meta.get("command", ()))
    order = order_from(ctx, values, targets)
    files = _files(own)
    receivers = notify_options.targets((*own["notify"], *(f"junit:{file}" for file in own["junit"])))
    with runner.terminal.open_progress(quiet=values["quiet"] or in_json(), verbose=values["verbose"]) as progress:
        progress.begin("getting ready")
        if order.resume is not None and own["control"] is None:
            outcome = regress.ab.outcome_of(regress.ab.run_sides(order, progress), fail_on=own["fail_on"])
        else:
            outcome = regress.ab.run_ab(_ab_order(order, own, decision), progress)
        why = _explained(outcome, order, progress) if own["explain"] else ""
    show(_report(outcome, "json" if in_json() else "screen"))
    if in_json():
        click.echo(why, nl=False, err=True)
    else:
        show(why)
    for file, format_ in files.items():
        put_out(_report(outcome, format_), format_, file)
    if not receivers:
        return outcome.exit_code
    return notify_options.tell(outcome.notice(), receivers, order.base.path, outcome.exit_code)


def _refuse_bare_revisions(targets: Sequence[str], command: Sequence[str]) -> None:
    """InvalidInput with the line that compares them, where commits are named as for git diff."""
    if not command or not 1 <= len(targets) <= 2 or any(map(os.path.exists, targets)):
        return
    sides = [word for pair in zip(("--control", "--treatment"), targets, strict=False) for word in pair]
    raise InvalidInput(
        "is no target",
        where=" ".join(targets),
        remedy=f"to compare commits: {shlex.join(['benchwright', 'ab', *sides, '--', *command])}",
    )


def _explained(outcome: AbOutcome, order: RunOrder, observer: Observer) -> str:
    """Why it regressed, for the screen."""
    if outcome.verdict is not Verdict.REGRESSED:
        return ""
    asked = regress.explain_pairs.ExplainOrder(
        runs=(outcome.run,), base=order.base, store=order.options.store, profile=True, profile_or_fail=False
    )
    width = terminal_width()
    return "".join(
        f"\n{regress.explain_report.explanation_text(each, width=width)}"
        for each in regress.explain_pairs.explanations(asked, observer)
    )


def _files(own: dict[str, Any]) -> dict[str, str]:
    """Files to write, with their formats; InvalidInput before anything is measured."""
    files = {file: by_ending(file) for file in own["output"]}
    files |= dict.fromkeys(own["markdown"], "markdown")
    for file, format_ in files.items():
        folder = os.path.dirname(os.path.abspath(file))
        if os.path.isdir(file) or not os.path.isdir(folder):
            what = f"{file} is a folder" if os.path.isdir(file) else f"there is no folder {folder}"
            raise InvalidInput(what, where=f"-o ({format_})", remedy="name a file in a folder that exists")
    return files


def _ab_order(order: RunOrder, own: dict[str, Any], decision: Decision) -> regress.ab.AbOrder:
    if own["control"] is None:
        remedy = "name it, such as --control main; for the noise of this machine: --control args: --treatment args:"
        raise InvalidInput("there is nothing to compare with", where="--control", remedy=remedy)
    treatment = own["treatment"]
    return regress.ab.AbOrder(
        order=order,
        control=parse_revision(own["control"], "--control"),
        treatment=None if treatment is None else parse_revision(treatment, "--treatment"),
        repository=own["repo_dir"],
        recipe=regress.builds.checked_recipe(
            regress.builds.BuildRecipe(command=own["build"], python=order.options.python)
        ),
        decision=decision,
        fail_on=own["fail_on"],
    )


def _report(outcome: AbOutcome, format_: str) -> str:
    if format_ == "screen":
        width = terminal_width()
        return coloured(f"{ab_text(outcome.table, width=width)} saved: {outcome.run.folder}\n")
    return outcome.rendered(format_)
