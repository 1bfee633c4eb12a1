"""A Python script as a target: measures its instrumented loop, its training steps, or the models it calls."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from benchmodels.notebooks import is_notebook, read_notebook
from benchmodels.packages import MAIN
from benchwright.core.benchmark import Benchmark, Command, Script
from benchwright.core.errors import InvalidInput
from benchwright.core.model import ModelScript
from benchwright.kinds.interpreter import default_python
from benchwright.kinds.metric_option import metrics_of
from benchwright.kinds.models.kind import ModelsKind
from benchwright.kinds.models.script_notes import ScriptNotes, read_notes
from benchwright.kinds.models.training_script import USUAL_STOP
from benchwright.kinds.sweep import named_point, script_arguments, sweep_points, variables
from benchwright.options.table import Options

_PLAIN = "measured as a command: it imports nothing that could hold a model, and has no loop of benchprobe's"
MEMBER = "::"  # script.py::BertModel


class ScriptKind(ModelsKind):
    """Reads one script as one benchmark for each point of a sweep."""

    name = "script"
    takes_arguments = True

    def recognises(self, target: str) -> bool:
        path = target.partition(MEMBER)[0]
        return (path.endswith(".py") or is_notebook(path)) and os.path.isfile(path)

    def read(self, target: str, options: Options) -> list[Benchmark]:
        place, _, members = target.partition(MEMBER)
        path = Path(place).absolute()
        notes = checked_notes(path) if options.as_ != "command" else _notes_if_readable(path)
        as_ = options.as_ or ("models" if members else _usual_way(notes, options))
        if is_notebook(path.name) and as_ in ("loop", "command"):
            remedy = "convert it first: jupyter nbconvert --to script"
            raise InvalidInput(f"is a notebook, which cannot be measured as a {as_}", where=place, remedy=remedy)
        select = tuple(word for word in members.split(",") if word)
        if select and as_ != "models":
            raise InvalidInput("only models have names in it", where=target, remedy="leave --as out")
        found = []
        for point in sweep_points(options.swept, options.sweep):
            args = (*options.script_args, *script_arguments(point))
            workload = _workload(path, args, options, as_, select, notes.foreign)
            name = (path.parent.name if path.name == MAIN else path.name) + named_point(point)
            metrics = () if as_ == "models" else metrics_of(options)
            stop = USUAL_STOP if as_ == "training" else None
            found.append(
                Benchmark(
                    name=name,
                    workload=workload,
                    source=target,
                    metrics=metrics,
                    stop=stop,
                    parameters=point,
                    env=variables(point),
                    labels=notes.labels,
                    notes=(_PLAIN,) if as_ == "command" and options.as_ is None else (),
                )
            )
        return found


def _usual_way(notes: ScriptNotes, options: Options) -> str:
    if notes.uses_loop:
        return "loop"
    if notes.needs_nothing and not options.one_of_many and not options.runtimes:
        return "command"
    return "training" if notes.trains else "models"


def _workload(
    path: Path, args: tuple[str, ...], options: Options, as_: str, select: tuple[str, ...], foreign: bool
) -> Command | Script | ModelScript:
    cwd, python = options.cwd or os.getcwd(), options.python or default_python()
    if as_ == "command":
        compat = ("-m", "benchmodels.foreign") if foreign else ()
        return Command(argv=(python, *compat, str(path), *args), cwd=cwd)
    if as_ in ("loop", "training"):
        return Script(path=str(path), args=args, cwd=cwd, python=python, training=as_ == "training")
    return ModelScript(path=str(path), args=args, cwd=cwd, python=python, select=select)


def _notes_if_readable(path: Path) -> ScriptNotes:
    """A script that is run as a command says itself what is wrong with it."""
    try:
        return msgspec.structs.replace(read_notes(path), labels={})
    except (SyntaxError, OSError, ValueError, RecursionError):
        return ScriptNotes({}, None, False)


def checked_notes(path: Path) -> ScriptNotes:
    """The script's labels and traits; InvalidInput if it is not Python."""
    try:
        return read_notes(path)
    except SyntaxError as error:
        if is_notebook(path.name):
            cell, line = read_notebook(path.read_bytes()).place(error.lineno or 1)
            text = f"is not valid Python in cell {cell}, line {line}: {error.msg}"
            raise InvalidInput(text, where=str(path), text=error.text) from None
        raise InvalidInput(
            f"is not valid Python: {error.msg}",
            where=str(path),
            line=error.lineno,
            column=error.offset,
            text=error.text,
        ) from None
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        what = str(error) if is_notebook(path.name) else f"is not readable as Python: {error}"
        raise InvalidInput(what, where=str(path), remedy="check the file") from None
