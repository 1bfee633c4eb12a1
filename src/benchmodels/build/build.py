"""Mode "build": captures a model, opens a model file, or has a zoo make one, and builds it for a runtime into a folder.

Runs in its own process: an exporter may crash, hang, or take all memory.
"""

from __future__ import annotations

import os
from typing import Any, Sequence

from benchmodels.ending import end_with_parent, leave
from benchmodels.reports import Reports
from benchmodels.runtimes.base import Captured
from benchmodels.runtimes.registry import runtime_named
from benchmodels.settings import ModelSettings

PARENT = "BENCHPROBE_BUILD_PARENT"  # the process that waits for this one


def build(settings: ModelSettings, script: str, args: Sequence[str]) -> int:
    """Writes the build into the folder `settings.builds`. An impossible build is reported as a failure, with exit code 0."""
    parent = os.environ.pop(PARENT, "")
    if parent:
        end_with_parent(int(parent))
    runtime, reports = runtime_named(settings.runtime), Reports()
    if settings.file:
        from benchmodels.build.building import Building

        Building(settings, runtime, reports).build_file(settings.file)
        leave(0)
    if settings.zoo:
        from benchmodels.build.building import Building

        Building(settings, runtime, reports).build_zoo()
        leave(0)
    from benchmodels.discover.capture import run_until_call

    def then(captured: Captured) -> Any:
        from benchmodels.build.building import Building

        Building(settings, runtime, reports).build(captured)
        leave(0)

    return run_until_call(settings, script, list(args), then)
