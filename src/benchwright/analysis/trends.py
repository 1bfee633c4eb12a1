"""Trends: ramps in noise that may wander, and how much likelier they are than a step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchwright.analysis.statistics.autoregression import (
    DEPENDENCE,
    FIRST,
    INDEPENDENT,
    LOG_FIRST,
    ROUNDING,
    best_fit,
    fresh_values,
    likely_range,
    log_likelihoods,
    median,
    near_neighbours,
    pulled_in,
    wandering_allowance,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

FEWEST_FOR_TREND = 16  # runs
_SHORTEST_TREND = 12  # runs; what changes faster is a step
_TREND_MARKS = 12  # where a trend may begin and end at first; the likeliest is refined
TREND_THRESHOLD = 16.0  # of the score
_TREND_T = 4.5  # Student's t of its size
_WANDERING_TREND = 52.0  # what is also taken off the score of a trend, by how far dependence exceeds 0.8
_TREND_HINT = 12.0  # a thorough look begins at this score of a trend in independent noise
_ENDED = 14.0  # a trend goes on unless an end is so much likelier
_STILL_STEEP = 0.4  # at its end, beside its mean: a bent trend goes on
_SIMPLER = 1.0  # how much simpler a trend is than each of several changes, in logarithms of the number of runs
WINDOW = 120  # the runs of one look, at most


class Change(NamedTuple):
    """A step at `place`, or a trend from `place` to `end`: the place before which, and from which on, the level stays."""

    place: int
    earliest: int
    latest: int
    end: int
    score: float

    @property
    def is_trend(self) -> bool:
        return self.end > self.place

    def moved(self, by: int) -> Change:
        return Change(self.place + by, self.earliest + by, self.latest + by, self.end + by, self.score)


class _TrendTable(NamedTuple):
    """All trends that are tried over a number of runs; the square of `rows` @ values is what each explains, by dependence."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    rows: Numbers  # dependence × trend × run


@lru_cache(maxsize=32)
def _trend_table(count: int) -> _TrendTable:
    marks = np.unique(np.linspace(0, count - 1, _TREND_MARKS).round().astype(int))
    least = min(count - 1, _SHORTEST_TREND)
    pairs = np.array([(b, e) for b in marks for e in marks if e - b >= least])
    shapes = _ramps(count, pairs[:, 0], pairs[:, 1])
    return _TrendTable(pairs[:, 0], pairs[:, 1], np.stack([_explaining(shapes, d) for d in range(len(DEPENDENCE))]))


def _ramps(count: int, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> Numbers:
    """One row for each: 0 up to its begin, 1 from its end on."""
    along = (np.arange(count) - begins[:, None]) / (ends - begins)[:, None]
    shapes: Numbers = np.clip(along, 0.0, 1.0)
    return shapes


def _explaining(shapes: Numbers, dependence: int) -> Numbers:
    """The row for each shape whose product with values is the root of what the shape explains beyond a level, in this noise."""
    level = fresh_values(np.ones((1, shapes.shape[1])), dependence)[0]
    fresh = fresh_values(shapes, dependence)
    fresh -= np.outer(fresh @ level / (level @ level), level)
    fresh /= np.sqrt(np.sum(fresh**2, axis=1, keepdims=True))
    rows = fresh.copy()  # the transposed of `fresh_values`, so that values need not go through it
    rows[:, 0] *= FIRST[dependence]
    rows[:, :-1] -= DEPENDENCE[dependence] * fresh[:, 1:]
    return rows


def may_trend(stretch: Numbers) -> bool:
    """Whether any trend would be likely if runs were independent: a quick look that spares most series the thorough one."""
    if len(stretch) < FEWEST_FOR_TREND:
        return False
    near = pulled_in(stretch) if len(stretch) <= WINDOW else None
    if near is None:
        return len(stretch) > WINDOW
    explained = (_trend_table(len(near)).rows[INDEPENDENT] @ near) ** 2
    away = near - near.mean()
    return -len(near) * math.log1p(-min(float(explained.max() / (away @ away)), 1 - ROUNDING)) > _TREND_HINT


class TrendFit:
    """The trend that explains a stretch of runs best. Long stretches are condensed to blocks.

    `lead_over_steps`: how much likelier it is than the best step, in the same noise.
    """

    def __init__(self, stretch: Numbers) -> None:
        self._block = -(-len(stretch) // WINDOW)
        self._length = len(stretch)
        whole = near_neighbours(stretch)
        usable = len(whole) // self._block * self._block
        blocks = whole[len(whole) - usable :].reshape(-1, self._block).mean(axis=1)
        self._skipped = len(whole) - usable
        away = blocks - median(blocks)
        spread = median(np.abs(away)) or float(np.abs(away).mean())
        self._silent = float(np.abs(away).max()) <= ROUNDING * max(1.0, float(np.abs(stretch).max()))
        self._x = away if self._silent else away / spread
        count = len(self._x)
        steady, stepped = log_likelihoods(self._x)
        self._left = np.exp((LOG_FIRST - steady) / count) - count * ROUNDING  # the squares that a level alone leaves
        table = _trend_table(count)
        left = np.maximum(self._left[:, None] - (table.rows @ self._x) ** 2, 0)
        fits = LOG_FIRST[:, None] - count * np.log(left + count * ROUNDING)
        self._dependence, number = divmod(int(np.argmax(fits)), fits.shape[1])
        self._begin, self._end = int(table.begins[number]), int(table.ends[number])
        self._best = float(fits.max())
        self.lead_over_steps = self._best - float(stepped.max())
        wandering = float(DEPENDENCE[int(np.argmax(steady))])
        off = wandering_allowance(wandering) + _WANDERING_TREND * max(0.0, wandering - 0.8)
        self.score = -math.inf if self._silent else self._best - float(steady.max()) - off

    def replaces(self, changes: Sequence[Change]) -> bool:
        """Whether the trend, bent if need be, is likely in view of its simplicity: each of the changes has a size and a place."""
        at = np.arange(len(self._x))
        places = [[(each - self._skipped) / self._block for each in (change.place, change.end)] for change in changes]
        shapes = [np.clip((at - b) / (e - b), 0, 1) if e > b else (at >= b).astype(np.float64) for b, e in places]
        likelihood = max(self._best, self._bent(self._begin, self._end))
        return likelihood + _SIMPLER * len(changes) * math.log(len(at)) > best_fit(self._x, shapes)

    def convincing(self) -> Change | None:
        """The trend, if noise could hardly look like it."""
        if self.score < TREND_THRESHOLD:
            return None
        evidence = self._refine()
        if self._slope_t() < _TREND_T:
            return None
        low, high = likely_range(evidence)
        begin, end, first, last = (self._run(place) for place in (self._begin, self._end, low, high))
        if self._end == len(self._x) - 1:
            end = self._length
        return Change(begin, min(begin, first), max(begin, min(last, end - 1)), end, self.score)

    def _run(self, block: int) -> int:
        return 0 if block == 0 else self._skipped + block * self._block

    def _refine(self) -> Numbers:
        """Moves both ends to the likeliest run; the evidence for each run as the beginning. A trend goes on unless its end is clear."""
        last = len(self._x) - 1
        for _ in range(2):
            begins = np.arange(0, self._end - min(_SHORTEST_TREND, self._end) + 1)
            evidence = self._evidence(begins, np.full(len(begins), self._end))
            self._begin = int(begins[np.argmax(evidence)])
            ends = np.arange(min(last, self._begin + _SHORTEST_TREND), last + 1)
            by_end = self._evidence(np.full(len(ends), self._begin), ends)
            self._end = int(ends[np.argmax(by_end)])
        begins = np.arange(0, max(1, last - _SHORTEST_TREND + 1))
        going_on = self._evidence(begins, np.full(len(begins), last))
        begin = int(begins[np.argmax(going_on)])
        least = float(by_end.max()) - _ENDED
        if going_on.max() > least or (self._rises_to_its_end(begin) and self._bent(begin, last) > least):
            self._begin, self._end = begin, last
            return going_on
        return evidence

    def _bent(self, begin: int, end: int) -> float:
        """The likelihood of a trend that slowly becomes steeper or less steep."""
        ramp = self._ramp(begin, end)
        return best_fit(self._x, [ramp, ramp**2]) - math.log(len(self._x))

    def _rises_to_its_end(self, begin: int) -> bool:
        """Whether such a trend up to the last run is steep there, too."""
        bend, slope, _ = np.polyfit(self._ramp(begin, len(self._x) - 1), self._x, 2)
        return bool((slope + 2 * bend) * (slope + bend) > _STILL_STEEP * (slope + bend) ** 2)

    def _ramp(self, begin: int, end: int) -> Numbers:
        shape: Numbers = _ramps(len(self._x), np.array([begin]), np.array([end]))[0]
        return shape

    def _evidence(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> Numbers:
        rows = _explaining(_ramps(len(self._x), begins, ends), self._dependence)
        left = np.maximum(self._left[self._dependence] - (rows @ self._x) ** 2, 0)
        evidence: Numbers = LOG_FIRST[self._dependence] - len(self._x) * np.log(left + len(self._x) * ROUNDING)
        return evidence

    def _slope_t(self) -> float:
        """Student's t of the trend's size that holds where the spread of the noise changes (White's errors)."""
        shape = self._ramp(self._begin, self._end)
        shape -= shape.mean()
        size = shape @ self._x / (shape @ shape)
        left = self._x - self._x.mean() - size * shape
        error = math.sqrt(float(np.sum(shape**2 * left**2))) / float(shape @ shape)
        return abs(float(size)) / error if error > ROUNDING else math.inf


def ends_of(stretch: Numbers, begin: int, end: int, is_log: bool) -> tuple[float, float]:
    """The level before a trend and after it."""
    shape = _ramps(len(stretch), np.array([begin]), np.array([end - (end == len(stretch))]))[0]
    near = near_neighbours(stretch)
    size, level = np.polyfit(shape, near, 1)
    ends = float(level), float(level + size)
    return (math.exp(ends[0]), math.exp(ends[1])) if is_log else ends
