"""The composer: what a user asked for becomes a run. Everything that measures comes through here."""

from __future__ import annotations

from benchwright.app.measure import measure
from benchwright.core.errors import InvalidInput
from benchwright.core.request import Resolved
from benchwright.core.run import Run
from benchwright.core.settings import RunSettings
from benchwright.executors.base import Executor
from benchwright.executors.observer import Observer
from benchwright.kinds.models.discovery import with_models_found
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.known_runs import find_run
from benchwright.runs.resume import NEWEST


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
        executor_for(resolved.settings, base, resume) as executor,
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


def executor_for(settings: RunSettings, base: BaseFolder | None = None, resume: str | None = None) -> Executor:
    """This machine, or the nodes of the system file that the run was given; `resume`: what that run was given."""
    if resume is not None and resume != NEWEST and base is not None and settings.suite_paths is None:
        try:
            settings = find_run(base.runs, resume).read_plan().settings
        except InvalidInput:
            pass  # `measure` says what is wrong with it
    system = settings.suite_paths.system if settings.suite_paths is not None else None
    if system is not None and any(not node.local for node in system.nodes):
        from benchwright.executors.ssh import ClusterExecutor

        return ClusterExecutor(system, folder=None if base is None else str(base.path))
    from benchwright.executors.local import LocalExecutor

    return LocalExecutor()
