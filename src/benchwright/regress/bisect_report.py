"""A bisection in words: a line for each launch, and at the end what was found; and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from benchwright.regress.bisect import BisectOutcome, BisectState, runners_up
from benchwright.regress.repository import Commit
from benchwright.report.text.layout import wrapped
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import counted, format_value, json_body, short_unit
from benchwright.report.text.one_line import clip, one_line

_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 24
_LIKELY = 0.01  # a commit with less chance is as good as acquitted
_MOST_LISTED = 6


def head_text(state: BisectState, width: int) -> str:
    """Before the first launch."""
    first, last = state.commits[0], state.commits[-1]
    count = counted(len(state.commits) - 1, "commit")
    return "".join(f"{line}\n" for line in wrapped(f"{count} after {first.short}, the last {last.short}", width, " "))


def step_line(state: BisectState, found: BisectOutcome, width: int) -> str:
    """`12  9c8b7a6d5e  1.301 s   3f2e1d0c9b 61 %, 5 of 63 left  ▁▁▆█▁`."""
    commit, what = _last(state)
    likeliest = max(range(1, len(found.posterior)), key=found.posterior.__getitem__)
    left = sum(chance >= _LIKELY for chance in found.posterior[1:])
    if len({launch.place for launch in state.launches}) < 3 and len(state.commits) > 2:
        likely = f"no change {chance_words(found.unchanged)}" if found.unchanged > 0.5 else ""
    elif found.unchanged > found.posterior[likeliest]:
        likely = f"no change {chance_words(found.unchanged)}"
    else:
        chance = chance_words(found.posterior[likeliest])
        likely = f"{state.commits[likeliest].short} {chance}, {left} of {len(found.posterior) - 1} left"
    text = f" {len(state.launches):>3}  {commit.short}  {what:<11} {likely}"
    room = width - len(text) - 2
    return clip(f"{text}  {bars(found.posterior, room)}" if likely and room >= 8 else text, width)


def _last(state: BisectState) -> tuple[Commit, str]:
    """The commit and the result of the newest step."""
    if state.newest is not None:
        return state.commits[state.newest[0]], state.newest[1]
    launch = state.launches[-1]
    return state.commits[launch.place], format_value(launch.value, short_unit(state.unit))


def bars(posterior: Sequence[float], room: int = _MOST_BARS) -> str:
    """The chance of each commit, oldest first; where there are more commits than room, of several together."""
    chances = posterior[1:]
    places = min(len(chances), _MOST_BARS, room)
    shares = [0.0] * places
    for number, chance in enumerate(chances):
        shares[number * places // len(chances)] += chance
    top = max(shares) or 1.0
    return "".join(_BARS[round(share / top * (len(_BARS) - 1))] for share in shares)


def chance_words(chance: float) -> str:
    """`97 %`; certainty is never claimed."""
    return "> 99 %" if chance > 0.995 else "< 1 %" if chance < 0.005 else f"{chance * 100:.0f} %"


def outcome_text(found: BisectOutcome, width: int) -> str:
    """The commit, or why there is none; how large the change is; who else it may have been; and what it took."""
    lines = ["", *(line for text in _verdict(found) for line in wrapped(text, width, " "))]
    for place in runners_up(found):
        lines.append(
            clip(f"   or  {chance_words(found.posterior[place]):>6}  {_named(found.state.commits[place])}", width)
        )
    if found.unchanged >= 0.005:
        lines.append(f"   or  {chance_words(found.unchanged):>6}  nothing changed")
    for place, why in list(found.state.skipped.items())[:_MOST_LISTED]:
        commit = found.state.commits[place]
        lines += wrapped(f"skipped {_named(commit)}: {why.removeprefix(commit.short).lstrip(': ')}", width, " ")
    lines += wrapped(_effort(found.state), width, " ")
    return "\n".join(lines) + "\n"


def _verdict(found: BisectOutcome) -> Iterator[str]:
    state = found.state
    chance = chance_words(found.chance)
    if not found.found:
        yield f"not found: {found.why_not}"
        if found.unchanged < found.chance:
            yield f"most likely ({chance}): {_named(state.commits[found.best])}"
    elif len(found.suspects) == 1:
        yield f"{_named(state.commits[found.best])}"
        yield f"changed {_size(found)}; chance {chance}"
    else:
        count = len(found.suspects)
        yield f"one of these {count} commits, which cannot be told apart, changed {_size(found)}; chance {chance}:"
        yield from (_named(state.commits[place]) for place in found.suspects[:_MOST_LISTED])


def _named(commit: Commit) -> str:
    return f"{commit.short}  {commit.time:%Y-%m-%d}  {one_line(commit.subject)}"


def _size(found: BisectOutcome) -> str:
    """`time by +5.2 % (95 % confidence: +3.9 % to +6.4 %)`."""
    name = metric_name(found.state.metric or "", {})
    if found.ratio is None:
        return name
    between = ""
    if found.interval is not None:
        between = f" (95 % confidence: {_signed(found.interval.low)} to {_signed(found.interval.high)})"
    return f"{name} by {_signed(found.ratio)}{between}"


def _signed(ratio: float) -> str:
    change = (ratio - 1) * 100
    return f"{change:+.1f} %" if abs(change) < 100 else f"{change:+.0f} %"


def _effort(state: BisectState) -> str:
    measured = len({launch.place for launch in state.launches})
    text = f"{counted(len(state.launches), 'launch', 'launches')} of {counted(measured, 'commit')}"
    disturbed = sum(launch.disturbed is not None for launch in state.launches)
    if not disturbed:
        return text
    fate = "counted anyway, since most were" if 2 * disturbed > len(state.launches) else "not counted"
    return f"{text}; {disturbed} disturbed by other load, {fate}"


def outcome_body(found: BisectOutcome) -> dict[str, object]:
    """For scripts; documented in docs/how-to/bisect.md."""
    state = found.state
    by_place: dict[int, list[float]] = {}
    for launch in state.launches:
        by_place.setdefault(launch.place, []).append(launch.value)
    body: dict[str, object] = {
        "format": "benchwright-bisect",
        "version": 1,
        "found": found.found,
        "why_not": found.why_not,
        "chance": found.chance,
        "unchanged": found.unchanged,
        "suspects": [state.commits[place].hash for place in found.suspects],
        "metric": state.metric,
        "unit": state.unit,
        "direction": state.direction.value,
        "ratio": found.ratio,
        "interval_95": None if found.interval is None else [found.interval.low, found.interval.high],
        "launches": len(state.launches),
        "seconds": state.seconds,
        "commits": [
            msgspec.to_builtins(commit)
            | {
                "chance": found.posterior[place],
                "values": by_place.get(place, []),
                "skipped": state.skipped.get(place),
            }
            for place, commit in enumerate(state.commits)
        ],
    }
    return json_body(body)
