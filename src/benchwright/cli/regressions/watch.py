"""`benchwright watch`."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from benchwright import regress, runner
from benchwright.cli.answer import in_json, json_option
from benchwright.cli.options import REPO_DIR_HELP, Count, OwnFirstCommand, order_from, target_options
from benchwright.cli.regressions.decision_options import decision_of, decision_options
from benchwright.cli.regressions.notify_options import notify_option
from benchwright.cli.regressions.notify_options import targets as targets_of_notices
from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.quantities import parse_duration
from benchwright.options.values import comma_words
from benchwright.regress.builds import BuildRecipe, checked_recipe
from benchwright.regress.watch.control import Against
from benchwright.runs.provenance.working_trees import WORKING_TREES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchwright.core.decision import Decision
    from benchwright.regress.watch.records import CommitRecord
    from benchwright.regress.watch.watch import WatchOrder
    from benchwright.runner.run import RunOrder

_EXAMPLES = """\b
Examples:
  benchwright watch --repo-dir . --build 'pip install -e .' -- python bench.py
  benchwright watch --repo-dir ~/app --build make --interval 10m suite.yaml
  benchwright watch --repo-dir . --list -- python bench.py
  benchwright watch --repo-dir ~/pytorch --frameworks-dir frameworks
      --framework caffe2 --platforms host --exec-dir programs squeezenet.json
"""
_OWN = (
    *("repo_dir", "build", "repo", "remote_repository", "branch", "commit", "commit_file", "base_commit", "against"),
    *("step", "interval", "status_file", "same_host", "frameworks_dir", "exec_dir", "platforms", "ab_testing"),
)


@click.command(cls=OwnFirstCommand, epilog=_EXAMPLES)
@click.option("--repo-dir", metavar="DIR", required=True, help=f"{REPO_DIR_HELP} Its working tree is left alone.")
@click.option("--build", metavar="LINE", help="Shell line that builds a commit, run in its own tree and environment.")
@click.option(
    "--interval",
    metavar="TIME",
    help="Go on for ever, at least this long between runs, such as 10m.  [default: one pass]",
)
@click.option("--remote-repository", metavar="NAME", help="Remote to fetch from.  [default: origin, if there is one]")
@click.option("--branch", metavar="NAME", help="Branch to watch.  [default: the remote's own]")
@click.option(
    "--commit", metavar="COMMIT", help="First commit to measure, or a branch.  [default: the branch's newest commit]"
)
@click.option(
    "--commit-file",
    metavar="FILE",
    help="Keeps the last commit finished; the next run goes on after it.  [default: in the base folder]",
)
@click.option(
    "--base-commit", metavar="COMMIT", help="Compare with this commit, where it is later than the week's first."
)
@click.option(
    "--against",
    type=click.Choice(["week", "parent"]),
    default="week",
    help="Compare with the first commit of the week (Monday, UTC), or with the one before.  [default: week]",
)
@click.option("--step", metavar="N", type=Count(1), default=1, help="Measure one commit in N.  [default: 1]")
@click.option("--status-file", metavar="FILE", help="Stop after the commit in hand once this file holds 0.")
@click.option("--same-host", is_flag=True, help="Never build while measuring.  [default: if measured on this machine]")
@click.option("--frameworks-dir", metavar="DIR", help="Build with DIR/FRAMEWORK/PLATFORM/build.sh.")
@click.option("--exec-dir", metavar="DIR", help="Folder for programs that build.sh makes.")
@click.option(
    "--platforms",
    "--platform",
    "platforms",
    multiple=True,
    metavar="NAME,NAME",
    help="Platforms to build for and run on.",
)
@click.option(
    "--repo",
    type=click.Choice(["git", *WORKING_TREES.names()]),
    default="git",
    help="Kind of repository.  [default: git]",
)
@click.option(
    "--ab-testing/--no-ab-testing",
    default=True,
    help="Compare each commit with a control, or only measure it.  [default: compare]",
)
@click.option("--regression", is_flag=True, hidden=True, expose_value=False, help="Accepted: it always looks for them.")
@click.option("--list", "only_list", is_flag=True, help="List the new commits and their controls; measure nothing.")
@click.option(
    "--acknowledge",
    metavar="COMMIT",
    help="Accept what this commit was called for; measure nothing. It fails no more, unless it gets worse.",
)
@click.option(
    "--forget",
    metavar="COMMIT",
    help="Take back what this commit was called for; measure nothing. It may be called anew.",
)
@decision_options
@notify_option
@json_option("Print a line of JSON for each commit.")
@target_options("watch")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    targets: tuple[str, ...],
    only_list: bool,
    acknowledge: str | None,
    forget: str | None,
    **values: Any,
) -> int:
    """Measure each new commit of a repository against a control, and tell of regressions.

    One pass, unless --interval is given. A regression is called only after a second run confirmed it. Exit code: 0 fine,
    1 a commit regressed, broke or could not be built, 2 wrong input, 3 could not measure, 130 interrupted.
    """
    from benchwright.cli.regressions.watch_output import WatchScreen, marked_text

    own = {name: values.pop(name) for name in _OWN}
    receivers = targets_of_notices(values.pop("notify"))
    decision = decision_of(values)
    order = _watch_order(order_from(ctx, values, targets), own, decision)
    if acknowledge is not None and forget is not None:
        raise InvalidInput("says something else than --acknowledge", where="--forget", remedy="drop one of them")
    if acknowledge is not None:
        click.echo(marked_text(regress.watch.watch.mark_call(order, acknowledge, "acknowledged"), "acknowledged"))
        return 0
    if forget is not None:
        click.echo(marked_text(regress.watch.watch.mark_call(order, forget, "forgotten"), "forgotten"))
        return 0
    os.environ.pop("BENCHWRIGHT_REMOTE_TOKEN", None)  # the programs that are measured must not see it
    with runner.terminal.open_progress(quiet=values["quiet"] or in_json(), verbose=values["verbose"]) as progress:
        screen = WatchScreen(progress, quiet=values["quiet"])
        if only_list:
            screen.show_list(regress.watch.watch.pending_commits(order, screen, progress))
            return 0
        screen.tell(receivers, os.path.basename(os.path.abspath(order.repo_dir)), order.order.base.path)
        screen.advise(lambda record: bisect_line(order, values["metrics"], record))
        return regress.watch.watch.watch(order, screen, progress) or (CannotMeasure.exit_code if screen.lost else 0)


def bisect_line(order: WatchOrder, patterns: Sequence[str], record: CommitRecord) -> str:
    """The command that looks among the commits since the control. `patterns`: those of `--metric`."""
    effect = record.called[0]
    metric = next((text for text in patterns if re.match(rf"{re.escape(effect.metric)}[\[=]", text)), effect.metric)
    options = order.order.options
    words = ["benchwright", "bisect", (record.control or "")[:10], record.commit[:10], "--metric", metric]
    words += [] if order.recipe.command is None else ["--build", order.recipe.command]
    words += [*options.targets, *(["--", *options.command] if options.command else [])]
    return f"cd {shlex.quote(os.path.abspath(order.repo_dir))} && {shlex.join(words)}"


def _watch_order(order: RunOrder, own: dict[str, Any], decision: Decision) -> regress.watch.watch.WatchOrder:
    if own["against"] == "parent" and own["base_commit"] is not None:
        raise InvalidInput("is for --against week", where="--base-commit", remedy="drop one of them")
    interval_s = None if own["interval"] is None else parse_duration(own["interval"], where="--interval")
    if interval_s is not None and interval_s <= 0:
        raise InvalidInput(f"{own['interval']} is no time to wait", where="--interval", remedy="write 10m, or drop it")
    platforms = comma_words(own["platforms"])
    recipe = _recipe(order, own, platforms)
    if recipe.framework is not None:  # it names the build; whether the target has one is another matter
        order = replace(order, given=order.given - {"framework"})
    return regress.watch.watch.WatchOrder(
        order=order,
        repo_dir=own["repo_dir"],
        kind=own["repo"],
        remote=own["remote_repository"],
        branch=own["branch"],
        commit=own["commit"],
        base_commit=own["base_commit"],
        against=Against(own["against"]),
        step=own["step"],
        compare=own["ab_testing"],
        commit_file=own["commit_file"],
        status_file=None if own["status_file"] is None else os.path.abspath(own["status_file"]),
        interval_s=interval_s,
        same_host=own["same_host"],
        platforms=platforms,
        recipe=recipe,
        decision=decision,
    )


def _recipe(order: RunOrder, own: dict[str, Any], platforms: tuple[str, ...]) -> BuildRecipe:
    """How a commit is built: by `--build`, or by a framework's build.sh."""
    folder, exec_dir, framework = own["frameworks_dir"], own["exec_dir"], order.options.framework
    if folder is None:
        if exec_dir is not None:
            raise InvalidInput("is where build.sh puts programs", where="--exec-dir", remedy="add --frameworks-dir")
        return checked_recipe(BuildRecipe(command=own["build"], python=order.options.python))
    if own["build"] is not None:
        raise InvalidInput(
            "gives another way to build than --frameworks-dir", where="--build", remedy="drop one of them"
        )
    for given, option in ((framework, "--framework"), (platforms, "--platforms")):
        if not given:
            raise InvalidInput("needs a framework and platforms", where="--frameworks-dir", remedy=f"add {option}")
    if not os.path.isdir(folder):
        raise InvalidInput(f"no such folder: {folder}", where="--frameworks-dir", remedy="check the path")
    place = exec_dir or order.base.path / "programs"
    return BuildRecipe(frameworks_dir=os.path.abspath(folder), framework=framework, exec_dir=os.path.abspath(place))
