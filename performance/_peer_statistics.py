"""What other tools make of the same samples, by the formulas they document.

pyperf            "Mean +- std dev" over the values of all processes; two benchmarks differ if Student's two-sample t over
                  all values, pooled, passes 95 % (pyperf docs, "Analyze benchmark results"; `is_significant` in
                  pyperf/_utils.py).
hyperfine         "mean ± σ" over runs (README); its scripts/welch_ttest.py calls scipy.stats.ttest_ind with equal_var=False
                  and a threshold of 0.05.
pytest-benchmark  Median and IQR over the rounds of one process (docs, "Usage": min, max, mean, stddev, median, iqr).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchwright.analysis.statistics.distributions import student_quantile, student_two_sided

Array = Any


class Bounds(NamedTuple):
    low: Array
    high: Array


def pyperf_printed(samples: Array) -> Bounds:
    """Mean ± one standard deviation of all values: a spread, shown where a reader expects an interval."""
    pooled = samples.reshape(len(samples), -1)
    mean, deviation = pooled.mean(1), pooled.std(1, ddof=1)
    return Bounds(mean - deviation, mean + deviation)


def pyperf_implied(samples: Array) -> Bounds:
    """The 95 % t-interval of the mean over all values, pooled: what its significance test believes."""
    return _t_interval(samples.reshape(len(samples), -1))


def hyperfine_printed(samples: Array) -> Bounds:
    runs = samples.mean(2)
    mean, deviation = runs.mean(1), runs.std(1, ddof=1)
    return Bounds(mean - deviation, mean + deviation)


def hyperfine_implied(samples: Array) -> Bounds:
    """The 95 % t-interval of the mean over runs: what its Welch script believes."""
    return _t_interval(samples.mean(2))


def pytest_benchmark_printed(one_process: Array) -> Bounds:
    """The quartiles of the rounds of one process."""
    rounds = one_process.reshape(len(one_process), -1)
    low, high = np.quantile(rounds, [0.25, 0.75], axis=1)
    return Bounds(low, high)


def pytest_benchmark_implied(one_process: Array) -> Bounds:
    """The 95 % t-interval of its mean and standard deviation over the rounds of one process."""
    return _t_interval(one_process.reshape(len(one_process), -1))


def _t_interval(values: Array) -> Bounds:
    count = values.shape[1]
    mean = values.mean(1)
    reach = student_quantile(0.95, count - 1) * values.std(1, ddof=1) / np.sqrt(count)
    return Bounds(mean - reach, mean + reach)


def pyperf_significant(control: Array, treatment: Array) -> bool:
    a, b = control.ravel(), treatment.ravel()
    pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2)
    t = (b.mean() - a.mean()) / np.sqrt(pooled * (1 / len(a) + 1 / len(b)))
    return bool(abs(t) >= student_quantile(0.95, len(a) + len(b) - 2))


def hyperfine_significant(control: Array, treatment: Array) -> bool:
    a, b = control.mean(1), treatment.mean(1)
    errors = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    freedom = sum(errors) ** 2 / (errors[0] ** 2 / (len(a) - 1) + errors[1] ** 2 / (len(b) - 1))
    return student_two_sided((b.mean() - a.mean()) / np.sqrt(sum(errors)), freedom) < 0.05
