"""Which executor a run needs."""

from __future__ import annotations

from benchwright.domain.errors import InvalidInput
from benchwright.domain.settings import RunSettings
from benchwright.executors.base import Executor
from benchwright.pipeline.resuming import NEWEST
from benchwright.stores.base_folder import BaseFolder
from benchwright.stores.known_runs import find_run


def executor_for(settings: RunSettings, base: BaseFolder | None = None, resume: str | None = None) -> Executor:
    """This machine, or the nodes of the system file that the run was given; `resume`: what that run was given."""
    if resume is not None and resume != NEWEST and base is not None and settings.surroundings is None:
        try:
            settings = find_run(base.runs, resume).read_plan().settings
        except InvalidInput:
            pass  # `measure` says what is wrong with it
    system = settings.surroundings.system if settings.surroundings is not None else None
    if system is not None and any(not node.local for node in system.nodes):
        from benchwright.executors.ssh import ClusterExecutor

        return ClusterExecutor(system, folder=None if base is None else str(base.path))
    from benchwright.executors.local import LocalExecutor

    return LocalExecutor()
