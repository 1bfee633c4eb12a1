"""Change points of other tools. Started with one of their interpreters: `python _change_point_peers.py TOOL`, series on stdin.

otava 0.8      `compute_change_points` with its defaults (E-divisive with windows, then a t-test; p < 0.001).
asv 0.6        every step of `step_detect.detect_steps`; `asv publish` shows those of 5 % and more that last.
ruptures 1.1   PELT with the `l2` cost and the penalty 3 σ² log n, σ from successive differences.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence


def otava(series: Sequence[float]) -> list[int]:
    from otava.analysis import compute_change_points  # type: ignore[import-not-found]

    return [int(point.index) for point in compute_change_points(list(series))[0]]


def asv(series: Sequence[float]) -> list[int]:
    from asv.step_detect import detect_steps  # type: ignore[import-not-found]

    return [int(step[0]) for step in detect_steps(list(series))][1:]


def ruptures(series: Sequence[float]) -> list[int]:
    import numpy as np
    import ruptures as rpt  # type: ignore[import-not-found]

    between = [abs(b - a) for a, b in zip(series, series[1:])]  # noqa: B905, RUF007 (their Python may be older)
    spread = statistics.median(between) / 0.9539
    penalty = 3 * spread**2 * math.log(len(series))
    return [int(place) for place in rpt.Pelt(model="l2", min_size=4).fit(np.array(series)).predict(pen=penalty)[:-1]]


TOOLS: dict[str, Callable[[Sequence[float]], list[int]]] = {"otava": otava, "asv": asv, "ruptures": ruptures}

if __name__ == "__main__":
    json.dump([TOOLS[sys.argv[1]](series) for series in json.load(sys.stdin)], sys.stdout)
