"""A store of counters, as ranks of a distributed program share one."""

from __future__ import annotations

import threading
from collections import Counter


class CountersInMemory:
    """A store for ranks that are threads."""

    def __init__(self) -> None:
        self._sums: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, key: str, amount: int) -> int:
        with self._lock:
            self._sums[key] += amount
            return self._sums[key]
