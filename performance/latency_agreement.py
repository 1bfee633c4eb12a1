"""Our latency beside a careful loop written by hand, on every runtime that is here.

    python performance/latency_agreement.py [--quick] [--runtime NAME]... [--device cuda] [--threads N]

One process for each runtime and model. Blocks of both kinds take turns, in an order that changes: ours is `latency_loop` and
what the stream recorded, theirs reads the clock around the runtime's own call, on the same loaded model. The ratio is that of
the medians of two neighbouring blocks; its interval is one of order statistics for the median over all pairs.
`apart` is the same loop by hand on a model that was loaded by hand as well, for what our way of loading costs; no bar.
Bars: the interval lies within 0.98 to 1.02; the loop adds at most 1 us to a call that does nothing.
OpenVINO's benchmark_app runs the same file, in turns of a quarter of a second with ours. It reads OpenVINO's own clock, which is
what a result has as `time.in_runtime`; what a call from Python adds to that (our `latency`) is printed beside it. Bar: the median
ratio is no farther from 1 than benchmark_app is from itself, measured in the same way.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _by_hand import loaded_by_hand, model_named, native_call
from _turns import in_turns

from benchmodels.runtimes.base import ARTIFACT, ArtifactFolder, CollectedSteps, RuntimeOptions
from benchmodels.runtimes.registry import known_runtimes, runtime_named

PATHS = os.pathsep.join(filter(None, (sys.path[0], os.environ.get("PYTHONPATH"))))
BLOCK_NS = 6_000_000
APP_S = 6  # of the clock, half of which is its turn
MODELS = ("mlp", "cnn")
PRECISE = 0.005  # half-width at which no more pairs are needed


class Interval(NamedTuple):
    low: float
    middle: float
    high: float


def median_interval(values: list[float]) -> Interval:
    """Of the median, 95 %: whatever the distribution, as long as the values are independent."""
    ordered, n = sorted(values), len(values)
    tail, below = 0.0, 0
    for k in range(n // 2):  # as many as may lie outside
        tail += math.comb(n, k) / 2**n
        if 2 * tail > 0.05:
            break
        below = k
    return Interval(ordered[below], median(ordered), ordered[n - 1 - below])


def by_hand(call: Callable[[], Any], calls: int) -> float:
    """The median of one block, in ns."""
    times = []
    for _ in range(calls):
        began = perf_counter_ns()
        call()
        times.append(perf_counter_ns() - began)
    return median(times)


class NoCollector:
    """In the place of `gc` where everything was collected and frozen once."""

    @staticmethod
    def collect() -> None:
        pass

    freeze = unfreeze = collect


class Ours:
    """Blocks of our own loop, read from the stream that it writes."""

    def __init__(self, run: Callable[[Any], Any], prepared: Any, calls: int) -> None:
        from benchmodels.measure import measured_loops

        measured_loops.CALLS_WITHOUT_RULE = self._calls = calls  # no rule stops it
        measured_loops.gc = NoCollector  # searching for garbage before each block would take longer than the block
        gc.collect()
        gc.freeze()
        self._loop = lambda: measured_loops.latency_loop(run, prepared, None, False)
        self._stream = open(json.loads(os.environ["BENCHPROBE_CONFIG"])["stream"], "rb")  # noqa: SIM115 open to the end

    def block(self) -> float:
        from benchmodels.reports import put

        self._loop()
        put({"event": "message", "source": "block", "text": "end", "severity": "info"})
        steps: list[int] = []
        for line in self._lines():
            event = json.loads(line)
            if event["event"] == "steps":
                steps += event.get("device_ns") or event["step_ns"]
            elif event.get("source") == "block":
                break
        if len(steps) != self._calls:
            raise RuntimeError(f"{len(steps)} steps of {self._calls} were recorded")
        return median(steps)

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        while True:
            rest += self._stream.readline()
            if rest.endswith(b"\n"):
                yield rest
                rest = b""


def one(name: str, model: str, options: RuntimeOptions, pairs: int, folder: str) -> dict[str, Any]:
    """Measures one runtime with one model, in this process."""
    runtime, captured = runtime_named(name), model_named(model)
    if runtime.kind == ARTIFACT:
        runtime.build(captured, folder, options, CollectedSteps())
        session = runtime.load(ArtifactFolder(folder), options)
        inputs: Any = {"x": captured.args[0].numpy()}
    else:
        session, inputs = runtime.load(captured, options), captured
    prepared = session.prepare(inputs)
    native = native_call(name, session, prepared)
    calls = max(12, min(1000, round(BLOCK_NS / min(by_hand(native, 20) for _ in range(3)))))
    ours = Ours(session.run, prepared, calls)
    apart = loaded_by_hand(name, folder, captured, options.threads) if options.device == "cpu" else None
    kinds = {"ours": ours.block, "native": lambda: by_hand(native, calls)}
    if apart is not None:
        kinds["apart"] = lambda: by_hand(apart, calls)
    medians: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(-2, pairs):
        for kind in list(kinds) if number % 2 else reversed(kinds):
            found = kinds[kind]()
            if number >= 0:  # the first of each only warm up
                medians[kind].append(found)
        if number > 0 and number % 50 == 49 and _precise(medians):
            break
    return {**medians, "details": session.details}


def _precise(medians: dict[str, list[float]]) -> bool:
    found = ratio(medians, "native")
    return found.high - found.low < 2 * PRECISE


def ratio(medians: dict[str, list[float]], other: str) -> Interval:
    return median_interval([a / b for a, b in zip(medians["ours"], medians[other], strict=True)])


def overhead_us(blocks: int) -> float:
    """What our loop adds to a call of nothing, over what a loop by hand does."""

    def nothing(prepared: Any) -> None:
        pass

    ours = Ours(nothing, None, 1000)
    pairs = [(ours.block(), by_hand(lambda: nothing(None), 1000)) for _ in range(blocks)]
    return median(mine - theirs for mine, theirs in pairs[1:]) / 1e3


def in_child(*argv: str) -> Any:
    """This script in a process of its own that is measured; what it printed last."""
    with tempfile.TemporaryDirectory() as folder:
        stream = Path(folder) / "stream"
        stream.touch()
        config = json.dumps({"stream": str(stream), "warmup": {"steps": 0}})
        env = {**os.environ, "BENCHPROBE_CONFIG": config, "PYTHONPATH": PATHS, "OMP_WAIT_POLICY": "PASSIVE"}
        command = [sys.executable, __file__, "--child", folder, *argv]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        if done.returncode:
            return {"failed": done.stderr.strip().splitlines()[-1:]}
        # The libraries of a runtime may write to stdout as the process ends.
        return json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{")))


class App:
    """OpenVINO's own tool on the same file."""

    FLAGS = "-d CPU -api sync -hint none -infer_precision f32 -nstreams 1".split()

    def __init__(self, folder: str, threads: int) -> None:
        program = shutil.which("benchmark_app", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
        if program is None:
            raise SystemExit("benchmark_app is not here, though openvino is")
        how = ["-nthreads", str(threads), "-t", str(APP_S)]
        self._command = [program, "-m", f"{folder}/model.xml", *self.FLAGS, *how]

    def start(self) -> subprocess.Popen[str]:
        env = {**os.environ, "CI": "true"}  # no telemetry
        return subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)

    @staticmethod
    def median_us(printed: str) -> float:
        found = re.search(r"Median:\s+([\d.]+) (us|ms)", printed)
        if found is None:
            raise SystemExit(f"benchmark_app says nothing that is understood: {printed[-300:]}")
        return float(found.group(1)) * (1e3 if found.group(2) == "ms" else 1.0)


class OurRun:
    """Our session of it, for as long."""

    def __init__(self, folder: str, threads: int) -> None:
        self.more_us: list[float] = []
        self._stream = Path(folder) / "stream"
        config = json.dumps({"stream": str(self._stream), "warmup": {"steps": 0}})
        self._env = {**os.environ, "BENCHPROBE_CONFIG": config, "PYTHONPATH": PATHS, "OMP_WAIT_POLICY": "PASSIVE"}
        self._command = [sys.executable, __file__, "--child", folder, "built", "--threads", str(threads)]

    def start(self) -> subprocess.Popen[str]:
        self._stream.write_bytes(b"")  # what an earlier round wrote is not ours
        return subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, env=self._env)

    def median_us(self, printed: str) -> float:
        found = json.loads(printed.splitlines()[-1])
        self.more_us.append(found["more_us"])
        return float(found["own_us"])


def built(options: RuntimeOptions, folder: str) -> dict[str, float]:
    """Our calls of a model that lies there built, for as long as benchmark_app runs; without torch, so that both begin together."""
    import numpy

    from benchmodels.measure.measured_loops import times_in_runtime

    session = runtime_named("openvino").load(ArtifactFolder(folder), options)
    prepared = session.prepare({"x": numpy.load(f"{folder}/x.npy")})
    own_s, more_s, end = [], [], time.monotonic() + APP_S
    while time.monotonic() < end:
        inside, around = times_in_runtime(session, prepared)
        own_s += inside
        more_s += around
    return {"own_us": median(own_s) * 1e6, "more_us": median(more_s) * 1e6}


def medians_in_turns(sides: tuple[App | OurRun, App | OurRun]) -> tuple[float, float]:
    """A stop is part of one call in thousands, which a median does not see."""
    processes = (sides[0].start(), sides[1].start())
    in_turns(processes)
    first, second = (side.median_us(process.communicate()[0]) for side, process in zip(sides, processes, strict=True))
    return first, second


def show(name: str, model: str, found: dict[str, Any]) -> bool:
    if "failed" in found:
        print(f"{name:14} {model:4} failed: {' '.join(found['failed'])}")
        return False
    mine, theirs, near = median(found["ours"]) / 1e3, median(found["native"]) / 1e3, ratio(found, "native")
    good = near.low >= 0.98 and near.high <= 1.02
    text = f"{name:14} {model:4} ours {mine:9.2f} us  by hand {theirs:9.2f} us  ratio {near.middle:.4f} [{near.low:.4f}, {near.high:.4f}]"
    if "apart" in found:
        far = ratio(found, "apart")
        text += f"  apart {median(found['apart']) / 1e3:9.2f} us, {far.middle:.3f} [{far.low:.3f}, {far.high:.3f}]"
    print(f"{text}  {len(found['ours'])} pairs  {'within' if good else 'NOT WITHIN'} 2 %", flush=True)
    return good


def compare_with_app(options: RuntimeOptions, rounds: int) -> bool:
    """Ours beside benchmark_app, and that beside itself: the noise floor. Whether ours lies within it."""
    import numpy

    good = True
    for model in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            captured = model_named(model)
            runtime_named("openvino").build(captured, folder, options, CollectedSteps())
            numpy.save(f"{folder}/x.npy", captured.args[0].numpy())
            app, ours = App(folder, options.threads), OurRun(folder, options.threads)
            found: dict[str, list[float]] = {"floor": [], "ours": []}
            own_us: list[float] = []
            for number in range(rounds):
                for kind, side in (("floor", app), ("ours", ours)):
                    one, other = medians_in_turns((side, app) if number % 2 else (app, side))
                    mine, theirs = (one, other) if number % 2 else (other, one)
                    found[kind].append(mine / theirs)
                    if side is ours:
                        own_us.append(mine)
        floor = max(max(value, 1 / value) for value in found["floor"]) - 1
        middle = median(found["ours"])
        agrees = 1 / (1 + floor) <= middle <= 1 + floor
        good = good and agrees
        print(
            f"openvino {model}, ours / benchmark_app: {middle:.3f} (rounds {min(found['ours']):.3f} to "
            f"{max(found['ours']):.3f}); benchmark_app / itself {min(found['floor']):.3f} to {max(found['floor']):.3f}: "
            f"{'within' if agrees else 'NOT WITHIN'} the noise floor of {floor:.1%}; "
            f"in OpenVINO {median(own_us):.1f} us, the call from Python adds {median(ours.more_us):.1f} us",
            flush=True,
        )
    return good


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--runtime", action="append", help="only this one; may be given again")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=1000, help="at most")
    parser.add_argument("--quick", action="store_true", help="at most 100 pairs, no torch-compile, no aot-inductor")
    return parser.parse_args()


def main() -> int:
    given = parse()
    options = RuntimeOptions(given.device, "fp32", given.threads)
    if given.child:
        name, *rest = given.what
        if name == "built":
            found: dict[str, Any] = built(options, given.child)
        else:
            found = (
                {"us": overhead_us(50)} if name == "overhead" else one(name, rest[0], options, given.pairs, given.child)
            )
        print(json.dumps(found))
        return 0
    pairs = 100 if given.quick else given.pairs
    slow = ("torch-compile", "aot-inductor") if given.quick else ()
    names = given.runtime or [name for name in known_runtimes() if name not in slow]
    added = in_child("overhead")["us"]
    print(f"the loop adds {added:.3f} us to a call (bar 1)")
    good = added <= 1.0
    for name in names:
        reason = runtime_named(name).unavailable(options)
        if reason is not None:
            print(f"{name:14} not here: {reason}")
            continue
        for model in MODELS:
            argv = ("--device", given.device, "--threads", str(given.threads), "--pairs", str(pairs))
            good = show(name, model, in_child(name, model, *argv)) and good
    if "openvino" in names and given.device == "cpu" and runtime_named("openvino").unavailable(options) is None:
        good = compare_with_app(options, 2 if given.quick else 8) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
