"""The composer: what a user asked for becomes a run. Everything that measures comes through here."""

from __future__ import annotations

from benchwright.app.measure import measure
from benchwright.core.errors import InvalidInput
from benchwright.core.node.system import System
from benchwright.core.request import Resolved
from benchwright.core.run import Run
from benchwright.core.settings import RunSettings
from benchwright.executors.base import Executor, Site
from benchwright.executors.observer import Observer
from benchwright.kinds.models.discovery import with_models_found
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.known_runs import find_run
from benchwright.runs.resume import NEWEST, to_resume


def run(
    resolved: Resolved,
    base: BaseFolder,
    observer: Observer,
    *,
    name: str | None = None,
    resume: str | None = None,
    labels: dict[str, str] | None = None,
    anyway: bool = False,
) -> Run:
    """The run of what was resolved, with the models of its scripts found first; `name`: what to call it, if not by its target."""
    with (
        executor_for(_settings_of(resolved, base, resume), base) as executor,
        with_models_found(resolved, base, executor, observer) as (complete, told),
    ):
        return measure(
            complete.benchmarks,
            complete.settings,
            base=base,
            name=name or complete.name,
            executor=executor,
            observer=observer,
            resume=resume,
            labels=labels,
            told=told,
            anyway=anyway,
        )


def executor_for(settings: RunSettings, base: BaseFolder | None = None) -> Executor:
    """What `--on` names; without it the nodes of the system file, else this machine."""
    from benchwright.executors.registry import open_executor

    system = settings.suite_paths.system if settings.suite_paths is not None else System()
    return open_executor(settings.on, Site(folder=None if base is None else str(base.path), system=system))


def _settings_of(resolved: Resolved, base: BaseFolder, resume: str | None) -> RunSettings:
    """Those that say where to run: of the run that is resumed, if what was asked for says nothing about it."""
    asked = resolved.settings
    if resume is None or asked.suite_paths is not None or asked.on is not None:
        return asked
    try:
        if resume != NEWEST:
            return find_run(base.runs, resume).read_plan().settings
        return asked if resolved.benchmarks else to_resume(base, NEWEST, (), asked)[1].settings
    except InvalidInput:
        return asked  # `measure` says what is wrong with it
