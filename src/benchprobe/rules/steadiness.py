"""Is a loop past its warm-up? Compares the older and the newer half of the recent steps, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Cells kept at most: a look sorts half of them, so it costs well under a millisecond however long the loop runs.
MAX_CELLS = 1024
BLOCKS_PER_HALF = 4
# A difference between the halves within this many of its standard errors is not a trend. A straight line gives 4.4,
# pure noise more than 1.5 in 18 looks of 100.
TREND_ERRORS = 1.5
# A difference this small is steady whatever the noise; with few steps it must be smaller: a slow decay moves little there.
TOLERANCE = 0.005
TOLERANCE_PER_STEP = 0.00005


class StepCells:
    """The steps so far as equal cells of consecutive steps; when there are too many, neighbours are merged.

    `count` is the number of steps added, `cells` the total time of each full cell of `width` steps.
    """

    def __init__(self) -> None:
        self.count = 0
        self.width = 1
        self.cells: list[int] = []
        self._open: list[int] = []  # steps of the cell that is not full yet

    def extend(self, step_ns: Sequence[int]) -> None:
        """Add steps in order; the result does not depend on how they are divided into calls."""
        self.count += len(step_ns)
        waiting = self._open + list(step_ns)
        at = 0
        while len(waiting) - at >= self.width:
            take = min((len(waiting) - at) // self.width, MAX_CELLS - len(self.cells))
            for _ in range(take):
                self.cells.append(sum(waiting[at : at + self.width]))
                at += self.width
            if len(self.cells) == MAX_CELLS:
                self.cells = [self.cells[i] + self.cells[i + 1] for i in range(0, MAX_CELLS, 2)]
                self.width *= 2
        self._open = waiting[at:]

    def recent(self) -> list[int]:
        """The newer half of the full cells: what a look judges, so that a slow beginning is soon forgotten."""
        return self.cells[len(self.cells) // 2 :]


def is_steady(cells: Sequence[int], steps: int) -> bool:
    """True if the newer half of `cells` shows no trend against the older half. `steps`: steps in the loop so far.

    Each half is cut into blocks. The medians of the blocks give both the difference of the halves and its error, so
    slow noise (a wandering clock) widens the error instead of looking like warm-up, and rare slow steps do not count.
    """
    half = len(cells) // 2
    if half < 2:
        return False
    older = _block_medians(cells[len(cells) - 2 * half : len(cells) - half])
    newer = _block_medians(cells[len(cells) - half :])
    blocks = len(older)
    older_mean, newer_mean = sum(older) / blocks, sum(newer) / blocks
    difference = abs(older_mean - newer_mean)
    squares = sum((x - older_mean) ** 2 for x in older) + sum((x - newer_mean) ** 2 for x in newer)
    error = math.sqrt(squares / (2 * blocks - 2) * 2 / blocks)
    small = min(TOLERANCE, TOLERANCE_PER_STEP * steps) * median(cells)
    return difference <= TREND_ERRORS * error or difference <= small


def median(values: Sequence[int]) -> float:
    """The middle value, or the mean of the two middle ones; `values` must not be empty."""
    ordered = sorted(values)
    size = len(ordered)
    return (ordered[(size - 1) // 2] + ordered[size // 2]) / 2


def _block_medians(values: Sequence[int]) -> list[float]:
    size = len(values)
    blocks = min(BLOCKS_PER_HALF, size)
    return [median(values[i * size // blocks : (i + 1) * size // blocks]) for i in range(blocks)]
