"""Agents on other nodes work on a lease: whoever holds it sends a word now and then, and without one they end by themselves.

A broken connection may show neither side: after `kill -9` of srun the program there gets no end of file and runs on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from benchwright.executors.agent_process import WORD_S, AgentProcess


class LeaseKeeper:
    """Sends words in a thread: the main one may be busy for minutes, and waits for its agents the rest of the time."""

    def __init__(self, agents: Callable[[], Iterable[AgentProcess]]) -> None:
        self._agents = agents
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Idempotent."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _keep(self) -> None:
        while not self._over.wait(WORD_S):
            for agent in list(self._agents()):
                agent.send_word()
