"""Mode "build": captures a model, opens a model file, or has a zoo make one, and builds it for a runtime into a folder.

Runs in its own process: an exporter may crash, hang, or take all memory.
"""

from __future__ import annotations

import os
from typing import NoReturn, Optional, Sequence

from benchmodels.discover.capture import run_until_call
from benchmodels.process_exit import end_with_parent, leave
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

    def finish(captured: Optional[Captured]) -> NoReturn:
        from benchmodels.build.builder import ModelBuilder  # not before the script's own imports: it imports numpy

        builder = ModelBuilder(settings, runtime, reports)
        if captured is not None:
            builder.build(captured)
        elif settings.file:
            builder.build_file(settings.file)
        else:
            builder.build_zoo()
        leave(0)

    if settings.file or settings.zoo:
        finish(None)
    return run_until_call(settings, script, list(args), finish)
