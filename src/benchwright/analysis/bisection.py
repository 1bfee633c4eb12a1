"""Which commit changed a metric: Bayesian inference over noisy measurements of commits between a good and a bad one.

The model: commits before the change have one level, the changed commit and those after it another. Both levels, the spread and the
weight of the noise's tails are unknown and integrated out on a grid; noise is Student's t, so an outlier counts for little. "Nothing
changed" is a hypothesis too, so noise alone does not convict a commit.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

ENDS_FIRST = 3  # measurements of the good and of the bad commit before any other
_DOUBT = 0.05  # a commit is on one side if the chance that it is on the other is smaller
_TAILS = (3.0, 8.0, 50.0)  # degrees of freedom
_SPREADS = tuple(2.0 ** (half / 2) for half in range(-7, 7))  # in units of the first guess
_REACH = 4.0  # how far from a commit's median its level may be, in spreads
_MOST_LEVELS = 240
_EXACT = 1e-7  # the least spread, as a share of the values: measurements without noise stay comparable


class _Grid(NamedTuple):
    """Levels with their share of the prior, and the hypotheses about noise: spread × degrees of freedom, flattened."""

    levels: Numbers
    log_shares: Numbers
    spreads: Numbers
    tails: Numbers
    offsets: Numbers  # what the density's logarithm has besides the value
    made_with: int

    def holds(self, value: float) -> bool:
        return bool(np.min(np.abs(self.levels - value)) <= float(self.spreads.max()))

    def log_density(self, value: float) -> Numbers:
        """Of `value`, by noise × level."""
        away = (value - self.levels[None, :]) / self.spreads[:, None]
        return self.offsets[:, None] - (self.tails[:, None] + 1) / 2 * np.log1p(away * away / self.tails[:, None])


class Bisection:
    """Places 0 (good) to `count` - 1 (bad) are commits, oldest first. `observe` what was measured, then ask `next_place`.

    Values are positive numbers or their logarithms, of one metric, each from a separate launch. `prior`: weights of the commits,
    by place. `rises`: whether the metric is known to have gone up (True) or down (False). `enough`: the chance at which to stop.
    """

    def __init__(
        self,
        count: int,
        prior: Sequence[float] | None = None,
        *,
        rises: bool | None = None,
        enough: float = 0.97,
        unchanged_prior: float = 0.1,
    ) -> None:
        if count < 2:
            raise ValueError("a bisection needs a good and a bad commit")
        if prior is not None and (len(prior) != count or min(prior) < 0 or sum(prior[1:]) <= 0):
            raise ValueError(
                "the prior has one weight for each commit, none negative and some after the first positive"
            )
        weights = np.array([0.0] + [1.0] * (count - 1) if prior is None else [0.0, *prior[1:]])
        with np.errstate(divide="ignore"):
            self._log_prior = np.log(weights / weights.sum() * (1 - unchanged_prior))
            self._log_prior_unchanged = float(np.log(unchanged_prior))
        self.count = count
        self.rises = rises
        self.enough = enough
        self.skipped: set[int] = set()
        self._values: dict[int, list[float]] = {}
        self._densities: dict[int, Numbers] = {}
        self._grid: _Grid | None = None
        self._posterior: Numbers | None = None

    @property
    def launches(self) -> int:
        return sum(map(len, self._values.values()))

    def observe(self, place: int, value: float) -> None:
        self._check(place)
        if not math.isfinite(value):
            raise ValueError(f"commit {place} measured {value}")
        self._values.setdefault(place, []).append(value)
        self._posterior = None
        if self._grid is None or self.launches > 1.3 * self._grid.made_with or not self._grid.holds(value):
            self._grid, self._densities = None, {}
        else:
            self._densities[place] = self._densities.get(place, 0.0) + self._grid.log_density(value)

    def skip(self, place: int) -> None:
        """This commit cannot be measured."""
        self._check(place)
        if place in (0, self.count - 1):
            raise ValueError("the good and the bad commit cannot be skipped")
        self.skipped.add(place)

    def posterior(self) -> list[float]:
        """For each place, the chance that its commit changed the metric; with `unchanged`, they add up to 1."""
        return [float(chance) for chance in self._chances()[:-1]]

    @property
    def unchanged(self) -> float:
        """The chance that no commit changed the metric."""
        return float(self._chances()[-1])

    @property
    def best(self) -> int:
        return int(np.argmax(self._chances()[:-1]))

    @property
    def chance(self) -> float:
        """That `best` changed the metric."""
        return float(self._chances()[self.best])

    @property
    def suspects(self) -> range:
        """`best` and the commits indistinguishable from it, because those between were skipped."""
        return next(group for group in self._groups() if self.best in group)

    def next_place(self) -> int | None:
        """The commit to measure next; None if one is convicted, all are acquitted, or no measurement could tell more."""
        for times, first in itertools.product(range(1, ENDS_FIRST + 1), (0, self.count - 1)):
            if len(self._values.get(first, ())) < times:
                return first
        chances = self._chances()
        groups = self._groups()
        shares = [float(chances[group.start : group.stop].sum()) for group in groups]
        if max(shares) >= self.enough or chances[-1] >= self.enough or len(groups) == 1:
            return None
        whole = sum(shares)
        # A measurement of a group's last commit asks: here, or earlier? The answer tells most where the odds are even.
        before = itertools.accumulate(shares[:-1])
        odds = {group[-1]: share / whole for group, share in zip(groups[:-1], before, strict=True)}
        end = self._less_known_end(odds)
        return end if end is not None else min(odds, key=lambda place: abs(odds[place] - 0.5))

    def _less_known_end(self, odds: Mapping[int, float]) -> int | None:
        """The good or the bad commit, if its level is known so badly that measuring others more often would not help."""
        sure = {0: 0, self.count - 1: 0}
        undecided = 0
        for place, values in self._values.items():
            chance = odds.get(place, float(place > 0))
            if _DOUBT < chance < 1 - _DOUBT:
                undecided += len(values)
            else:
                sure[self.count - 1 if chance > 0.5 else 0] += len(values)
        end = min(sure, key=lambda place: sure[place])
        return end if sure[end] < undecided / 2 else None

    def _check(self, place: int) -> None:
        if not 0 <= place < self.count:
            raise ValueError(f"there is no commit {place} of {self.count}")

    def _groups(self) -> list[range]:
        """Commits in order, those together that no measurement can tell apart."""
        ends = [place for place in range(1, self.count) if place not in self.skipped]
        starts = [1, *(end + 1 for end in ends[:-1])]
        return [range(start, end + 1) for start, end in zip(starts, ends, strict=True)]

    def _chances(self) -> Numbers:
        """By place, and last that nothing changed."""
        if self._posterior is None:
            logs = np.append(self._log_prior, self._log_prior_unchanged) + self._log_evidence()
            weights = np.exp(logs - logs.max())
            self._posterior = weights / weights.sum()
        return self._posterior

    def _log_evidence(self) -> Numbers:
        """Of what was observed, up to a constant: by the place of the change, and last if nothing changed."""
        measured = sorted(self._values)
        if len(measured) < 2:
            return np.zeros(self.count + 1)
        if self._grid is None:
            self._grid = _grid([self._values[place] for place in measured])
            for place in measured:
                self._densities[place] = sum(map(self._grid.log_density, self._values[place]), np.zeros(()))
        shares = self._grid.log_shares
        totals = np.cumsum([self._densities[place] for place in measured], axis=0)
        before = np.concatenate(
            [np.zeros_like(totals[:1]), totals]
        )  # by how many of the measured commits are unchanged
        sides = _both_sides(before + shares, totals[-1] - before + shares, self.rises)
        unchanged = _log_sum(_log_sum(totals[-1] + shares))
        # A change between two measured commits leaves the same ones before it, wherever it is.
        places = np.searchsorted(np.array(measured), np.arange(self.count))
        return np.append(_log_sum(sides)[places], unchanged)


def _both_sides(before: Numbers, after: Numbers, rises: bool | None) -> Numbers:
    """The evidence with both levels integrated out, by place and noise; if the direction is known, only over such pairs of levels."""
    if rises is None:
        return _log_sum(before) + _log_sum(after)
    if not rises:
        before, after = after, before
    top_low, top_high = before.max(axis=-1, keepdims=True), after.max(axis=-1, keepdims=True)
    low, high = np.exp(before - top_low), np.exp(after - top_high)
    below = np.cumsum(low, axis=-1) - low / 2  # half of the pairs with equal levels
    with np.errstate(divide="ignore"):
        joint: Numbers = np.log(2 * np.sum(below * high, axis=-1)) + (top_low + top_high)[..., 0]
    return joint


def _log_sum(logs: Numbers) -> Numbers:
    """The logarithm of the sum over the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    total: Numbers = np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0]
    return total


def _grid(measured: Sequence[Sequence[float]]) -> _Grid:
    """Levels near the medians of the commits, as finely as so many measurements can tell them apart."""
    medians = sorted(statistics.median(values) for values in measured)
    guess = _first_spread(measured)
    launches = sum(map(len, measured))
    near: list[tuple[float, float]] = []
    for middle in medians:
        low, high = middle - _REACH * guess, middle + _REACH * guess
        if near and low <= near[-1][1]:
            near[-1] = (near[-1][0], high)
        else:
            near.append((low, high))
    width = sum(high - low for low, high in near)
    step = max(guess / math.sqrt(launches), width / _MOST_LEVELS)
    levels = np.concatenate([np.arange(low, high + step / 2, step) for low, high in near])
    likely = _SPREADS if launches < 16 else _SPREADS[3:-3]
    spreads, tails = (column.ravel() for column in np.meshgrid(guess * np.array(likely), np.array(_TAILS)))
    offsets = np.array([_log_constant(tail) for tail in tails]) - np.log(spreads)
    return _Grid(levels, np.full(len(levels), -math.log(len(levels))), spreads, tails, offsets, launches)


def _first_spread(measured: Sequence[Sequence[float]]) -> float:
    """From the deviations within commits; from those of all if each was measured once."""
    medians = [statistics.median(values) for values in measured]
    away = [abs(value - middle) for values, middle in zip(measured, medians, strict=True) for value in values]
    freedom = len(away) - len(measured)
    if freedom == 0:
        away = [abs(value - statistics.median(medians)) for value in medians]
        freedom = len(away) - 1
    size = statistics.median(map(abs, medians)) or max(map(abs, medians)) or 1.0
    return max(1.2533 * math.fsum(away) / freedom, _EXACT * size)


def _log_constant(tail: float) -> float:
    return math.lgamma((tail + 1) / 2) - math.lgamma(tail / 2) - 0.5 * math.log(tail * math.pi)
