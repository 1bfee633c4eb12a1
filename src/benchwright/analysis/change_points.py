"""Where the level of a series of runs changed, and by how much.

The test is a likelihood ratio: a step in noise whose values depend on the one before (an autoregression of unknown strength), against
the same noise without a step. So slow wandering is not taken for a step, values far from the median are pulled in first, and a change
must hold for most runs on either side: a single outlier is none.

The series is examined at fixed lengths, each time up to there only: what was found settled stays as it was when runs are added.
Thresholds are set by simulation such that at most 5 % of series of 100 unchanged runs show any change, in each family of noise
(performance/change_points.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

FEWEST = 12  # runs, below which nothing can be said
_SIDE = 4  # runs before and after a change, at least
_SETTLED_SIDE = 8  # runs after it until it is settled
_WINDOW = 120  # the runs of one look, at most
_STRIDE = 0.15  # the series grows by so much until the next look
_REACH = 2.5 * 1.4826  # values farther from the median, in median deviations, are pulled in
_SHORT = 40
_THRESHOLD, _THRESHOLD_SHORT = 14.0, 18.0  # of the score, and of windows shorter than _SHORT
_WANDERING = 5.5  # what is taken off the score of noise that wanders
_TAIL = 0.36  # how fast the chance of a false alarm falls with the score
_MOSTLY = 0.6  # the share of runs on one side that are beyond the median of the other
_LIKELY_RANGE = 0.9
_LOOSE = 0.3  # with weaker dependence, the place is found from the values one by one
_NEIGHBOURS = 8
_TAIL_FREEDOM = 3.0
_LINE_FOR_A_STEP = 1.25  # how much simpler a line is than each step, in logarithms of the number of runs
_ROUNDING = 1e-9

_DEPENDENCE = np.array([-0.3, 0.0, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.87, 0.92, 0.96, 0.99])
_FRESH = 1 - _DEPENDENCE
_FIRST = np.sqrt(1 - _DEPENDENCE**2)
_LOG_FIRST = np.log(1 - _DEPENDENCE**2)


class ChangePoint(NamedTuple):
    """From `place` on, values are `ratio` times those before. It happened after run `earliest` - 1 and not after run `latest`.

    `confidence`: one minus the chance that 100 unchanged runs show so clear a change. `settled`: more runs will not move it.
    `drifting`: a straight line explains it, with its neighbours, better than steps do, so no single run made it.
    """

    place: int
    earliest: int
    latest: int
    before: float
    after: float
    confidence: float
    settled: bool
    drifting: bool = False

    @property
    def ratio(self) -> float:
        return self.after / self.before if self.before else math.copysign(math.inf, self.after - self.before)


class _Step(NamedTuple):
    """The best step within a window."""

    place: int
    earliest: int
    latest: int
    score: float


def change_points(values: Sequence[float]) -> list[ChangePoint]:
    """The changes of a series, oldest first; all values finite, in the order of the code they measured."""
    series = np.asarray(values, dtype=np.float64)
    logs = np.log(series) if len(series) and series.min() > 0 else series
    found: list[tuple[_Step, bool]] = []
    begin, look = 0, FEWEST
    while begin + FEWEST <= len(logs):
        end = min(look, len(logs))
        first = max(begin, end - _WINDOW)
        step = convincing_step(logs[first:end])
        if step is not None:
            place = first + step.place
            settled = end == look and end - place >= _SETTLED_SIDE
            if settled or end == len(logs):
                found.append((_moved(step, first), settled))
                begin = place
            look = max(look, begin + FEWEST) if begin == place else place + _SETTLED_SIDE
        elif end == len(logs):
            break
        else:
            look += max(1, round(_STRIDE * (end - first)))
    return _with_drifts(logs, _between(series, found)) if found else []


def convincing_step(window: Numbers) -> _Step | None:
    """Where a step explains the window best, if noise could hardly do so and it holds for most runs on either side."""
    near = _pulled_in(window)
    if near is None:
        return None
    steady, stepped = _log_likelihoods(near)
    wandering = float(_DEPENDENCE[int(np.argmax(steady))])
    # Wandering noise has larger ratios by chance, the more so the more each value depends on the one before.
    score = float(stepped.max() - steady.max()) - _WANDERING * min(1.0, max(0.0, wandering) / 0.8)
    if score < (_THRESHOLD_SHORT if len(window) < _SHORT else _THRESHOLD):
        return None
    by_place = stepped.max(axis=0)
    place = _SIDE + int(np.argmax(by_place))
    if _DEPENDENCE[int(np.argmax(stepped.max(axis=1)))] <= _LOOSE:
        place, by_place = _one_by_one(window, place)
    if not _holds(window, place):
        return None
    low, high = _likely(by_place)
    return _Step(place, min(place, _SIDE + low), max(place, _SIDE + high), score)


def _pulled_in(window: Numbers) -> Numbers | None:
    """In units of the spread, outliers clipped; None if all values are the same."""
    away = window - _median(window)
    sizes = np.abs(away)
    if sizes.max() <= _ROUNDING * max(1.0, float(np.abs(window).max())):
        return None
    spread = _median(sizes) or float(sizes.mean())
    clipped: Numbers = np.clip(away / spread, -_REACH, _REACH)
    return clipped


def _median(values: Numbers) -> float:
    """numpy's own takes ten times as long for a hundred values."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _log_likelihoods(x: Numbers) -> tuple[Numbers, Numbers]:
    """Twice the logarithm, up to a constant: by dependence without a step, and by dependence and place with one."""
    count = len(x)
    y = np.empty((len(_DEPENDENCE), count))  # what is new in each value
    np.subtract(x[1:], np.multiply.outer(_DEPENDENCE, x[:-1]), out=y[:, 1:])
    y[:, 0] = _FIRST * x[0]
    after = np.cumsum(y[:, ::-1], axis=1)[:, ::-1]  # the sums from each place on
    level = _FIRST**2 + (count - 1) * _FRESH**2
    shared = (_FIRST * y[:, 0] + _FRESH * after[:, 1]) / level
    left = np.einsum("ij,ij->i", y, y) - shared**2 * level
    places = slice(_SIDE, count - _SIDE + 1)
    later = np.multiply.outer(_FRESH**2, np.arange(count - 1 - _SIDE, _SIDE - 2, -1))
    crossed = _FRESH[:, None] + later
    jump = y[:, places] * _DEPENDENCE[:, None] + _FRESH[:, None] * after[:, places]
    gain = (jump - crossed * shared[:, None]) ** 2 / (1 + later - crossed**2 / level[:, None])
    least = count * _ROUNDING  # noise-free series
    steady = _LOG_FIRST - count * np.log(left + least)
    stepped = _LOG_FIRST[:, None] - count * np.log(np.maximum(left[:, None] - gain, 0) + least)
    return steady, stepped


def _one_by_one(window: Numbers, place: int) -> tuple[int, Numbers]:
    """A better place if values do not depend on each other: each is counted with the level it is nearer to, outliers for little.

    Also the evidence by place, like that of `_log_likelihoods`.
    """
    levels = _median(window[:place]), _median(window[place:])
    away = np.abs(np.concatenate([window[:place] - levels[0], window[place:] - levels[1]]))
    spread = 1.4826 * _median(away) or float(away.mean()) or abs(levels[1] - levels[0]) * _ROUNDING or 1.0
    costs = [np.log1p(((window - level) / spread) ** 2 / _TAIL_FREEDOM) for level in levels]
    total = (_TAIL_FREEDOM + 1) * np.concatenate([[0.0], np.cumsum(costs[1] - costs[0])])
    evidence = total[_SIDE : len(window) - _SIDE + 1]
    low = max(0, place - _SIDE - _NEIGHBOURS)
    return _SIDE + low + int(np.argmax(evidence[low : place - _SIDE + _NEIGHBOURS + 1])), evidence


def _holds(window: Numbers, place: int) -> bool:
    before, after = window[:place], window[place:]
    levels = _median(before), _median(after)
    sign = math.copysign(1.0, levels[1] - levels[0])
    beyond = np.mean(sign * (after - levels[0]) > 0), np.mean(sign * (levels[1] - before) > 0)
    return bool(min(beyond) >= _MOSTLY)


def _likely(by_place: Numbers) -> tuple[int, int]:
    """The first and the last of the places that are likely, when each weighs as much as its likelihood."""
    weights = np.exp((by_place - by_place.max()) / 2)
    total = np.cumsum(weights / weights.sum())
    tail = (1 - _LIKELY_RANGE) / 2
    return int(np.searchsorted(total, tail)), int(np.searchsorted(total, 1 - tail))


def _moved(step: _Step, by: int) -> _Step:
    return _Step(step.place + by, step.earliest + by, step.latest + by, step.score)


def _between(series: Numbers, found: Sequence[tuple[_Step, bool]]) -> list[ChangePoint]:
    """With the levels of the runs between neighbouring changes."""
    places = [0, *(step.place for step, _ in found), len(series)]
    levels = [_median(series[start:stop]) for start, stop in itertools.pairwise(places)]
    return [
        ChangePoint(
            place=step.place,
            earliest=max(step.earliest, places[number] + 1),
            latest=min(step.latest, places[number + 2] - 1),
            before=levels[number],
            after=levels[number + 1],
            confidence=1 - 0.05 * math.exp(-_TAIL * (step.score - _THRESHOLD)),
            settled=settled,
        )
        for number, (step, settled) in enumerate(found)
    ]


def _with_drifts(logs: Numbers, points: Sequence[ChangePoint]) -> list[ChangePoint]:
    """Neighbouring changes in one direction are told as a drift if a straight line explains those runs better."""
    found: list[ChangePoint] = []
    for _, same in itertools.groupby(points, key=lambda point: point.after > point.before):
        group = list(same)
        start = found[-1].place if found else 0
        stop = points[len(found) + len(group)].place if len(found) + len(group) < len(points) else len(logs)
        drifting = _is_line(logs[start:stop], [point.place - start for point in group])
        found += [point._replace(drifting=drifting) for point in group]
    return found


def _is_line(window: Numbers, places: Sequence[int]) -> bool:
    """Whether a line is likely in view of its simplicity: each step has a size and a place, a line only a slope."""
    near = _pulled_in(window)
    if near is None:
        return False
    count = len(near)
    steps = [(np.arange(count) >= place).astype(np.float64) for place in places]
    line = np.arange(count) / count
    return _best_fit(near, [line]) + _LINE_FOR_A_STEP * len(places) * math.log(count) > _best_fit(near, steps)


def _best_fit(x: Numbers, shapes: Sequence[Numbers]) -> float:
    """Twice the logarithm of the likelihood of a level and these shapes, with the dependence that suits them best."""
    best = -math.inf
    for dependence, first, log_first in zip(_DEPENDENCE, _FIRST, _LOG_FIRST, strict=True):
        y, *columns = (
            np.concatenate([[first * v[0]], v[1:] - dependence * v[:-1]]) for v in (x, np.ones(len(x)), *shapes)
        )
        fitted = np.column_stack(columns) @ np.linalg.lstsq(np.column_stack(columns), y, rcond=None)[0]
        left = float(np.sum((y - fitted) ** 2))
        best = max(best, float(log_first) - len(x) * math.log(left + len(x) * _ROUNDING))
    return best
