"""Completions for a shell: files, runs, benchmarks, runtimes. Loaded only while it completes."""

from __future__ import annotations

import importlib
import operator
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from benchwright.core.errors import BenchwrightError
from benchwright.kinds.suite.shipped import shipped_suites
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.baselines import Baselines
from benchwright.runs.known_runs import all_runs
from benchwright.runs.run_folder import RunFolder

_MOST_RUNS = 50  # the newest
Offer = Callable[[click.Context, str], Iterable[str]]


class Suggested(click.ParamType[object]):
    """The type of a parameter for as long as it is completed: the words that `offer` gives, and files if `files`."""

    name = "suggested"

    def __init__(self, offer: Offer, *, files: str | None = None) -> None:
        self._offer = offer
        self._files = files

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        words = [CompletionItem(word) for word in self._offer(ctx, incomplete) if word.startswith(incomplete)]
        return words + ([CompletionItem(incomplete, type=self._files)] if self._files else [])


def suggest(command: click.Command) -> None:
    """Gives the parameters of `command`, and of the commands in it, what they suggest."""
    for parameter in command.params:
        if (found := _suggested(parameter)) is not None:
            parameter.type = found
    for child in command.commands.values() if isinstance(command, click.Group) else ():
        suggest(child)


def _suggested(parameter: click.Parameter) -> Suggested | None:
    row = getattr(parameter, "row", None)
    if row is not None and row.names_from is not None:
        return Suggested(_registered(row.names_from))
    if isinstance(parameter.type, click.Choice):
        return None
    if isinstance(parameter, click.Argument):
        return _ARGUMENTS.get(parameter.name or "")
    metavar = parameter.metavar or ""
    if metavar in ("DIR", "FILE", "PATH", "SUITE") or metavar.startswith("FILE."):
        return Suggested(_nothing, files="dir" if metavar == "DIR" else "file")
    return Suggested(_baselines) if parameter.name == "baseline" else None


def _nothing(ctx: click.Context, incomplete: str) -> Iterable[str]:
    return ()


def _registered(names_from: str) -> Offer:
    """Names of a registry; of a list with commas, behind the last one."""

    def offer(ctx: click.Context, incomplete: str) -> Iterable[str]:
        module, _, function = names_from.partition(":")
        names: Iterable[str] = operator.attrgetter(function)(importlib.import_module(module))()
        before, comma, _ = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names]

    return offer


def _shipped(ctx: click.Context, incomplete: str) -> Iterable[str]:
    return shipped_suites()


def _base(ctx: click.Context) -> Path:
    return BaseFolder.choose(ctx.params.get("base"), os.environ).path


def _runs(ctx: click.Context, incomplete: str) -> Iterable[str]:
    return ["last", *(folder.id for folder in all_runs(_base(ctx) / "runs")[:_MOST_RUNS])]


def _baselines(ctx: click.Context, incomplete: str) -> Iterable[str]:
    return Baselines(_base(ctx)).names()


def _benchmarks(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Benchmarks of the named run, else of the newest runs."""
    named: Any = ctx.params.get("run")
    words = [word for word in _runs(ctx, "") if word != "last"]
    found: dict[str, None] = {}
    for word in [named] if named in words else words[:1] if named else words[:10]:
        try:
            plan = RunFolder(_base(ctx) / "runs" / word).read_plan()
        except (BenchwrightError, OSError):
            continue  # a folder that cannot be read has nothing to offer
        found |= dict.fromkeys(benchmark.name for benchmark in plan.benchmarks)
    return found


def _runs_and_benchmarks(ctx: click.Context, incomplete: str) -> Iterable[str]:
    return [*_runs(ctx, incomplete), *_benchmarks(ctx, incomplete)]


_TARGETS = Suggested(_shipped, files="file")
_FILES = Suggested(_nothing, files="file")
_RUNS = Suggested(_runs)
_ARGUMENTS = {
    **dict.fromkeys(("targets", "suites", "suite"), _TARGETS),
    **dict.fromkeys(("scripts", "files", "paths"), _FILES),
    **dict.fromkeys(("run", "runs"), _RUNS),
    **dict.fromkeys(("bench", "benchmark"), Suggested(_benchmarks)),
    "words": Suggested(_runs_and_benchmarks),
}
