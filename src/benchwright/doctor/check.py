"""The checkup: reads the node, tries what benchwright relies on, and measures the noise between equal programs."""

from __future__ import annotations

import math
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchwright.agent.machine.health import read_health
from benchwright.agent.machine.runtimes import ask_interpreter, own_interpreter
from benchwright.agent.samplers import find_samplers
from benchwright.agent.samplers.base import SampledJob, Sampler
from benchwright.analysis.comparison.compare import DEFAULT_MARGIN
from benchwright.analysis.statistics.distributions import student_quantile
from benchwright.core.checkup import Checkup, Interpreter, Noise
from benchwright.core.entry_points import EntryPoint, load_target
from benchwright.core.errors import BenchwrightError, BrokenPlugin, CannotMeasure, Interrupted
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.registry import Registry
from benchwright.core.run import Launch, Result, Run
from benchwright.core.summary import Interval
from benchwright.doctor.judge_health import judge_gpus, judge_health, named, ok
from benchwright.executors.base import Executor
from benchwright.options.table import Options
from benchwright.runs.base_folder import BaseFolder

# The noise floor: how much launches of one program differ when compared as if they were two programs.
#
# Neighbouring launches see the same machine state, so each pair gives one ratio A ÷ B; their logarithms are the sample. The
# floor is half the t interval of their mean: a smaller difference cannot be detected.


FEWEST_PAIRS = 3
ENOUGH_PAIRS = 6  # to say which difference could be detected
# Number of pairs → the difference, in standard deviations of the logarithm of a pair's ratio, that `compare_interleaved`
# detects in four of five cases, if that deviation is estimated from 6 pairs. Printed by performance/detectable.py.
_NEEDED = {6: 2.60, 12: 1.48, 20: 1.05}
SIZES = tuple(_NEEDED)
# … and how many standard errors it must exceed the margin by, for the same four of five: Student's t of 5 degrees at 80 %,
# and a little more because the median of the pairs is known less well than their mean.
_BEYOND_MARGIN = 0.95


def noise_of(metric: str, pairs: Sequence[tuple[float, float]], confidence: float = 0.95) -> Noise | None:
    """From the seconds of neighbouring launches, in pairs; None if there are too few or one is not positive and finite."""
    values = [value for pair in pairs for value in pair]
    if len(pairs) < FEWEST_PAIRS or not all(math.isfinite(v) and v > 0 for v in values):
        return None
    ratios = [math.log(b / a) for a, b in pairs]
    middle, deviation = statistics.fmean(ratios), statistics.stdev(ratios)
    half = student_quantile(confidence, len(pairs) - 1) * deviation / math.sqrt(len(pairs))
    return Noise(
        metric=metric,
        median_s=statistics.median(values),
        launches=len(values),
        pairs=tuple(pairs),
        ratio=math.exp(middle),
        interval=Interval(math.exp(middle - half), math.exp(middle + half)),
        floor=math.expm1(half),
        spread=math.expm1(statistics.stdev(map(math.log, values))),
        detectable={size: detectable(deviation, size) for size in SIZES} if len(pairs) >= ENOUGH_PAIRS else {},
    )


def detectable(deviation: float, pairs: int) -> float:
    """The smallest slow-down, as a fraction, that `pairs` pairs detect in four of five cases, at the default margin.

    `deviation` is the standard deviation of the logarithm of a pair's ratio, estimated from 6 pairs.
    """
    beyond = math.log1p(DEFAULT_MARGIN) + _BEYOND_MARGIN * deviation / math.sqrt(pairs)
    return math.expm1(max(_NEEDED[pairs] * deviation, beyond))


_FINE, _BAD = 0.02, 0.10  # of the floor
_NAMES = {"process.duration": ("noise.wall", "wall time"), "process.cpu_time": ("noise.cpu", "CPU time")}


def judge_noise(noises: Sequence[Noise], *, busy: bool) -> list[Note]:
    """A note for each metric whose noise was measured; `busy`: other programs use the processor."""
    calm = [_NAMES[n.metric][1] for n in noises if n.floor < _BAD]
    return [_judge(noise, calm, busy) for noise in noises]


def _judge(noise: Noise, calm: Sequence[str], busy: bool) -> Note:
    kind, what = _NAMES[noise.metric]
    sizes = list(noise.detectable)
    seen = ", ".join(f"{_percent(noise.detectable[n])} with {'--repeat ' if n == sizes[0] else ''}{n}" for n in sizes)
    expected = f". `run -c A -c B` would show a difference of {seen} in 4 of 5 cases" if seen else ""
    text = f"noise floor ± {_percent(noise.floor)}; launches spread by {_percent(noise.spread)}{expected}"
    if noise.floor < _FINE:
        return Note(kind=kind, severity="ok", text=text)
    if noise.floor < _BAD:
        return Note(kind=kind, text=text, remedy="repeat launches, and interleave what you compare (`run -c A -c B`)")
    return Note(kind=kind, severity="error", text=text, remedy=_remedy(what, calm, busy))


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.2f} %" if percent < 1 else f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"


def _remedy(what: str, calm: Sequence[str], busy: bool) -> str:
    if calm:
        return f"compare {calm[0]} instead of {what}, and " + ("stop other programs" if busy else "interleave")
    if busy:
        return "stop other programs first; until then no comparison is worth the time"
    return (
        "no program running here explains it: changing clocks, or other users of the same hardware; "
        "use a machine of your own, or many interleaved launches"
    )


Measure = Callable[[Options, BaseFolder], Run]  # how any run is made: by `runner.run`
PAIRS = 6
_METRICS = ("process.duration", "process.cpu_time")
_TIMEOUT_S = 60.0
# The same work each time, about 0.15 s of one core: no input, no hashing, no memory to speak of.
_PROGRAM = "x = 1\nfor _ in range(2_000_000):\n    x = x * 1103515245 + 12345 & 0x7FFFFFFF"


def check(
    base: BaseFolder,
    *,
    executor: Executor,
    measure: Measure | None,
    registries: Iterable[Registry[Any]] = (),
) -> Checkup:
    """The state of this machine and the plug-ins of `registries`. `measure` measures the noise; None skips that.

    Leaves nothing behind.
    """
    machine = executor.machine()
    health = read_health(str(base.path))
    interpreters = find_interpreters()
    notes = [
        *judge_health(health, machine),
        *judge_gpus(health.gpus, health.gpu_trouble),
        *(_judge_interpreter(interpreter, machine) for interpreter in interpreters),
        *try_samplers(),
        *(note for registry in registries for note in judge_plugins(registry)),
    ]
    noise: Sequence[Noise] = ()
    if measure is not None:
        noise, trouble = measure_noise(measure)
        busy = any(n.kind in ("cpu.load", "cpu.pressure") and n.severity in ("warning", "error") for n in notes)
        notes += judge_noise(noise, busy=busy) + trouble
    return Checkup(
        machine=machine, health=health, notes=tuple(notes), noise=tuple(noise), interpreters=tuple(interpreters)
    )


def find_interpreters() -> list[Interpreter]:
    """Benchwright's own, and the `python` on the PATH, if that is another one."""
    own = own_interpreter()
    program = shutil.which("python") or shutil.which("python3")
    if program is None or program == own.executable:
        return [own]
    other = ask_interpreter(program, "python of the PATH")
    return [own] if other.executable == own.executable else [own, other]


def _judge_interpreter(interpreter: Interpreter, machine: Machine) -> Note:
    kind = "runtime.own" if interpreter.role.endswith("own") else "runtime.python"
    if interpreter.trouble is not None:
        remedy = "commands that start with `python` will fail; name an interpreter that works"
        return Note(kind=kind, text=f"{interpreter.executable}: {interpreter.trouble}", remedy=remedy)
    found = ", ".join(f"{runtime} {version}" for runtime, version in interpreter.runtimes.items())
    text = f"Python {interpreter.version}, {interpreter.role}: {found or 'no model runtime installed'}"
    if machine.accelerators and interpreter.runtimes.get("torch", "").endswith("+cpu"):
        text += ": torch is built without CUDA and cannot use the GPU"
        return Note(kind=kind, text=text, remedy="install a CUDA build of torch for that interpreter")
    return Note(kind=kind, severity="ok", text=text)


_NOTHING = {
    "nvidia": "no NVIDIA GPU here",
    "amd": "no AMD GPU here, or no amdsmi to read it",
    "intel": "no Intel GPU with an energy counter here",
    "rapl": "no energy counter of the processor here, or only root may read it",
}


def try_samplers() -> list[Note]:
    """Opens each sampler and reads it, with a child process of ours to look at."""
    subject_program = [sys.executable, "-I", "-S", "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(subject_program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # it runs, and has its memory
        return named({f"sampler.{entry.name}": _try_sampler(entry) for entry in find_samplers().values()})


def _try_sampler(entry: EntryPoint) -> Note:
    try:
        sampler: Sampler | None = load_target(entry.target)(SampledJob())
        if sampler is None:
            return ok(_NOTHING.get(entry.name, "nothing to read on this machine"))
        try:
            rounds = [sampler.sample(time.perf_counter_ns()) for _ in range(2)]  # the first may only set a baseline
            values = {key for samples in rounds for sample in samples for key in sample.values}
        finally:
            sampler.close()
    except Exception as error:  # any package's sampler: its failure is what we want to know
        remedy = f"runs will lack its numbers; repair or uninstall {entry.package}"
        return Note(text=f"does not work: {type(error).__name__}: {error}", remedy=remedy)
    if not values:
        remedy = "the kernel may not let this user read it; runs will lack its numbers"
        return Note(text="reads nothing", remedy=remedy)
    return ok(f"reads {', '.join(sorted(values))}")


def judge_plugins(registry: Registry[Any]) -> list[Note]:
    """The variants of a seam that installed packages add; each is loaded once to see that it can be."""
    return named({f"plugin.{entry.name}": _try_plugin(registry, entry) for entry in registry.plugins().values()})


def _try_plugin(registry: Registry[Any], entry: EntryPoint) -> Note:
    of = f"{registry.noun} of {entry.package} {entry.version}"
    try:
        registry.load_plugin(entry)
    except BrokenPlugin as error:
        return Note(text=f"{of}: {error}", remedy=f"repair or uninstall {entry.package}")
    return ok(of)


def measure_noise(measure: Measure) -> tuple[list[Noise], list[Note]]:
    """One program measured as if it were two, interleaved; and a note if that failed."""
    try:
        with tempfile.TemporaryDirectory(prefix="benchwright-doctor-", ignore_cleanup_errors=True) as folder:
            run = _measure_same_twice(measure, Path(folder))
        noise = noise_between(run.results)
        if noise:
            return noise, []
        problem = next((r.detail for r in run.results if r.detail), "the launches gave no times")
    except (Interrupted, KeyboardInterrupt) as error:
        raise Interrupted("interrupted; nothing was kept") from error
    except (BenchwrightError, OSError) as error:
        problem = str(error)
    remedy = "benchwright cannot measure here; see the log of: benchwright run -- true"
    return [], [Note(kind="noise.launches", severity="error", text=f"not measured: {problem}", remedy=remedy)]


def noise_between(results: Sequence[Result]) -> list[Noise]:
    """Of two results of one program whose launches alternated."""
    pairs = pairs_of(results)
    found = [noise_of(metric, [(a[metric], b[metric]) for a, b in pairs]) for metric in _METRICS]
    return [one for one in found if one is not None]


def _measure_same_twice(measure: Measure, folder: Path) -> Run:
    return measure(same_twice(str(folder)), BaseFolder(folder))


def same_twice(folder: str, pairs: int = PAIRS) -> Options:
    """One small program measured as if it were two, in pairs of launches."""
    line = shlex.join([sys.executable, "-I", "-S", "-c", _PROGRAM])
    return Options(
        commands=(line, line),
        cwd=folder,
        timeout=_TIMEOUT_S,
        repeat=pairs,
        warmup_runs=1,
        interleave=True,
        discard_logs=True,
    )


def pairs_of(results: Sequence[Result]) -> list[tuple[dict[str, float], dict[str, float]]]:
    """The times of neighbouring launches: one of the first benchmark, one of the second."""
    first, second = results
    partners = {launch.block: launch for launch in second.counted}
    return [(_times(launch), _times(partners[launch.block])) for launch in first.counted if launch.block in partners]


def _times(launch: Launch) -> dict[str, float]:
    measurements = {metric: launch.measurement(metric) for metric in _METRICS}
    missing = [metric for metric, found in measurements.items() if found is None]
    if missing:
        raise CannotMeasure(f"{launch.job} reports no {', '.join(missing)}")
    return {metric: found.samples[0] for metric, found in measurements.items() if found is not None}
