"""The sampler seam: what is read about a job from outside while it runs.

A sampler is a module with a function `open_sampler(subject) -> Sampler | None`; None means there is nothing to sample
here (no GPU…), which is not an error. The entry-point group `benchwright.samplers` names such functions.
A sampler that raises is closed and reported once; the job goes on.
"""

from __future__ import annotations

import os

from benchwright.agent.processes.process_tree import ProcessStat, descendants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class SamplerReading:
    """One reading: `values` by name in the units of the event stream; `processes` maps a pid to its own values."""

    __slots__ = ("device", "processes", "values")

    def __init__(
        self,
        values: dict[str, float],
        device: int | None = None,
        processes: dict[int, dict[str, float]] | None = None,
    ) -> None:
        self.values = values
        self.device = device
        self.processes = processes


class SampledJob:
    """The processes to sample: all descendants of `root` but `others`, and the accelerators called `devices` (None: all).

    `cpu_before_s`: CPU time of descendants that were reaped before the job began. The tree is walked at most once a round: samplers share what `processes` returns until `begin_round`.
    """

    def __init__(
        self,
        root: int | None = None,
        devices: Sequence[str] | None = None,
        others: frozenset[int] = frozenset(),
        cpu_before_s: float = 0.0,
    ) -> None:
        self.root = os.getpid() if root is None else root
        self.devices = devices
        self.cpu_before_s = cpu_before_s
        self._others = others
        self._processes: list[ProcessStat] | None = None

    def begin_round(self) -> None:
        """Discard what was read before."""
        self._processes = None

    def processes(self) -> list[ProcessStat]:
        """The processes of the job, zombies included."""
        if self._processes is None:
            self._processes = descendants(self.root, self._others)
        return self._processes


class Sampler:
    """Base of all samplers.

    `name` is what its samples are filed under. It is called every `interval_s`, or at the job's interval if that is
    longer, and less often if it would use more than the share `budget` of one core.
    """

    name = "sampler"
    budget = 0.001
    interval_s = 0.0

    def sample(self, now_ns: int) -> list[SamplerReading]:
        """Readings of this moment; may be empty."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what it holds; called once."""
