"""The only composer: a target becomes Benchmarks, Jobs, Events and a Run.

Its modules are imported when they are first used: `from benchwright import runner`, then `runner.run.run(…)`.
"""

from __future__ import annotations

from benchwright.core.lazy_modules import import_submodule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.runner import batch_search as batch_search
    from benchwright.runner import device_runs as device_runs
    from benchwright.runner import device_selection as device_selection
    from benchwright.runner import device_worker as device_worker
    from benchwright.runner import devices as devices
    from benchwright.runner import fan_out as fan_out
    from benchwright.runner import growth as growth
    from benchwright.runner import hooks as hooks
    from benchwright.runner import in_process_model as in_process_model
    from benchwright.runner import matrix as matrix
    from benchwright.runner import measure as measure
    from benchwright.runner import node_rounds as node_rounds
    from benchwright.runner import notebook as notebook
    from benchwright.runner import prebuild as prebuild
    from benchwright.runner import progress as progress
    from benchwright.runner import progress_panel as progress_panel
    from benchwright.runner import readiness as readiness
    from benchwright.runner import recorder as recorder
    from benchwright.runner import requests as requests
    from benchwright.runner import resolve as resolve
    from benchwright.runner import run as run
    from benchwright.runner import stop as stop
    from benchwright.runner import terminal as terminal
    from benchwright.runner import validation as validation
    from benchwright.runner import variation as variation
else:  # for a type checker any name would be a module

    def __getattr__(name: str) -> object:
        return import_submodule(__name__, name)
