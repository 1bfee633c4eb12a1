"""The Python API behind `benchwright.run`, `benchwright.load` and `benchwright.compare`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from msgspec.structs import replace

from benchmodels.build.labels import kept_labels
from benchwright import results as kept
from benchwright import runner
from benchwright.analysis.comparison.separate_runs import RUN_TO_RUN
from benchwright.core.errors import CannotMeasure, InvalidInput, did_you_mean
from benchwright.core.run import Result, Run
from benchwright.options.keywords import RunOptions, Text
from benchwright.options.table import OPTIONS
from benchwright.report.comparison import comparison_text, verdict_text
from benchwright.report.html.notebook import comparison_cell, run_cell
from benchwright.report.screen import ScreenReporter
from benchwright.results.compare import compare_runs
from benchwright.results.kept_runs import Results
from benchwright.runner.notebook import NotebookPanel, in_notebook
from benchwright.runner.progress import Progress
from benchwright.runner.requests import SEARCH, order_of, values_of
from benchwright.runner.run import run as run_order
from benchwright.runner.terminal import PlainLines, surface_of
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.fan_out_folder import NODE, read_parts

if TYPE_CHECKING:
    from benchwright.core.comparison import Comparison
    from benchwright.executors.base import Executor
    from benchwright.report.base import Report
    from benchwright.runner.run import RunOrder

_WIDTH = 100  # of a report that Python prints


class CompareOptions(TypedDict, total=False):
    """Keywords of `benchwright.compare`: the options of `benchwright compare`. Percentages are fractions."""

    between: tuple[str, str] | None
    margin: float
    run_to_run: float
    metrics: Sequence[str]
    all_metrics: bool
    anyway: bool
    base: Text | None
    store: str | None


class ShownRun(Run, frozen=True, kw_only=True, eq=False):
    """A Run that shows itself: as a table where Python prints it, with a picture in a notebook."""

    def __repr__(self) -> str:
        return ScreenReporter().render(self._report()) + verdict_text(self._comparisons(), width=_WIDTH)

    def _repr_html_(self) -> str:
        comparisons = self._comparisons()
        return run_cell(self._report()) + (comparison_cell(comparisons) if comparisons else "")

    def result(self, name: str) -> ShownResult:
        """Of a run on several nodes, the name may lack the node."""
        on_nodes = {f"{name} on {r.benchmark.labels.get(NODE)}" for r in self.results}
        called = next((r.benchmark.name for r in self.results if r.benchmark.name in on_nodes), name)
        found = Run.result(self, called)
        return ShownResult(**_fields(found, Result), run=replace(self, results=(found,)))

    def __eq__(self, other: object) -> bool:
        """How it is shown makes no difference."""
        return _fields(self, Run) == _fields(other, Run) if isinstance(other, Run) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # like a Run, it holds what cannot be hashed

    def _report(self) -> Report:
        return kept.after_run.report_of(self, width=_WIDTH, comparisons=self._comparisons())

    def _comparisons(self) -> list[Comparison]:
        return kept.compare.compare_commands(self) if len(self.results) > 1 else []


class ShownResult(Result, frozen=True, kw_only=True, eq=False):
    """A Result that shows itself, as the only one of its run."""

    run: ShownRun

    def __repr__(self) -> str:
        return repr(self.run)

    def _repr_html_(self) -> str:
        return self.run._repr_html_()

    def __eq__(self, other: object) -> bool:
        return _fields(self, Result) == _fields(other, Result) if isinstance(other, Result) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class ComparedRuns:
    """Result of `benchwright.compare`: for each treatment a `Comparison` with its effects and verdicts."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self.comparisons = tuple(comparisons)

    def __repr__(self) -> str:
        return "\n".join(comparison_text(c, width=_WIDTH) for c in self.comparisons)

    def _repr_html_(self) -> str:
        return comparison_cell(self.comparisons)


def run(
    target: Text | Sequence[str],
    *,
    cache_dir: Text | None = None,
    progress: bool | None = None,
    **options: Unpack[RunOptions],
) -> ShownRun:
    """See `benchwright.run`."""
    if cache_dir is not None:
        options["base"] = cache_dir
    for name in options:
        if name not in RunOptions.__annotations__:
            remedy = did_you_mean(name, RunOptions.__annotations__)
            raise TypeError(f"run() got an unexpected keyword argument '{name}'" + (f"; {remedy}" if remedy else ""))
    values = values_of(options)
    if values.get("size") == SEARCH:
        raise InvalidInput(
            "the search for batch sizes makes many runs", where="size", remedy="use: benchwright run --size search"
        )
    given = {name for name, value in values.items() if value not in (False, ())}
    if isinstance(target, str | os.PathLike):
        order = order_of(values, given, targets=[os.fspath(target)])
    else:
        order = order_of(values, given, command=[str(word) for word in target])
    if order.options.names_devices:
        order = runner.device_selection.order_for_device(order)
    return _watched(order, progress)


def _made(order: RunOrder, watching: _Watching) -> Run:
    """One run; of several nodes that shared the work, all of theirs as one."""
    if not order.may_fan_out or (fan_out := runner.fan_out.fan_out_of(order)) is None:
        return run_order(order, watching)
    end = runner.fan_out.run_on_nodes(fan_out, watching)
    runs = kept.fan_outs.runs_of(end.folder)
    if end.missing:
        watching.on_trouble(f"not measured: {', '.join(end.missing)}; run --resume={end.folder.name} goes on with them")
    if not runs:
        raise CannotMeasure("; ".join(watching.troubles))
    return kept.fan_outs.joint_run(runs, read_parts(end.folder))


def _watched(order: RunOrder, progress: bool | None, executor: Executor | None = None) -> ShownRun:
    with _Watching(progress) as watching:
        if executor is None:
            made = _made(order, watching)
        else:
            with executor:
                made = run_order(order, watching, executor=executor)
    for text in watching.troubles:
        if not any(text.startswith(note.text) for note in made.notes):
            warnings.warn(text, RuntimeWarning, stacklevel=4)
    return _shown(made)


def benchmark_model(
    model: object,
    inputs: object,
    *,
    cache_dir: Text | None = None,
    progress: bool | None = None,
    **options: Unpack[RunOptions],
) -> ShownRun:
    """See `benchwright.benchmark_model`."""
    of_held = [name for name, row in OPTIONS.items() if row.held]
    for option in options:
        if option not in of_held:
            remedy = did_you_mean(option, of_held)
            text = f"benchmark_model() got an unexpected keyword argument '{option}'"
            raise TypeError(text + (f"; {remedy}" if remedy else ""))
    if cache_dir is not None:
        options["base"] = cache_dir
    values = values_of(options)
    order = order_of(values, {option for option, value in values.items() if value not in (False, ())})
    order, executor = runner.in_process_model.order_and_executor(order, model, inputs)
    return _watched(order, progress, executor)


def load(run: Text, *, base: Text | None = None, store: str | None = None) -> ShownRun:
    """See `benchwright.load`."""
    with Results.choose(base, store, os.environ) as results:
        return _shown(results.run(os.fspath(run)))


def load_labels(build: str, *, cache_dir: Text | None = None) -> dict[str, list[str]]:
    """See `benchwright.load_labels`."""
    return kept_labels(str(BaseFolder.choose(cache_dir, os.environ).path), build)


def compare(control: Run | Text, *treatments: Run | Text, **options: Unpack[CompareOptions]) -> ComparedRuns:
    """See `benchwright.compare`."""
    between = options.get("between")
    if between is None and not treatments:
        raise InvalidInput("there is nothing to compare with", where="compare", remedy="name a control and a treatment")
    if between is not None and treatments:
        raise InvalidInput("between compares two benchmarks of one run", where="compare", remedy="name one run")
    base, store = options.get("base"), options.get("store")
    runs = [r if isinstance(r, Run) else load(r, base=base, store=store) for r in (control, *treatments)]
    found = compare_runs(
        runs,
        between=between,
        margin=options.get("margin"),
        run_to_run=options.get("run_to_run", RUN_TO_RUN),
        metrics=options.get("metrics", ()),
        all_metrics=options.get("all_metrics", False),
        anyway=options.get("anyway", False),
    )
    return ComparedRuns(found)


def _shown(run: Run) -> ShownRun:
    return ShownRun(**_fields(run, Run))


def _fields(of: object, kind: type[Run | Result]) -> dict[str, Any]:
    return {name: getattr(of, name) for name in kind.__struct_fields__}


class _Watching(Progress):
    """Turns problems into warnings once the run is complete, unless they are among its notes.

    `shown`: with progress, in a notebook or on stderr; None: only in a notebook.
    """

    def __init__(self, shown: bool | None) -> None:
        self.troubles: list[str] = []
        if in_notebook() and shown is not False:
            super().__init__(NotebookPanel())
        else:
            super().__init__(surface_of(sys.stderr) if shown else PlainLines(None), quiet=not shown)

    def on_trouble(self, text: str) -> None:
        self.troubles.append(text)
