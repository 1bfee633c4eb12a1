"""jax's own profiler, where it is asked for."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import unknown_names


@contextmanager
def jax_profiler(trace_dir: str | None = None, enabled: bool | None = None) -> Iterator[None]:
    """Writes a trace to `trace_dir`, or $MILABENCH_PROFILE_DIR, if `enabled` or $MILABENCH_PROFILE says so."""
    if not (os.getenv("MILABENCH_PROFILE", "0") != "0" if enabled is None else enabled):
        yield
        return
    jax: Any = importlib.import_module("jax")
    folder = trace_dir or os.getenv("MILABENCH_PROFILE_DIR") or os.path.join(tempfile.gettempdir(), "milabench-trace")
    os.makedirs(folder, exist_ok=True)
    print(f"profile: {folder}", flush=True)
    with jax.profiler.trace(folder):
        yield


__getattr__ = unknown_names(__name__)
