"""Several runs of one suite, each with other options: what `multirun` in a system file asks for."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from benchwright.core.errors import BenchwrightError, Interrupted, InvalidInput, did_you_mean
from benchwright.core.run import Run
from benchwright.core.status import Status
from benchwright.core.system import Multirun, MultirunEntry, System
from benchwright.executors.observer import Observer
from benchwright.kinds.base import Resolved
from benchwright.results.after_run import exit_code
from benchwright.runner.run import RunOrder, resolve_order
from benchwright.runner.run import run as run_order
from benchwright.runs.known_runs import all_runs
from benchwright.runs.run_folder import RunFolder

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)\}", re.ASCII)
_TIME = "time"  # filled in when the run begins


_MOST_RUNS = 10_000


class MatrixRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run to make. `options`: sizer.auto, cpu.n_workers…"""

    name: str
    options: dict[str, Any]


class MatrixStatus(str, Enum):
    OK = "ok"
    FAILED = "failed"  # something measured failed, or it could not be run
    SKIPPED = "skipped"  # it was finished before


class MatrixOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a run. `code`: the exit code that `run` would have had."""

    run: MatrixRun
    how: MatrixStatus
    code: int
    id: str | None = None
    detail: str | None = None


class MatrixObserver:
    """Override the methods of interest."""

    def on_begin(self, number: int, total: int, run: MatrixRun) -> None:
        """A run is about to be made."""

    def on_end(self, number: int, total: int, outcome: MatrixOutcome) -> None:
        """It was made, was already finished, or could not be made."""


def matrix_runs(multirun: Multirun, system: System, *, where: str) -> list[MatrixRun]:
    """The runs of a system file in its order, each with a unique name; `where` is that file."""
    if not multirun.runs:
        remedy = 'add multirun: {runs: [{name: "auto.{time}", matrix: {sizer.auto: 1}}]}'
        raise InvalidInput("multirun.runs is empty", where=where, remedy=remedy)
    known = _flat(system.options)
    count = sum(math.prod(len(v) if isinstance(v, list) else 1 for v in e.matrix.values()) for e in multirun.runs)
    if count > _MOST_RUNS:
        remedy = f"leave some values out: at most {_MOST_RUNS} are allowed"
        raise InvalidInput(f"multirun.runs describes {count} runs", where=where, remedy=remedy)
    runs = [
        MatrixRun(name=_named(entry, {**known, **options}, where), options=options)
        for entry in multirun.runs
        for options in _combinations(entry.matrix)
    ]
    named: dict[str, MatrixRun] = {}
    for second in runs:
        first = named.setdefault(second.name, second)
        if first is not second:
            differing = [key for key, value in first.options.items() if second.options.get(key) != value]
            remedy = f"put {{{differing[0]}}} into the name" if differing else "give one of them another name"
            raise InvalidInput(f"two runs have the name '{first.name}'", where=where, remedy=remedy)
    return runs


def _combinations(matrix: Mapping[str, object]) -> list[dict[str, object]]:
    """Every combination of the values; what is no list is one value. The last key changes fastest."""
    values = [value if isinstance(value, list) else [value] for value in matrix.values()]
    return [dict(zip(matrix, chosen, strict=True)) for chosen in itertools.product(*values)]


def _named(entry: MultirunEntry, options: Mapping[str, object], where: str) -> str:
    def text(match: re.Match[str]) -> str:
        if match[1] == _TIME:
            return match[0]
        if match[1] not in options:
            known = [*options, _TIME]
            remedy = did_you_mean(match[1], known) or f"use {', '.join(known)}"
            raise InvalidInput(f"'{match[0]}' in a run's name is not one of its options", where=where, remedy=remedy)
        return _in_a_name(options[match[1]])

    return _PLACEHOLDER.sub(text, entry.name)


def _in_a_name(value: object) -> str:
    """As part of the name of a folder."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value).replace("/", "_")


def _flat(options: Mapping[str, object]) -> dict[str, object]:
    return {
        f"{section}.{key}": value
        for section, values in options.items()
        if isinstance(values, dict)
        for key, value in values.items()
    }


def run_matrix(
    runs: Sequence[MatrixRun],
    make: Callable[[MatrixRun], Run],
    *,
    finished: Callable[[MatrixRun], str | None] = lambda run: None,
    observer: MatrixObserver | None = None,
) -> list[MatrixOutcome]:
    """Makes the runs one after the other, and goes on after one that failed. `finished`: the id of the run that has
    been made of it already. Raises Interrupted if a run was."""
    observer = observer or MatrixObserver()
    outcomes = []
    for number, run in enumerate(runs, start=1):
        if (id := finished(run)) is not None:
            outcome = MatrixOutcome(run=run, how=MatrixStatus.SKIPPED, code=0, id=id)
        else:
            observer.on_begin(number, len(runs), run)
            outcome = _make(run, make)
        outcomes.append(outcome)
        observer.on_end(number, len(runs), outcome)
    return outcomes


def _make(run: MatrixRun, make: Callable[[MatrixRun], Run]) -> MatrixOutcome:
    try:
        result = make(run)
    except Interrupted as error:
        raise Interrupted(f"{error}; continue the matrix with --resume") from None
    except BenchwrightError as error:
        return MatrixOutcome(run=run, how=MatrixStatus.FAILED, code=error.exit_code, detail=str(error))
    code = exit_code(result)
    failed = [r.benchmark.name for r in result.results if r.status is Status.FAILED]
    detail = f"failed: {', '.join(failed)}" if failed else None if code == 0 else "nothing could be measured"
    how = MatrixStatus.OK if code == 0 else MatrixStatus.FAILED
    return MatrixOutcome(run=run, how=how, code=code, id=result.id, detail=detail)


def code_of(outcomes: Iterable[MatrixOutcome]) -> int:
    """0 all went well · 1 some did not · what they all have in common if none did."""
    codes = {outcome.code for outcome in outcomes}
    return next(iter(codes)) if len(codes) == 1 else 1 if codes else 0


class SuiteMatrix:
    """Makes each run as `run` would with these options on top; knows which ones exist."""

    def __init__(self, order: RunOrder) -> None:
        self._order = order

    def make(self, matrix_run: MatrixRun, observer: Observer, *, resume: bool = False) -> Run:
        """`resume`: continue an unfinished run of that name, if there is one; InvalidInput if the suite has changed."""
        order = msgspec.structs.replace(
            self._with(matrix_run.options),
            name=matrix_run.name,
            labels={key: str(value) for key, value in matrix_run.options.items()},
        )
        if resume:
            begun = self._newest(matrix_run, resolve_order(order), finished=False)
            order = msgspec.structs.replace(order, resume=begun)
        return run_order(order, observer)

    def finished(self, run: MatrixRun) -> str | None:
        """The newest finished run of that name that measured exactly this; one of a suite that has changed does not count."""
        return self._newest(run, resolve_order(self._with(run.options)), finished=True)

    def _newest(self, run: MatrixRun, resolved: Resolved, *, finished: bool) -> str | None:
        names = {b.name for b in resolved.benchmarks}
        changed: InvalidInput | None = None
        for folder in all_runs(self._order.base.runs):
            try:
                stored = folder.read_plan()
            except InvalidInput:
                continue  # damaged: it is in nobody's way
            same = stored.name == run.name and {b.name for b in stored.benchmarks} == names
            if not same or _is_finished(folder) is not finished or folder.is_busy():
                continue
            differences = stored.differences(resolved.benchmarks, resolved.options)
            if not differences:
                return folder.id
            changed = changed or InvalidInput(
                f"{folder.id} is unfinished and differs: " + "; ".join(differences[:5]),
                where="--resume",
                remedy="undo the change, or start over without --resume",
            )
        if changed is not None and not finished:
            raise changed
        return None

    def _with(self, values: Mapping[str, object]) -> RunOrder:
        options = self._order.options
        options = msgspec.structs.replace(options, system_options={**options.system_options, **values})
        return msgspec.structs.replace(self._order, options=options)


def _is_finished(folder: RunFolder) -> bool:
    body = folder.read_run()
    return body is not None and body.get("ended") is not None and body.get("status") != Status.INTERRUPTED.value
