"""A Comparison of control and treatment, metric by metric."""

from __future__ import annotations

from enum import Enum

import msgspec

from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.summary import Interval

LEFT_OUT = "left_out"  # the kind of a doubt about an effect: some of its pairs do not count


class Verdict(str, Enum):
    """The conclusion about the treatment."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    SAME = "same"  # known to be within the margin
    INCONCLUSIVE = "inconclusive"


class Effect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One metric of one benchmark. `ratio` is treatment ÷ control."""

    benchmark: str
    metric: str
    unit: str | None
    direction: Direction
    labels: dict[str, str]
    control: float
    treatment: float
    ratio: float
    interval: Interval | None  # of the ratio; None where there are too few launches
    p_value: float | None
    q_value: float | None  # after Benjamini–Hochberg over the whole table
    verdict: Verdict
    launches: tuple[int, int]  # control, treatment
    paired: bool  # interleaved launches, compared block by block
    basis: str | None = None  # which steps were compared, where launches ran for different numbers of steps
    doubts: tuple[Note, ...] = ()  # why something else may explain this effect
    advice: str | None = None  # why there is no verdict, and what would help
    pairs: tuple[float, ...] = ()  # of interleaved launches: treatment ÷ control of each pair, in their order
    beside: bool = False  # compared besides what the benchmark is about: CPU time, memory, error


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Something besides the treatment that differs between the two runs."""

    what: str  # machine, settings, packages, command…
    control: str
    treatment: str
    severe: bool  # the runs are not comparable unless the user insists


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All effects between two runs."""

    control: str  # run id
    treatment: str
    margin: float  # differences up to this fraction count as the same
    effects: tuple[Effect, ...]
    differences: tuple[Difference, ...] = ()
    missing: tuple[str, ...] = ()  # what only one run has, what failed, and what cannot be compared
    lost: tuple[str, ...] = ()  # of `missing`: where the treatment failed or lacks what the control has
    doubts: tuple[Note, ...] = ()  # notes of both runs and of the benchmarks compared
    confidence: float = 0.95
    run_to_run: float | None = None  # what separate runs may differ by without a change, as a fraction
    remarks: tuple[Note, ...] = ()  # what holds for all effects
    revisions: tuple[str, str] | None = None  # of the code of control and treatment, such as `main 1a2b3c4d5e+`
