"""Turns the stamps of a loop into the columns of a `steps` event.

The loop's own thread only appends to a flat list of entries, in order:

    got, [what was given…,] end, got, [given…,] end, …

where `got` and `end` are stamps (the only integers), a lone float is `give(loss=…)`, and a dict is any other `give`.
"""

from __future__ import annotations

from itertools import chain
from operator import sub
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

Given = Dict[str, Tuple[Sequence[int], List[Any]]]  # offsets of the steps, and the values given there


class Columns(NamedTuple):
    """The complete steps at the start of a list of entries; `entries` is how many entries they take."""

    step_ns: List[int]
    wait_ns: List[int]
    given: Given
    entries: int
    end: int  # stamp of the end of the last one


def complete_steps(entries: Sequence[Any]) -> int:
    """The number of steps in `entries` that have ended."""
    return list(map(type, entries)).count(int) // 2


def step_times(entries: Sequence[Any], ask: int) -> List[int]:
    """The whole time of each complete step; `ask` is when the data of the first was requested."""
    ends = [entry for entry in entries if type(entry) is int][1::2]
    return list(map(sub, ends, chain((ask,), ends)))


def beginning(entries: Sequence[Any], steps: int) -> List[Any]:
    """The entries of the first `steps` steps."""
    stamps = 0
    for position, entry in enumerate(entries):
        stamps += type(entry) is int
        if stamps == 2 * steps:
            return list(entries[: position + 1])
    return list(entries)


def columns(entries: List[Any], ask: int) -> Columns:
    """The complete steps of `entries`; an unfinished step is left for later."""
    found = _one_loss_each(entries, ask)
    if found is not None:
        return found
    stamps = [entry for entry in entries if type(entry) is int]
    steps = len(stamps) // 2
    if not steps:
        return Columns([], [], {}, 0, ask)
    given: Given = {}
    used = 2 * steps if len(stamps) == len(entries) else _gather(entries, steps, given)
    return _columns(stamps[0 : 2 * steps : 2], stamps[1 : 2 * steps : 2], ask, given, used)


def _one_loss_each(entries: List[Any], ask: int) -> Optional[Columns]:
    """The columns if every step gave exactly one lone float, else None: a fast path for by far the most common loop.

    If the sum of the differences is an integer, so is each of them: they are of stamps.
    """
    losses = entries[1::3]
    if 3 * len(losses) != len(entries) or set(map(type, losses)) != {float}:
        return None
    try:
        found = _columns(entries[0::3], entries[2::3], ask, {"loss": (range(len(losses)), losses)}, len(entries))
    except TypeError:
        return None
    return found if type(sum(found.step_ns)) is type(sum(found.wait_ns)) is int else None


def _columns(got: List[int], ends: List[int], ask: int, given: Given, used: int) -> Columns:
    begins = [ask, *ends[:-1]]
    return Columns(list(map(sub, ends, begins)), list(map(sub, got, begins)), given, used, ends[-1] if ends else ask)


def _gather(entries: Sequence[Any], steps: int, given: Given) -> int:
    """Adds what the first `steps` steps gave to `given`; returns how many entries those steps take."""
    lists: Dict[str, Tuple[List[int], List[Any]]] = {}
    stamps = 0
    for position, entry in enumerate(entries):
        if type(entry) is int:
            stamps += 1
            if stamps == 2 * steps:
                return position + 1
            continue
        for name, value in (("loss", entry),) if type(entry) is float else entry.items():
            if name not in lists:
                lists[name] = given[name] = ([], [])
            lists[name][0].append(stamps // 2)
            lists[name][1].append(value)
    return len(entries)
