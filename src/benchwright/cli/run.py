"""`benchwright run`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
import msgspec

from benchwright import regress, runner
from benchwright import results as kept
from benchwright.cli.answer import in_json
from benchwright.cli.options import TargetCommand, order_from, target_options, typed_without
from benchwright.cli.terminal import coloured, show, terminal_width, with_all_scripts
from benchwright.core.errors import InvalidInput, TooManyScripts
from benchwright.core.quantities import parse_duration
from benchwright.runs.delivery import NotReported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchwright.core.run import Run
    from benchwright.report.base import Reporter
    from benchwright.runner.device_selection import DeviceOrder
    from benchwright.runner.fan_out import FanOutEnd
    from benchwright.runner.progress import Progress
    from benchwright.runner.run import RunOrder

_LONGEST_S = 366 * 86400.0  # between two runs of a series
_EXAMPLES = """\b
Examples:
  benchwright run train.py --repeat 6 -- --epochs 1
  benchwright run --metric 'speed=Speed: {number} samples/sec' -- python train.py
  benchwright run --repeat 8 -c 'python old.py' -c 'python new.py' --prepare 'rm -rf cache'
  benchwright run bert.py --runtime torch-eager,onnxruntime --param batch_size=1,8
  benchwright run suite.yaml --select vision --repeat 6 --every 6h
"""


@click.command(cls=TargetCommand, epilog=_EXAMPLES)
@target_options("run")
@click.option("--every", metavar="TIME", help="Run again and again, such as every 6h.")
@click.pass_context
def command(ctx: click.Context, /, targets: tuple[str, ...], every: str | None, **values: Any) -> int:
    """Measure TARGETS (suites, task files, specs, scripts, models) or a command. Behind scripts, words after -- are
    each script's arguments.

    Exit code: 0 success, 1 a benchmark failed, 2 wrong input, 3 nothing could be measured, 130 interrupted (resumable).
    """
    order = order_from(ctx, values, targets)
    if every is not None:
        return _run_every(every, order, typed_without(ctx, "--every"), quiet=values["quiet"])
    os.environ.pop("BENCHWRIGHT_REMOTE_TOKEN", None)  # the programs that are measured must not see it
    lost = None
    dash = values["dash"]
    quiet = values["quiet"] or in_json() or dash == "no"
    with runner.terminal.open_progress(quiet=quiet, verbose=values["verbose"], jobs=dash == "long") as progress:
        if values["size"] == runner.requests.SEARCH and order.resume is None:
            from benchwright.cli.suites.batch_sizes import search_batches

            return search_batches(order, progress)
        progress.begin("getting ready")
        if order.options.names_devices:
            chosen = runner.device_selection.orders_for_devices(order)
            for note in chosen.notes:
                progress.on_trouble(note)
            if len(chosen.orders) > 1:
                return _run_on_devices(chosen.orders, progress)
            order = chosen.orders[0].order
        try:
            made, end = _made(order, progress)
        except TooManyScripts as many:
            with progress.aside():
                options = with_all_scripts(order.options, many)
            order = msgspec.structs.replace(order, options=options)
            made, end = _made(order, progress)
        except NotReported as error:
            made, end, lost = error.run, None, error
    if end is not None:
        return _report_nodes(end, order)
    assert made is not None
    show(_report(made, order))
    if lost is not None:
        click.echo(f"benchwright: {lost}", err=True)
    return kept.after_run.exit_code(made) or (0 if lost is None else lost.exit_code)


def _run_every(every: str, order: RunOrder, words: Sequence[str], *, quiet: bool) -> int:
    """A series of runs, until it is stopped."""
    interval_s = parse_duration(every, where="--every")
    if not 0 < interval_s < _LONGEST_S:
        raise InvalidInput(f"{every} is no time to wait", where="--every", remedy="write 6h, or drop it")
    if order.resume is not None:
        raise InvalidInput("every run of a series is a new one", where="--every", remedy="drop --resume")

    def say(text: str) -> None:
        if not quiet:
            click.echo(f"benchwright: {text}", err=True)

    return regress.run_series.RunSeries(words, interval_s, say).run()


def _made(order: RunOrder, progress: Progress) -> tuple[Run | None, FanOutEnd | None]:
    """One run, or how several ended that share the nodes of a scheduler."""
    if order.may_fan_out and (fan_out := runner.fan_out.fan_out_of(order)) is not None:
        return None, runner.fan_out.run_on_nodes(fan_out, progress)
    return runner.run.run(order, progress), None


def _report_nodes(end: FanOutEnd, order: RunOrder) -> int:
    """One report over the runs of all nodes."""
    from benchwright.report.screen import ScreenReporter

    runs = kept.fan_outs.runs_of(end.folder)
    report = kept.fan_outs.joint_report(end.folder, runs, width=terminal_width()) if runs else None
    if in_json():
        text = f'{{"runs": [{",".join(_report(run, order) for run in runs)}]}}\n'
    else:
        text = "" if report is None else coloured(ScreenReporter().render(report))
    show(text)
    if end.missing:
        names = ", ".join(end.missing)
        click.echo(
            f"benchwright: not measured: {names}; go on with: benchwright run --resume={end.folder.name}", err=True
        )
    code = 3 if report is None else kept.after_run.exit_code(report.run)
    return code or (1 if end.missing else 0)


def _run_on_devices(orders: Sequence[DeviceOrder], progress: Progress) -> int:
    """One run and one report for each device; a device whose run failed to start has already been reported."""
    done = runner.device_runs.run_on_devices(orders, progress)
    by_name = {each.name: each.order for each in orders}
    with progress.aside():
        texts = [
            ("" if in_json() else f"{_device(each.run)}\n") + _report(each.run, by_name[each.name])
            for each in done
            if each.run is not None
        ]
        show(f'{{"runs": [{",".join(texts)}]}}\n' if in_json() else "\n".join(texts))
    codes = {each.code for each in done}
    return codes.pop() if len(codes) == 1 else 1


def _device(run: Run) -> str:
    name = run.machine.platform
    return f"On {run.machine.hostname}" + (f" ({name})" if name else "")


def _report(run: Run, order: RunOrder) -> str:
    from benchwright.report.run_json import JsonReporter
    from benchwright.report.screen import ScreenReporter

    reporter: Reporter = JsonReporter() if in_json() else ScreenReporter()
    peaks = None
    if order.options.stores:
        peaks = kept.peaks.peaks_of_base(run, order.base.path, order.options.store)
    comparisons = []
    if len(run.results) > 1:
        comparisons = kept.compare.compare_commands(run)
    text = reporter.render(kept.after_run.report_of(run, width=terminal_width(), peaks=peaks, comparisons=comparisons))
    return text if in_json() else coloured(text)
