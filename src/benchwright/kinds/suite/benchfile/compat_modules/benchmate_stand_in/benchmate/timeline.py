"""Token rates over time, from the requests that a server answered."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from . import unknown_names


def timeline(outputs: list[Any], number: int = 30) -> list[dict[str, Any]]:
    """The time from the first request's start to the last one's end in `number` parts. A request's tokens (prompt and answer)
    are spread evenly over its time. `outputs`: dicts or dataclasses with start_time, latency, output_tokens, prompt_len."""
    requests = [output if isinstance(output, dict) else asdict(output) for output in outputs]
    if not requests:
        return []
    first = min(request["start_time"] for request in requests)
    spans = [(r["start_time"] - first, r["start_time"] - first + r["latency"]) for r in requests]
    tokens = [request["output_tokens"] + request["prompt_len"] for request in requests]
    width = max(end for _, end in spans) / number
    return [_part(part * width, (part + 1) * width, spans, tokens) for part in range(number)]


def _part(begin: float, end: float, spans: list[tuple[float, float]], tokens: list[int]) -> dict[str, Any]:
    width = max(end - begin, 1e-9)
    shared = [max(0.0, min(stop, end) - max(start, begin)) for start, stop in spans]
    work = sum(n * share / max(stop - start, 1e-3) for n, share, (start, stop) in zip(tokens, shared, spans))
    return {
        "time": end,
        "rate": work / width,
        "active_jobs": sum(start <= end and stop >= begin for start, stop in spans),
        "start_job": sum(begin <= start <= end for start, _ in spans),
        "finished_job": sum(begin <= stop <= end for _, stop in spans),
        "ran_through": sum(start < begin and stop > end for start, stop in spans),
        "active_jobs_pct": sum(shared) / width,
    }


__getattr__ = unknown_names(__name__)
