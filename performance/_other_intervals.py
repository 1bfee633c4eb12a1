"""Intervals of a median over launches that were considered and not taken; vectorised, for the tables only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _peer_statistics import Bounds

from benchwright.analysis.statistics.distributions import NORMAL, student_quantile

Array = Any
RESAMPLES = 599


def _launch_medians(samples: Array) -> Array:
    return np.median(samples, axis=2)


def _resampled(values: Array, rng: np.random.Generator) -> Array:
    replicas, count = values.shape
    chosen = rng.integers(0, count, (replicas, RESAMPLES, count))
    return np.take_along_axis(np.broadcast_to(values[:, None, :], chosen.shape), chosen, axis=2)


def _quantiles(draws: Array, low: Array, high: Array) -> Bounds:
    ordered = np.sort(draws, axis=1)
    last = draws.shape[1] - 1
    rows = np.arange(len(draws))
    places = [
        np.clip(np.round(np.broadcast_to(share, len(draws)) * last).astype(int), 0, last) for share in (low, high)
    ]
    return Bounds(ordered[rows, places[0]], ordered[rows, places[1]])


def _in_chunks(
    method: Callable[[Array, np.random.Generator], Bounds],
) -> Callable[[Array, np.random.Generator], Bounds]:
    """Resampling takes memory: a few hundred replicas at a time."""

    def whole(samples: Array, rng: np.random.Generator) -> Bounds:
        parts = [method(samples[i : i + 250], rng) for i in range(0, len(samples), 250)]
        return Bounds(np.concatenate([p.low for p in parts]), np.concatenate([p.high for p in parts]))

    return whole


def percentile_bootstrap(samples: Array, rng: np.random.Generator) -> Bounds:
    medians = np.median(_resampled(_launch_medians(samples), rng), axis=2)
    return _quantiles(medians, 0.025, 0.975)


def hierarchical_bootstrap(samples: Array, rng: np.random.Generator) -> Bounds:
    """Launches are resampled, then samples within each; the median of launch medians."""
    replicas, launches, size = samples.shape
    chosen = rng.integers(0, launches, (replicas, RESAMPLES, launches))
    inner = rng.integers(0, size, (replicas, RESAMPLES, launches, size))
    rows = np.arange(replicas)[:, None, None, None]
    medians = np.median(np.median(samples[rows, chosen[..., None], inner], axis=3), axis=2)
    return _quantiles(medians, 0.025, 0.975)


def bca_bootstrap(samples: Array, rng: np.random.Generator) -> Bounds:
    values = _launch_medians(samples)
    estimate = np.median(values, axis=1)
    medians = np.median(_resampled(values, rng), axis=2)
    below = (medians < estimate[:, None]).mean(1) + (medians == estimate[:, None]).mean(1) / 2
    bias = np.array([NORMAL.inv_cdf(min(max(b, 0.001), 0.999)) for b in below])
    count = values.shape[1]
    without = np.stack([np.median(np.delete(values, i, axis=1), axis=1) for i in range(count)], axis=1)
    away = without.mean(1, keepdims=True) - without
    acceleration = (away**3).sum(1) / np.maximum(6 * (away**2).sum(1) ** 1.5, 1e-300)
    shares = []
    for z in (-1.959964, 1.959964):
        moved = bias + (bias + z) / (1 - acceleration * (bias + z))
        shares.append(np.array([NORMAL.cdf(v) for v in moved]))
    return _quantiles(medians, shares[0], shares[1])


def studentised_bootstrap(samples: Array, rng: np.random.Generator) -> Bounds:
    """Bootstrap-t with the standard error of a median from the spacing of order statistics (McKean and Schrader)."""
    values = _launch_medians(samples)
    draws = _resampled(values, rng)
    errors = np.maximum(_median_error(draws), 1e-12)
    pivots = (np.median(draws, axis=2) - np.median(values, axis=1)[:, None]) / errors
    ends = _quantiles(pivots, 0.025, 0.975)
    error = _median_error(values)
    middle = np.median(values, axis=1)
    return Bounds(middle - ends.high * error, middle - ends.low * error)


def smoothed_bootstrap(samples: Array, rng: np.random.Generator) -> Bounds:
    values = _launch_medians(samples)
    quartiles = np.quantile(values, [0.25, 0.75], axis=1)
    spread = np.minimum(values.std(1, ddof=1), (quartiles[1] - quartiles[0]) / 1.349)
    draws = _resampled(values, rng)
    draws = draws + (0.9 * spread * values.shape[1] ** -0.2)[:, None, None] * rng.standard_normal(draws.shape)
    return _quantiles(np.median(draws, axis=2), 0.025, 0.975)


def exact_order_statistics(samples: Array, rng: np.random.Generator) -> Bounds:
    """The interval that was used before: whole ranks, at least 95 %."""
    from math import comb

    ordered = np.sort(_launch_medians(samples), axis=1)
    count = ordered.shape[1]
    tail, rank = 0.0, 0
    while rank < count // 2:
        tail += comb(count, rank) * 0.5**count
        if 2 * tail > 0.05:
            break
        rank += 1
    return Bounds(ordered[:, rank - 1], ordered[:, count - rank])


def student_interval(samples: Array, rng: np.random.Generator) -> Bounds:
    """Student's t around the mean of launch medians, held against the median."""
    values = _launch_medians(samples)
    count = values.shape[1]
    reach = student_quantile(0.95, count - 1) * values.std(1, ddof=1) / np.sqrt(count)
    return Bounds(values.mean(1) - reach, values.mean(1) + reach)


def _median_error(values: Array) -> Array:
    count = values.shape[-1]
    rank = max(1, round((count + 1) / 2 - 0.98 * np.sqrt(count)))
    ordered = np.sort(values, axis=-1)
    return (ordered[..., count - rank] - ordered[..., rank - 1]) / (2 * 1.959964)


OTHER_INTERVALS: dict[str, Callable[[Array, np.random.Generator], Bounds]] = {
    "percentile bootstrap": _in_chunks(percentile_bootstrap),
    "hierarchical bootstrap": _in_chunks(hierarchical_bootstrap),
    "BCa": _in_chunks(bca_bootstrap),
    "bootstrap-t": _in_chunks(studentised_bootstrap),
    "smoothed bootstrap": _in_chunks(smoothed_bootstrap),
    "whole order statistics": exact_order_statistics,
    "Student's t": student_interval,
}
