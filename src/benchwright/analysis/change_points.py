"""Where the level of a series of runs changed, and by how much.

The test is a likelihood ratio: a step or a trend in noise whose values depend on the one before (an autoregression of unknown
strength), against the same noise alone. So slow wandering is not taken for a change. Values far from the others are pulled in first. A
step must hold for most runs on either side, so a single outlier is none; and it must be clear even if the noise changed with it, so a
machine that became noisier is none, either.

The series is examined at fixed lengths, each time up to there only: a step that was found settled stays as it was when runs are added.
Thresholds are set by simulation such that at most 5 % of series of 100 unchanged runs show any change, in each family of noise
(performance/history.py).
"""

from __future__ import annotations

import itertools
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
    REACH,
    ROUNDING,
    SIDE,
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


# Trends: ramps in noise that may wander, and how much likelier they are than a step.


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

    def convincing(self, more: float = 0.0) -> Change | None:
        """The trend, if noise could hardly look like it; `more` is added to the threshold."""
        if self.score < TREND_THRESHOLD + more:
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


FEWEST = 12  # runs, below which nothing can be said
_SETTLED_SIDE = 8  # runs after it until it is settled
_STRIDE = 0.15  # the series grows by so much until the next look
_SHORT = 40
_THRESHOLD, _THRESHOLD_SHORT = 14.0, 18.0  # of the score, and of windows shorter than _SHORT
_TAIL = 0.36  # how fast the chance of a false alarm falls with the score
_MOSTLY = 0.6  # the share of runs on one side that are beyond the median of the other
_LOOSE = 0.3  # with weaker dependence, the place is found from the values one by one
_NEIGHBOURS = 8
_BESIDE = 12  # where runs depend on each other, only so many on either side of a change must agree
_TAIL_FREEDOM = 3.0
_UNEQUAL_NOISE_THRESHOLD = 14.0  # of the score of a step whose sides have noise of their own
_TREND_LEAD = 5.0  # how much likelier than a step a trend must be to be reported
_STEP_LEAD = 5.0  # and a step, to be settled soon
_TREND_GROWTH = 1.15  # beyond WINDOW, trends are looked for each time the series has grown so much
_PER_LENGTH = 4.0  # what the thresholds grow by, each time the series is e times as long
_LONG_SINCE = 24  # runs after a step that is a little likelier than a trend, until it is settled


class ChangePoint(NamedTuple):
    """From `end` on, values are `ratio` times those before `place`: a step if those are the same run, else a trend, which no single
    run made. It happened, or began, after run `earliest` - 1 and not after run `latest`. A trend that goes on ends with the series.

    `confidence`: one minus the chance that 100 unchanged runs show so clear a change. `settled`: more runs will not move it; a trend
    has ended, but may yet turn out to be part of a longer one.
    """

    place: int
    earliest: int
    latest: int
    end: int
    before: float
    after: float
    confidence: float
    settled: bool

    @property
    def drifting(self) -> bool:
        return self.end > self.place

    @property
    def ratio(self) -> float:
        return self.after / self.before if self.before else math.copysign(math.inf, self.after - self.before)


class _Found(NamedTuple):
    change: Change
    settled: bool


class _Look(NamedTuple):
    """The best explanation of the runs up to a look; `clear` unless the other shape, step or trend, explains them as well."""

    change: Change
    clear: bool


def change_points(values: Sequence[float]) -> list[ChangePoint]:
    """The changes of a series, oldest first; all values finite, in the order of the code they measured."""
    series = np.asarray(values, dtype=np.float64)
    logs = np.log(series) if len(series) and series.min() > 0 else series
    found: list[_Found] = []
    begin, look, tried = 0, FEWEST, 0  # `tried`: the length at which a trend was last looked for
    while begin + FEWEST <= len(logs):
        end = min(look, len(logs))
        due = end == len(logs) or end - begin <= WINDOW or end - begin >= _TREND_GROWTH * tried
        tried = end - begin if due else tried
        seen = _look_at(logs[begin:end], _for_many_looks(end), trends=due)
        settled = seen is not None and seen.clear and end == look and end - begin - seen.change.end >= _SETTLED_SIDE
        further = look + max(1, round(_STRIDE * min(WINDOW, end - begin)))
        if seen is not None and (settled or end == len(logs)):
            found.append(_Found(seen.change.moved(begin), settled))
            begin += seen.change.end
            look, tried = max(look, begin + FEWEST), 0
        elif end == len(logs):
            break
        else:
            look = further if seen is None else max(further, begin + seen.change.end + _SETTLED_SIDE)
    return _between(series, logs, _joined(logs, _with_trends_between(logs, found)))


def _for_many_looks(runs: int) -> float:
    """Added to the thresholds: a long series is looked at so often that chance alone would be convincing now and then."""
    return _PER_LENGTH * max(0.0, math.log(runs / WINDOW))


def _look_at(stretch: Numbers, more: float, *, trends: bool) -> _Look | None:
    """The change that explains all runs since the one before, if any does convincingly. `more` is added to the thresholds."""
    first = max(0, len(stretch) - WINDOW)
    step = convincing_step(stretch[first:], more)
    if step is None and not (trends and may_trend(stretch)):
        return None
    step = None if step is None else step.moved(first)
    if len(stretch) < FEWEST_FOR_TREND:
        return None if step is None else _Look(step, clear=True)
    fit = TrendFit(stretch)
    if step is None and fit.score < TREND_THRESHOLD + more:
        return None
    lead = fit.lead_over_steps
    trend = fit.convincing(more) if lead > _TREND_LEAD else None
    if trend is not None:
        return _Look(trend, clear=True)
    if step is None:
        return None
    long_since = len(stretch) - step.place >= _LONG_SINCE
    return _Look(step, clear=lead < (0.0 if long_since else -_STEP_LEAD))


def _with_trends_between(logs: Numbers, found: Sequence[_Found]) -> list[_Found]:
    """With the trends that a change ended, such as those of a saw tooth."""
    complete: list[_Found] = []
    begin = 0
    for each in found:
        stretch = logs[begin : each.change.place]
        fit = TrendFit(stretch) if may_trend(stretch) else None
        trend = fit.convincing() if fit is not None and fit.lead_over_steps > 0 else None
        if trend is not None:
            complete.append(_Found(trend.moved(begin), each.settled))
        complete.append(each)
        begin = each.change.end
    return complete


def _joined(logs: Numbers, found: Sequence[_Found]) -> list[_Found]:
    """Neighbouring changes in one direction are one trend if it explains those runs as well, in view of its simplicity."""
    rises = [point.after > point.before for point in _between(logs, logs, found)]
    complete: list[_Found] = []
    number = 0
    for _, same in itertools.groupby(rises):
        group = found[number : number + len(list(same))]
        number += len(group)
        begin = complete[-1].change.end if complete else 0
        stop = found[number].change.place if number < len(found) else len(logs)
        fit = TrendFit(logs[begin:stop]) if len(group) > 1 else None
        trend = fit.convincing() if fit and fit.replaces([each.change.moved(-begin) for each in group]) else None
        complete += group if trend is None else [_Found(trend.moved(begin), group[-1].settled)]
    return complete


def convincing_step(window: Numbers, more: float = 0.0) -> Change | None:
    """Where a step explains the window best, if noise could hardly do so and it holds for most runs on either side."""
    near = pulled_in(window)
    if near is None:
        return None
    steady, stepped = log_likelihoods(near)
    wandering = float(DEPENDENCE[int(np.argmax(steady))])
    score = float(stepped.max() - steady.max()) - wandering_allowance(wandering)
    if score < (_THRESHOLD_SHORT if len(window) < _SHORT else _THRESHOLD) + more:
        return None
    by_place = stepped.max(axis=0)
    place = SIDE + int(np.argmax(by_place))
    sides = [len(window)]
    if DEPENDENCE[int(np.argmax(stepped.max(axis=1)))] <= _LOOSE:
        place, by_place = _one_by_one(window, place)
    else:
        sides.append(_BESIDE)
    if not any(_holds(window[max(0, place - side) : place], window[place : place + side]) for side in sides):
        return None
    low, high = likely_range(by_place)
    return Change(place, min(place, SIDE + low), max(place, SIDE + high), place, score)


def _one_by_one(window: Numbers, place: int) -> tuple[int, Numbers]:
    """A better place if values do not depend on each other: each is counted with the level it is nearer to, outliers for little.

    Also the evidence by place, like that of `log_likelihoods`.
    """
    levels = median(window[:place]), median(window[place:])
    away = np.abs(np.concatenate([window[:place] - levels[0], window[place:] - levels[1]]))
    spread = 1.4826 * median(away) or float(away.mean()) or abs(levels[1] - levels[0]) * ROUNDING or 1.0
    costs = [np.log1p(((window - level) / spread) ** 2 / _TAIL_FREEDOM) for level in levels]
    total = (_TAIL_FREEDOM + 1) * np.concatenate([[0.0], np.cumsum(costs[1] - costs[0])])
    evidence = total[SIDE : len(window) - SIDE + 1]
    low = max(0, place - SIDE - _NEIGHBOURS)
    return SIDE + low + int(np.argmax(evidence[low : place - SIDE + _NEIGHBOURS + 1])), evidence


def _holds(before: Numbers, after: Numbers) -> bool:
    """Whether most runs on either side are beyond the median of the other, and it would be a change in unequal noise, too."""
    levels = median(before), median(after)
    sign = math.copysign(1.0, levels[1] - levels[0])
    beyond = np.mean(sign * (after - levels[0]) > 0), np.mean(sign * (levels[1] - before) > 0)
    return bool(min(beyond) >= _MOSTLY) and _unequal_noise_score(before, after) >= _UNEQUAL_NOISE_THRESHOLD


def _unequal_noise_score(before: Numbers, after: Numbers) -> float:
    """The likelihood ratio of a step if the noise, too, changed there: a few runs of a noisier machine are no new level."""
    largest = max(float(np.abs(side).max()) for side in (before, after)) or 1.0  # squares of huge values would overflow
    sides = [_near_median(side / largest) for side in (before, after)]
    left = np.array([np.sum((side - side.mean()) ** 2) for side in sides])
    counts = np.array([len(side) for side in sides])
    means = np.array([side.mean() for side in sides])
    least = ROUNDING * (float(np.sum(left)) + float(means[1] - means[0]) ** 2)
    left = np.maximum(left, least)
    shared = float(np.sum(means * counts**2 / left) / np.sum(counts**2 / left))
    return float(np.sum(counts * np.log1p(counts * (means - shared) ** 2 / left)))


def _near_median(side: Numbers) -> Numbers:
    """Outliers pulled in, by this side's own spread; few values stay as they are."""
    middle = median(side)
    reach = REACH * median(np.abs(side - middle))
    return np.clip(side, middle - reach, middle + reach) if len(side) >= _SETTLED_SIDE and reach > 0 else side


def _between(series: Numbers, logs: Numbers, found: Sequence[_Found]) -> list[ChangePoint]:
    """With the levels: the medians of the runs between neighbouring changes, and what a trend goes from and to."""
    starts = [0, *(change.end for change, _ in found)]
    stops = [*(change.place for change, _ in found), len(series)]
    between = [median(series[a:b]) if b - a >= SIDE else None for a, b in zip(starts, stops, strict=True)]
    ends: list[tuple[float, float] | None] = [
        ends_of(logs[start:stop], change.place - start, change.end - start, series is not logs)
        if change.is_trend
        else None
        for (change, _), start, stop in zip(found, starts[:-1], stops[1:], strict=True)
    ]
    points = []
    for number, (change, settled) in enumerate(found):
        own, previous, following = ends[number], ends[number - 1] if number else None, (*ends, None)[number + 1]
        before, after = between[number], between[number + 1]
        before, after = own or (
            before if before is not None else previous[1] if previous else math.nan,
            after if after is not None else following[0] if following else math.nan,
        )
        points.append(
            ChangePoint(
                place=change.place,
                # A trend may begin or end at a step.
                earliest=change.earliest
                if change.is_trend
                else min(change.place, max(change.earliest, starts[number] + 1)),
                latest=max(change.place, min(change.latest, stops[number + 1] - 1)),
                end=change.end,
                before=before,
                after=after,
                confidence=1 - 0.05 * math.exp(-_TAIL * (change.score - _THRESHOLD)),
                settled=change.end < len(series) if change.is_trend else settled,
            )
        )
    return points
