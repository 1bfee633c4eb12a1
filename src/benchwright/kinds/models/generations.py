"""Times of a whole generation: to its first token, for each further one, and tokens per second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.record.loops.steps import samples_of
from benchwright.record.stream_file import Event

FIRST_TOKEN, PER_TOKEN, TOKENS = "time.first_token", "time.per_token", "throughput.tokens"
BETWEEN_TOKENS = "time.between_tokens"  # single ones, as a distribution
TOKENS_UNIT = "tokens/s"
_Call = tuple[float | None, float, int | None, int | None]  # first token, whole, tokens, those of the longest sequence


def of_generations(event: Event, found: Sequence[Measurement]) -> list[Measurement]:
    """From the calls of the loop, whose steps say which of them were warm-up. A figure that some call lacks is left out."""
    steps = next((m for m in found if m.metric == "step_time"), None)
    try:
        columns = [event[name] for name in ("first_s", "whole_s", "tokens", "longest")]
        calls: list[_Call] = list(zip(*columns, strict=True))
    except (KeyError, TypeError, ValueError):
        return []
    if steps is None:
        return []
    before = len(steps.warmup_samples)
    warm, measured = calls[:before], calls[before : before + len(steps.samples)]
    figures = (
        (FIRST_TOKEN, "s", Direction.LOWER, _first),
        (PER_TOKEN, "s", Direction.LOWER, _further),
        (TOKENS, TOKENS_UNIT, Direction.HIGHER, _rate),
    )
    made = []
    for metric, unit, direction, of in figures:
        samples, earlier = _values(map(of, measured)), _values(map(of, warm))
        if samples:
            made.append(
                Measurement(
                    metric=metric,
                    unit=unit,
                    direction=direction,
                    samples=samples_of(samples),
                    warmup_samples=samples_of(earlier),
                    source="model",
                    labels={},
                )
            )
    between = event.get("between_s")
    if (
        isinstance(between, list)
        and len(between) == len(calls)
        and (single := _joined(between[before : before + len(steps.samples)]))
    ):
        made.append(
            Measurement(
                metric=BETWEEN_TOKENS,
                unit="s",
                direction=Direction.LOWER,
                samples=samples_of(single),
                warmup_samples=samples_of(_joined(between[:before])),
                source="model",
                labels={},
            )
        )
    return made


def _joined(of_calls: Sequence[object]) -> list[float]:
    """All times of calls whose times were kept."""
    times = [time for of_call in of_calls if isinstance(of_call, list) for time in of_call]
    return times if all(isinstance(time, float) for time in times) else []


def _values(found: Iterable[float | None]) -> list[float]:
    """All of them, or none."""
    values = list(found)
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def _first(call: _Call) -> float | None:
    return call[0]


def _further(call: _Call) -> float | None:
    """After the first token; its longest sequence sets the pace."""
    first_s, whole_s, _, longest = call
    if first_s is None or longest is None or longest < 2:
        return None
    return (whole_s - first_s) / (longest - 1)


def _rate(call: _Call) -> float | None:
    _, whole_s, tokens, _ = call
    return tokens / whole_s if tokens and whole_s > 0 else None
