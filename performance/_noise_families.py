"""The noise families of every evaluation: launches with samples whose true middle is known."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = Any  # numpy arrays of replicas x launches x samples
Draw = Callable[[np.random.Generator, int, int, int], Array]

_SPIN = "n = 0\nfor i in range(150_000): n += i * i % 7"


class Family(NamedTuple):
    """`independent`: launches do not depend on one another. `steady`: what launches settle to, if not what they give on average."""

    name: str
    draw: Draw
    independent: bool
    steady: float | None = None

    def truth(self, samples: int) -> tuple[float, float]:
        """The median of what launches give, and the mean of all samples."""
        if self.steady is not None:
            return self.steady, self.steady
        many = self.draw(np.random.default_rng(7), 200_000, 1, samples)
        return float(np.median(np.median(many, axis=2))), float(many.mean())


def _autoregressive(rng: np.random.Generator, replicas: int, count: int, correlation: float) -> Array:
    noise = rng.standard_normal((count, replicas))
    for i in range(1, count):
        noise[i] = correlation * noise[i - 1] + np.sqrt(1 - correlation**2) * noise[i]
    return noise.T


def _gaussian(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
    return 1 + 0.02 * rng.standard_normal((replicas, launches, samples))


def _around(centres: Array, spread: float, rng: np.random.Generator, samples: int) -> Array:
    return centres[..., None] * (1 + spread * rng.standard_normal((*centres.shape, samples)))


def _hierarchical(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
    return _around(1 + 0.01 * rng.standard_normal((replicas, launches)), 0.01, rng, samples)


def _heavy_tail(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
    shape = (replicas, launches)
    centres = np.maximum(0.3, 1 + 0.02 * rng.standard_t(3, shape)) * np.where(rng.random(shape) < 0.01, 3, 1)
    return _around(centres, 0.005, rng, samples)


def _bimodal(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
    centres = np.where(rng.random((replicas, launches)) < 0.3, 1.1, 1.0)
    return _around(centres * (1 + 0.01 * rng.standard_normal(centres.shape)), 0.005, rng, samples)


def _skewed(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
    return _around(1 + 0.03 * rng.exponential(size=(replicas, launches)), 0.005, rng, samples)


def _drift(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
    return 1 + 0.02 * _autoregressive(rng, replicas, launches * samples, 0.97).reshape(replicas, launches, samples)


def _between_launches(correlation: float) -> Draw:
    def draw(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
        return _around(1 + 0.02 * _autoregressive(rng, replicas, launches, correlation), 0.005, rng, samples)

    return draw


def _step(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
    """The machine becomes 5 % slower or faster somewhere in the middle half and stays so; what was before is the truth."""
    place = rng.integers(max(1, launches // 4), max(1, 3 * launches // 4) + 1, (replicas, 1))
    size = np.where(rng.random((replicas, 1)) < 0.5, 0.05, -0.05)
    level = 1 + size * (np.arange(launches) >= place)
    return _hierarchical(rng, replicas, launches, samples) * level[..., None]


def _warm_up(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
    cold = 1 + 0.2 * np.exp(-np.arange(launches) / 1.5)
    return _hierarchical(rng, replicas, launches, samples) * cold[:, None]


FAMILIES = (
    Family("iid Gaussian 2 %", _gaussian, True),
    Family("hierarchical 1 % + 1 %", _hierarchical, True),
    Family("heavy tail (t3, spikes)", _heavy_tail, True),
    Family("bimodal, 30 % at 1.1", _bimodal, True),
    Family("skewed (exponential)", _skewed, True),
    Family("AR(.6) between launches", _between_launches(0.6), False, 1.0),
    Family("AR(.8) between launches", _between_launches(0.8), False, 1.0),
    Family("AR(.9) between launches", _between_launches(0.9), False, 1.0),
    Family("drift, AR(.97) of samples", _drift, False, 1.0),
    Family("step of 5 % in mid-run", _step, False, 1.0),
    Family("warm-up over launches", _warm_up, False, 1.0),
)


def record_traces(launches: int, samples: int) -> dict[str, list[list[float]]]:
    """Launch a small program over and over, here and now: wall and CPU time of its samples."""
    program = (
        "import time\n"
        f"for _ in range({samples + 1}):\n"
        "    w, c = time.perf_counter(), time.process_time()\n"
        f"    exec({_SPIN!r})\n"
        "    print(time.perf_counter() - w, time.process_time() - c)\n"
    )
    traces: dict[str, list[list[float]]] = {"real wall time": [], "real CPU time": []}
    for _ in range(launches):
        out = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True).stdout
        rows = [[float(word) for word in line.split()] for line in out.splitlines()][1:]
        traces["real wall time"].append([row[0] for row in rows])
        traces["real CPU time"].append([row[1] for row in rows])
    return traces


def trace_family(name: str, trace: list[list[float]]) -> Family:
    """Stretches of consecutive launches of a recorded trace; the truth is the median of the whole trace."""
    values = np.array(trace)
    middle = float(np.median(np.median(values, axis=1)))
    values = values / middle

    def draw(rng: np.random.Generator, replicas: int, launches: int, samples: int) -> Array:
        starts = rng.integers(0, len(values) - launches + 1, replicas)
        chosen = values[starts[:, None] + np.arange(launches)]
        repeats = -(-samples // chosen.shape[2])
        return np.tile(chosen, (1, 1, repeats))[:, :, :samples]

    return Family(name, draw, False, 1.0)


def load_traces(path: Path) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = json.loads(path.read_text())["traces"]
    return found


def save_traces(path: Path, traces: dict[str, list[list[float]]], seconds: float) -> None:
    about = {
        "recorded_s": round(seconds),
        "cores": os.cpu_count(),
        "cpu_s": resource.getrusage(resource.RUSAGE_CHILDREN)[0],
    }
    path.write_text(json.dumps({"about": about, "traces": traces}))


def recorded(path: Path | None, launches: int, samples: int) -> dict[str, list[list[float]]]:
    """Record now, keep them in `path` if one is given, and return the traces."""
    start = time.perf_counter()
    traces = record_traces(launches, samples)
    if path is not None:
        save_traces(path, traces, time.perf_counter() - start)
    return traces
