"""How much device memory jax has used at most."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from . import unknown_names


def memory_peak_fetcher() -> Callable[[], float]:
    """A function that gives the peak of the fullest device in MiB; -1 where jax does not know."""
    jax: Any = importlib.import_module("jax")

    def peak() -> float:
        stats = [device.memory_stats() or {} for device in jax.devices()]
        return max((found.get("peak_bytes_in_use", 0) / 2**20 for found in stats), default=-1.0)

    return peak


__getattr__ = unknown_names(__name__)
