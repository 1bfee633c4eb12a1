"""What the noise floor means for what can be measured on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.node.checkup import Finding, Noise, State

_FINE, _BAD = 0.02, 0.10  # of the floor
_NAMES = {"process.duration": ("noise.wall", "wall time"), "process.cpu_time": ("noise.cpu", "CPU time")}


def judge_noise(noises: Sequence[Noise], *, busy: bool) -> list[Finding]:
    """A finding for each metric whose noise was measured; `busy`: other programs are seen to use the processor."""
    calm = [_NAMES[n.metric][1] for n in noises if n.floor < _BAD]
    return [_judge(noise, calm, busy) for noise in noises]


def _judge(noise: Noise, calm: Sequence[str], busy: bool) -> Finding:
    name, what = _NAMES[noise.metric]
    sizes = list(noise.detectable)
    seen = ", ".join(f"{_percent(noise.detectable[n])} with {'--repeat ' if n == sizes[0] else ''}{n}" for n in sizes)
    expected = f". `run -c A -c B` would show a difference of {seen} in 4 of 5 cases" if seen else ""
    if noise.floor < _FINE:
        state, advice = State.OK, None
    elif noise.floor < _BAD:
        state, advice = State.WARNING, "repeat launches, and alternate what you compare (`run -c A -c B`)"
    else:
        state, advice = State.BAD, _remedy(what, calm, busy)
    return Finding(
        name=name,
        state=state,
        text=f"noise floor ± {_percent(noise.floor)}; launches spread by {_percent(noise.spread)}{expected}",
        advice=advice,
        figures={
            "floor_percent": round(100 * noise.floor, 3),
            "spread_percent": round(100 * noise.spread, 3),
            **{f"detectable_percent_{n}": round(100 * share, 3) for n, share in noise.detectable.items()},
        },
    )


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.2f} %" if percent < 1 else f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"


def _remedy(what: str, calm: Sequence[str], busy: bool) -> str:
    if calm:
        return f"compare {calm[0]} instead of {what}, and " + ("stop what else runs" if busy else "interleave")
    if busy:
        return "stop what else runs first; until then no comparison is worth its time"
    return (
        "nothing that runs here explains it: clocks that change, or other users of the same hardware; "
        "use a machine of your own, or many interleaved launches"
    )
