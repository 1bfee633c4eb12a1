"""The comparison's share of performance/coverage.py: false positives and power, of our verdicts and of other tools' rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from _noise_families import Family
from _peer_statistics import hyperfine_significant, pyperf_significant

from benchwright.analysis.comparison.compare import compare, compare_interleaved
from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.core.machine import Machine
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Status

Array = Any
EFFECTS = (0.0, 0.01, 0.02, 0.05, 0.10)
MARGIN = 0.02
_MACHINE = Machine(
    hostname="h", system="s", kernel="k", architecture="a", cpu="c", cores=2, cores_total=2, memory_bytes=1, python="3"
)


def result_of(name: str, launches: Array, metrics: int = 1) -> Result:
    """A result whose launches have these samples (launches x samples, or launches x metrics x samples)."""
    benchmark = Benchmark(name=name, workload=Command(argv=("x",), cwd="/"), source="simulation")
    cube = launches[:, None, :] if metrics == 1 else launches
    return Result(
        benchmark=benchmark,
        status=Status.OK,
        launches=tuple(
            Launch(
                job=f"{name}{block}",
                status=Status.OK,
                block=block,
                launch=block,
                measurements=tuple(
                    Measurement(
                        metric=f"m{i}",
                        unit="s",
                        direction=Direction.LOWER,
                        source="loop",
                        samples=tuple(samples.tolist()),
                    )
                    for i, samples in enumerate(launch)
                ),
            )
            for block, launch in enumerate(cube)
        ),
    )


def run_of(identity: str, *results: Result) -> Run:
    return Run(id=identity, name=identity, started="", folder="", status=Status.OK, machine=_MACHINE, results=results)


def separate(control: Array, treatment: Array, metrics: int = 1) -> Comparison:
    before, after = (run_of(n, result_of("b", x, metrics)) for n, x in (("A", control), ("B", treatment)))
    return compare(before, after, margin=MARGIN)


def as_pairs(control: Array, treatment: Array, metrics: int = 1) -> Comparison:
    return compare_interleaved(
        run_of("R", result_of("a", control, metrics), result_of("b", treatment, metrics)), "a", "b", margin=0
    )


def called(effect: Effect, margin: float = 0.0) -> bool:
    """Whether it is called regressed or improved, and would be at that margin too."""
    decided = effect.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)
    return decided and abs(math.log(effect.ratio)) > math.log1p(margin)


def print_comparison_table(families: Sequence[Family], replicas: int, seed: int, samples: int) -> None:
    print(
        f"\n## Comparisons: % called different at 0 / 1, 2, 5, 10 %; {replicas} replicas, {samples} samples a launch\n"
    )
    print(
        "separate: all launches of the control, then all of the treatment. interleaved: A B B A …\n"
        "Ours have a margin of 2 %, so that about half of the effects of exactly 2 % are called, and separate runs an allowance\n"
        "of 5 %; 'margin 0' calls everything that is no chance.\n"
    )
    print(
        "| family | launches | pyperf t, separate | hyperfine Welch, separate | **ours, separate** "
        "| pyperf t, interleaved | hyperfine Welch, interleaved | **ours, pairs** | ours, pairs, margin 0 |"
    )
    print("|" + "---|" * 9)
    for number, family in enumerate(families):
        for count in (8, 20):
            columns = np.zeros((7, len(EFFECTS)))
            rng = np.random.default_rng([seed, 20, number, count])
            for series in family.draw(rng, replicas, 2 * count, samples):
                columns += _one_series(series, count)
            cells = [_percents(column / replicas * 100) for column in columns]
            cells[2], cells[5] = f"**{cells[2]}**", f"**{cells[5]}**"
            print(f"| {family.name} | {count} | " + " | ".join(cells) + " |", flush=True)


def _one_series(series: Array, count: int) -> Array:
    abba = np.arange(2 * count).reshape(count, 2)
    abba[1::2] = abba[1::2, ::-1]
    found = np.zeros((7, len(EFFECTS)))
    for column, effect in enumerate(EFFECTS):
        for row, (control, treatment) in (
            (0, (series[:count], series[count:])),
            (3, (series[abba[:, 0]], series[abba[:, 1]])),
        ):
            slower = treatment * (1 + effect)
            found[row, column] = pyperf_significant(control, slower)
            found[row + 1, column] = hyperfine_significant(control, slower)
            (ours,) = (separate if row == 0 else as_pairs)(control, slower).effects
            found[row + 2, column] = called(ours) if row == 0 else called(ours, MARGIN)
            if row:
                found[row + 3, column] = called(ours)
    return found


def _percents(values: Array) -> str:
    return f"{values[0]:.0f} / " + ", ".join(f"{v:.0f}" for v in values[1:])


def print_suite_table(replicas: int, seed: int) -> None:
    """Tables of 20 metrics of which none, or four, really changed by 10 %: what Benjamini and Hochberg leave."""
    print(f"\n## A table of 20 metrics, hierarchical noise, 12 launches; {replicas} replicas\n")
    print(
        "| way | really changed | tables with a false verdict, % | false among the verdicts, % | found of the real ones, % |"
    )
    print("|---|---|---|---|---|")
    for way, comparing in (("separate", separate), ("pairs", as_pairs)):
        for real in (0, 4):
            rng = np.random.default_rng([seed, 30, real])
            tables, false, found = 0, 0.0, 0
            for _ in range(replicas):
                cubes = [
                    1 + 0.01 * rng.standard_normal((12, 20, 1)) + 0.01 * rng.standard_normal((12, 20, 5))
                    for _ in range(2)
                ]
                cubes[1][:, :real] *= 1.1
                hits = [called(e) for e in comparing(cubes[0], cubes[1], 20).effects]
                wrong = sum(hits[real:])
                tables += wrong > 0
                false += wrong / max(1, sum(hits))
                found += sum(hits[:real])
            share = f"{found / (replicas * real) * 100:.0f}" if real else "-"
            print(
                f"| {way} | {real} | {tables / replicas * 100:.1f} | {false / replicas * 100:.1f} | {share} |",
                flush=True,
            )
