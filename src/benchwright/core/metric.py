"""Metrics: what to read from a program's output, and how to condense it to one number."""

from __future__ import annotations

import itertools
import re
from enum import Enum
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta

from benchwright.core.errors import InvalidInput, did_you_mean


class Direction(str, Enum):
    """Which way is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


REGEX, JSON_LINES, KEY_VALUE = "regex", "json", "key_value"  # the built-in extractors
AGGREGATES = ("average", "median", "last", "first", "min", "max", "count", "total", "average_aggregate")
_PERCENTILE = r"p\d{1,2}(\.\d+)?|p100"


# Prefixes of the metrics that benchwright measures; a program's own metrics may not use them.
OURS = ("process.", "memory.", "cpu.", "gpu.", "energy.")
DURATION, CPU_TIME, GPU_TIME = "process.duration", "process.cpu_time", "process.gpu_time"  # of a launch
STEP_CPU, STEP_GPU = "cpu.step_time", "gpu.step_time"  # CPU and GPU time of a measured step
OF_CPU, OF_GPU = (CPU_TIME, STEP_CPU), (GPU_TIME, STEP_GPU)


class MetricSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One metric to read from a log.

    `kind` names the extractor; plug-ins may add others. `pattern` is for that extractor: a Python regular expression
    (REGEX: group 1 if there is one, else the whole match; each match holds one number), or the key to read (JSON_LINES:
    `a.b.c` reaches into objects; KEY_VALUE).
    `aggregate` condenses the values of one launch to one number. `required`: no value is a failure.
    """

    name: str
    pattern: str
    kind: str = REGEX
    unit: str | None = None
    direction: Direction | None = None
    aggregate: Annotated[str, Meta(pattern=f"^({'|'.join(AGGREGATES)}|{_PERCENTILE})$")] = "median"
    required: bool = True


def check_aggregate(method: str, *, where: str | None = None, line: int | None = None) -> str:
    """`method` itself, or InvalidInput naming the closest known one."""
    if method in AGGREGATES or re.fullmatch(_PERCENTILE, method):
        return method
    raise InvalidInput(
        f"'{method}' is not a compute method",
        where=where,
        line=line,
        remedy=did_you_mean(method, AGGREGATES) or f"use one of {', '.join(AGGREGATES)} or a percentile such as p90",
    )


_HIGHER_WORDS = frozenset(
    "speed throughput acc accuracy score f1 bleu rouge auc map miou iou precision recall match fps ips qps rps tps "
    "flops gflops tflops bandwidth efficiency utilization utilisation mfu speedup".split()
)
_LOWER_WORDS = frozenset(
    "loss error errors err time times latency delay duration elapsed seconds ms us ns perplexity ppl memory mem rss pss "
    "mse mae rmse wer cer cost energy power wait overhead uptime failures".split()
)
_PER_TIME = frozenset("s sec secs second seconds min minute h hour".split())
_LOWER_UNITS = frozenset("s sec seconds ms us µs ns min h b kb mb gb kib mib gib tib bytes j kj wh kwh w".split())


def guess_direction(name: str, unit: str | None = None) -> Direction:
    """Which way is better, judged by the unit (`…/s` is a rate), then by the words of the name; NEITHER if neither tells.

    The last telling word decides (`validation_loss`). Words after `per` or `to` only qualify those before
    (`time_per_epoch`, `time_to_accuracy`), unless they are a time (`images_per_second`).
    """
    if unit is not None:
        plain = unit.strip().lower()
        counted, slash, over = plain.partition("/")
        if slash and over in _PER_TIME:
            return Direction.HIGHER
        if plain in _LOWER_UNITS or (slash and counted in _LOWER_UNITS):
            return Direction.LOWER
    words = _words(name)
    if _is_per_time(words):
        return Direction.HIGHER
    for word in reversed(_unqualified(words)):
        if word in _LOWER_WORDS:
            return Direction.LOWER
        if word in _HIGHER_WORDS:
            return Direction.HIGHER
    return Direction.NEITHER


_RATE_WORDS = frozenset("speed throughput rate fps ips qps rps tps flops gflops tflops bandwidth".split())
_TIME_WORDS = frozenset("time times latency delay duration elapsed seconds ms us ns".split())
_MAY_BE_ZERO = frozenset("wait waiting idle overhead delta difference diff slack lag gain change growth".split())
_TIME_UNITS = frozenset("s sec secs second seconds ms us µs ns min minute h hour".split())


def describes_work(name: str) -> bool:
    """Whether it is a fact of the workload (`flops_per_item.bf16`) and nothing that gets better or worse."""
    return "_per_item" in name or "_per_call" in name


@lru_cache(maxsize=1024)
def must_be_positive(name: str, unit: str | None = None) -> str | None:
    """`rate` or `time` if the metric is one, which must be above 0; None if it may be any number."""
    words = _words(name)
    if _MAY_BE_ZERO.intersection(words):
        return None
    if unit is not None:
        counted, slash, over = unit.strip().lower().partition("/")
        if slash:
            return "rate" if over in _PER_TIME else "time" if counted in _TIME_UNITS else None
        if counted in _TIME_UNITS:
            return "time"
    if _is_per_time(words):
        return "rate"
    last = _unqualified(words)[-1] if words else ""
    return "rate" if last in _RATE_WORDS else "time" if last in _TIME_WORDS else None


_QUALITY_WORDS = frozenset(
    "loss error errors err acc accuracy f1 bleu rouge auc map miou iou precision recall match perplexity ppl mse mae rmse "
    "wer cer".split()
)
_SIZE_UNITS = frozenset("b kb mb gb kib mib gib tib bytes".split())


@lru_cache(maxsize=1024)
def is_of_the_machine(name: str, unit: str | None) -> bool:
    """Whether other load on the machine affects the metric. It affects neither sizes nor how well a model learns.

    PSS is the one size it does affect: it falls when other programs load the same libraries.
    """
    plain = (unit or "").strip().lower()
    counted, slash, over = plain.partition("/")
    if plain in _SIZE_UNITS or describes_work(name):
        return "pss" in _words(name)
    if counted in _TIME_UNITS or (slash and over in _PER_TIME):
        return True
    return _QUALITY_WORDS.isdisjoint(_words(name))


def is_cpu_time(name: str, unit: str | None) -> bool:
    """Whether it is CPU time, which waiting for a core costs none of: ours, or a program's own `cpu` or `cpu_time` in seconds.

    A `latency_cpu` is a time on the CPU and no CPU time.
    """
    words = _words(name)
    named = words == ["cpu"] or any(pair in (("cpu", "time"), ("cpu", "seconds")) for pair in itertools.pairwise(words))
    return name in OF_CPU or (named and (unit or "").strip().lower() in _TIME_UNITS)


ERROR = "error."  # of outputs against a reference or golden ones
_ROUNDING = 1e-6  # relative to the outputs: less is the rounding of float32, whatever it was before
_LEAST_BYTES = 1 << 20
_LEAST_ERROR_CHANGE = 1.0  # +100 %: rounding errors depend on the order of additions


def is_rounding(name: str, *errors: float) -> bool:
    """Whether errors are so small that a difference between them means nothing."""
    return name == f"{ERROR}relative_l2" and all(0 <= error <= _ROUNDING for error in errors)


def margin_for(name: str, margin: float, level: float) -> float:
    """The smallest change of a metric that matters, as a fraction of `level`, where it was before.

    Errors, which are within their tolerance, must double; less than a mebibyte of memory is the allocator's doing.
    """
    if name.startswith(ERROR):
        return max(margin, _LEAST_ERROR_CHANGE)
    if name.startswith(("memory.", "gpu.memory")) and level > 0:
        return max(margin, _LEAST_BYTES / level)
    return margin


def _is_per_time(words: list[str]) -> bool:
    return any(link == "per" and word in _PER_TIME for link, word in itertools.pairwise(words))


def _unqualified(words: list[str]) -> list[str]:
    """Without what follows `per` or `to`."""
    for link in ("per", "to"):
        if link in words[1:]:
            words = words[: words.index(link, 1)]
    return words


def _words(name: str) -> list[str]:
    """The words of `Train-top_k_accuracy_5` or `trainLoss`, in lower case."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.findall(r"[a-z]+[0-9]*|[0-9]+", spaced.lower())
