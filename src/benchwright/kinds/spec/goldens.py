"""Compares what a launch wrote with the golden outputs of its test."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from benchwright.record.reading import Event

COMPARED = "compared"  # the event of one output


class OutputPair(NamedTuple):
    """An output by its name: the file that the program wrote, and the golden one; None: it is not here."""

    name: str
    got: str
    golden: str | None


def compared(pairs: Iterable[OutputPair], tolerance: Mapping[str, float]) -> list[Event]:
    """One event for each output. A file that is missing or cannot be read makes its output wrong."""
    return [_compared(pair, tolerance) for pair in pairs]


def _compared(pair: OutputPair, tolerance: Mapping[str, float]) -> Event:
    # These import numpy, which only runs with golden outputs need.
    from benchmodels.check.array_files import UnreadableArray, read_array
    from benchmodels.check.goldens import golden_error

    made: Event = {"event": COMPARED, "output": pair.name}
    if pair.golden is None:
        return made | {"wrong": "its golden output is not here; run without --no-setup"}
    if not os.path.isfile(pair.got):
        return made | {"wrong": f"the program did not write {pair.got}"}
    arrays = []
    for path, what in ((pair.got, "the output"), (pair.golden, "the golden")):
        try:
            arrays.append(read_array(path, pair.name))
        except UnreadableArray as error:
            return made | {"wrong": f"{what} {path}: {error}"}
    found = golden_error(pair.name, arrays[0], arrays[1], tolerance)
    figures = {name: value for name, value in found.figures.items() if abs(value) < float("inf")}
    return made | {"figures": figures, "wrong": found.wrong, "worst": found.worst, "statistics": found.statistics}
