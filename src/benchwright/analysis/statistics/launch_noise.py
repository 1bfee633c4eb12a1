"""Student's t for a difference between two sides whose launches alternate, in noise that may wander.

The noise is seen as cosine waves over the launches, from one that turns once to one that turns with every launch. Each of some models
says how strong slow waves are beside fast ones: equally (independent launches), stronger (a machine that wanders, more or less, for
many launches or a few) or weaker (launches that swing). Each model counts by its likelihood, whatever the difference between the sides
(restricted maximum likelihood). The stronger a wave is, the less it counts: a machine that wanders says little about neighbours. All
launches tell how large the noise is, so there are nearly twice as many degrees of freedom as from the differences within pairs.

Launches far from what the others predict are pulled in first. A side that is much noisier than the other has a separate limit there,
and tells less about the noise than both would: Student's t is that of fewer degrees of freedom. Why this test: docs/decisions/0034-verdicts.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_FORGETS = (0.0, 0.3)  # how soon the machine forgets: never, or after a few launches
_WANDERS = (0.1, 0.4, 1.5, 6.0, 1e6)  # how much it wanders, beside what is new in each launch
_SWINGS = (0.5, 2.0)  # what is new, beside launches that swing
_INDEPENDENT = 4.0  # times as likely as any other model, before any launch
_FAR = 2.0  # robust standard deviations, beyond which a launch is pulled in
_MUCH_NOISIER = 1.5  # times: until then, one limit holds for both sides
_ROUNDS = 2  # of pulling in
_TO_DEVIATION = 1.4826  # from the median of distances
_FITTED = 4  # degrees of freedom that the level, the difference and the models cost
_ROUNDING, _LEAST = 1e-12, 1e-300


class _Models(NamedTuple):
    waves: Numbers  # wave × launch
    precisions: Numbers  # model × wave, with the geometric mean 1
    log_prior: Numbers


def freedom(launches: int) -> int:
    """The degrees of freedom of `students`, from as many launches of both sides; if one is noisier, t is what it would be with them."""
    return launches - _FITTED


def students(values: Numbers, is_treatment: NDArray[np.bool_]) -> Numbers:
    """Of each row of launches, in the order they ran; ± infinity if there is a difference and no noise."""
    count = values.shape[1]
    models = _models(count)
    sides = np.where(is_treatment, 0.5, -0.5) @ models.waves.T
    sided = np.broadcast_to(is_treatment, values.shape)
    noise = values - np.median(values, axis=1, keepdims=True)
    silent = np.abs(noise).max(axis=1) <= _ROUNDING * np.maximum(1.0, np.abs(values).max(axis=1))
    for _ in range(_ROUNDS):
        noise = _pulled_in(noise, sided, sides, models)
    strengths = noise @ models.waves.T
    weights = _weights(strengths, sides, models)
    scale = np.sqrt((weights * sides**2).sum(axis=1) * (weights * strengths**2).sum(axis=1))
    cosine = (weights * sides * strengths).sum(axis=1) / np.where(scale > 0, scale, 1.0)
    left = 1 - cosine**2
    with np.errstate(divide="ignore"):
        found = cosine * math.sqrt(freedom(count)) / np.sqrt(np.where(left > _ROUNDING, left, 0.0))
    return np.where(silent, 0.0, _with_less_freedom(found, freedom(count), _share_of_freedom(noise, sided)))


def _pulled_in(noise: Numbers, is_treatment: NDArray[np.bool_], sides: Numbers, models: _Models) -> Numbers:
    """Launches that are far from what the others predict, as far as the limit. If most are predicted exactly, all stay.

    A side that is much noisier than the other has a separate limit: else most of its launches would be outliers.
    """
    strengths = noise @ models.waves.T
    weights = _weights(strengths, sides, models)
    precisions = weights @ models.waves**2  # of each launch, given the others
    surprises = (weights * strengths) @ models.waves / np.sqrt(precisions)
    away = np.abs(surprises)
    usual = np.median(away, axis=1, keepdims=True)
    ours, theirs = (np.median(each, axis=1, keepdims=True) for each in _by_side(away, is_treatment))
    own, other = np.where(is_treatment, ours, theirs), np.where(is_treatment, theirs, ours)
    limit = _FAR * _TO_DEVIATION * np.where(own > _MUCH_NOISIER * other, own, usual)
    excess = np.where(limit > 0, surprises - np.clip(surprises, -limit, limit), 0.0)
    pulled: Numbers = noise - excess / np.sqrt(precisions)
    return pulled


def _by_side(rows: Numbers, is_treatment: NDArray[np.bool_]) -> list[Numbers]:
    return [rows[side].reshape(len(rows), -1) for side in (is_treatment, ~is_treatment)]


def _share_of_freedom(noise: Numbers, is_treatment: NDArray[np.bool_]) -> Numbers:
    """How much both sides say about the noise if one is noisier (Welch and Satterthwaite): from 1, if they are alike, to a half."""
    one, other = (np.var(each, axis=1) + _LEAST for each in _by_side(noise, is_treatment))
    ratio = np.minimum(one, other) / np.maximum(one, other)
    share: Numbers = (1 + ratio) ** 2 / (1 + ratio**2) / 2
    return share


def _with_less_freedom(students: Numbers, most: int, share: Numbers) -> Numbers:
    """Student's t with as many degrees of freedom that is as unlikely as this one with a share of them (Wallace, 1959)."""
    fewer = most * share
    deviations = (8 * fewer + 1) / (8 * fewer + 3) * np.sqrt(fewer * np.log1p(students**2 / fewer))
    with np.errstate(over="ignore"):
        sizes = np.sqrt(most * np.expm1((deviations * (8 * most + 3) / (8 * most + 1)) ** 2 / most))
    return np.where(np.isfinite(students), np.copysign(sizes, students), students)


def _weights(strengths: Numbers, sides: Numbers, models: _Models) -> Numbers:
    """Of each wave, in each row: one over its variance, on average over the models. Only their proportions matter."""
    shared = (strengths * sides) @ models.precisions.T
    of_sides = sides**2 @ models.precisions.T
    squares = strengths**2 @ models.precisions.T
    left = np.maximum(squares - shared**2 / of_sides, _ROUNDING * squares + _LEAST)
    logs = models.log_prior - np.log(of_sides) / 2 - (strengths.shape[1] - 1) / 2 * np.log(left)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True)) * left.min(axis=1, keepdims=True) / left
    weights: Numbers = likely @ models.precisions
    return weights


@lru_cache(maxsize=64)
def _models(launches: int) -> _Models:
    number, launch = np.arange(1, launches)[:, None], np.arange(launches)
    waves = math.sqrt(2 / launches) * np.cos(math.pi * number * (launch + 0.5) / launches)
    speeds = 2 - 2 * np.cos(math.pi * number[:, 0] / launches)  # from 0, slow, to 4
    variances = [np.ones(launches - 1)]
    variances += [1 + wanders / (speeds + forgets) for forgets in _FORGETS for wanders in _WANDERS]
    variances += [fresh + speeds for fresh in _SWINGS]
    logs = np.log(np.array(variances))
    prior = np.array([_INDEPENDENT, *[1.0] * (len(variances) - 1)])
    return _Models(waves, np.exp(logs.mean(axis=1, keepdims=True) - logs), np.log(prior / prior.sum()))
