"""A record that a program printed, and the two JSON forms of one.

`{"type": "NET", "metric": "latency", "unit": "us", "value": "12.3"}`, or older: `{"NET": {"latency": {"value": 12.3, "unit":
"us"}}}`. Only what is certain counts: text that is not a number, half a record or a record without a metric is listed as unread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from benchwright.agent.extractors.numbers import read_number

NET = "NET"
_SHOWN_CHARS = 120
_ABOUT = ("info_string", "num_runs", "summary", "custom_output", "table_name")  # kept beside the values
_MIDDLE = ("p50", "median", "mean")  # of a program's own statistics, the one that stands for the launch


class PrintedLine(NamedTuple):
    """A line of the log; `cut`: its end is missing."""

    number: int
    text: str
    cut: bool = False


class ObserverRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one metric of the net or of a part of it, in the unit they were printed in.

    `stands`: the program's own figure for all of them, where it differs from their median, such as a share of 0s and 1s.
    """

    type: str
    metric: str
    unit: str | None
    values: tuple[float, ...]
    line: int
    stands: float | None = None
    about: dict[str, object] = {}
    warmup: bool = False


class Unread(msgspec.Struct, frozen=True):
    """A line, or a part of one, that looked like a record and could not be read."""

    line: int
    text: str
    why: str


class Observed(msgspec.Struct):
    """Records and unread lines, in the order they were printed."""

    records: list[ObserverRecord] = []
    unread: list[Unread] = []

    def reject(self, line: int, text: str, why: str) -> None:
        self.unread.append(Unread(line, text[:_SHOWN_CHARS], why))

    def add_json(self, value: object, line: int) -> None:
        """All records in a decoded JSON value: one, several in a list, or the older form."""
        if isinstance(value, list):
            for each in value:
                self.add_json(each, line)
        elif not isinstance(value, dict):
            self.reject(line, json.dumps(value, default=str), "is not an object")
        elif "type" in value and "metric" in value:
            self._add_record(str(value["type"]), str(value["metric"]), value, line)
        elif _is_older_form(value):
            for kind, metrics in value.items():
                for metric, body in metrics.items():
                    self._add_record(str(kind), str(metric), body, line)
        else:
            self.reject(line, json.dumps(value, default=str), "has no type and metric")

    def _add_record(self, kind: str, metric: str, body: Mapping[str, object], line: int) -> None:
        if not kind.strip() or not metric.strip():
            self.reject(line, json.dumps(body, default=str), "has an empty type or metric")
            return
        values = []
        for printed in _printed_values(body):
            number = number_in(printed)
            if number is None:
                self.reject(line, json.dumps(printed, default=str), f"'{kind} {metric}' is not a number")
            else:
                values.append(number)
        about = {name: body[name] for name in _ABOUT if body.get(name) not in (None, "")}
        stands = _middle(body.get("summary"))
        if not values and stands is not None and "value" not in body and "values" not in body:
            values, stands = [stands], None
        if not values and not about:
            if "value" not in body and "values" not in body:
                self.reject(line, json.dumps(body, default=str), "has no value")
            return
        unit = body.get("unit")
        self.records.append(
            ObserverRecord(
                type=kind.strip(),
                metric=metric.strip(),
                unit=str(unit).strip() or None if unit is not None else None,
                values=tuple(values),
                stands=stands if values else None,
                line=line,
                about=about,
            )
        )


def number_in(printed: object) -> float | None:
    """A number, or text that is one; None for anything else. NaN is a number: the launch is judged by it."""
    if isinstance(printed, bool):
        return None
    if isinstance(printed, str):
        return read_number(printed)
    if not isinstance(printed, int | float):
        return None
    try:
        return float(printed)
    except OverflowError:
        return float("inf") if printed > 0 else float("-inf")


def _printed_values(body: Mapping[str, object]) -> list[object]:
    """`values` are all of them; `value` is one, or a list."""
    found = body["values"] if isinstance(body.get("values"), list) else body.get("value", body.get("values"))
    if found is None:
        return [None] if "value" in body or "values" in body else []
    return found if isinstance(found, list) else [found]


def _middle(summary: object) -> float | None:
    if not isinstance(summary, Mapping):
        return None
    return next((n for name in _MIDDLE if (n := number_in(summary.get(name))) is not None), None)


def _is_older_form(value: Mapping[str, object]) -> bool:
    bodies = [body for kind in value.values() for body in (kind.values() if isinstance(kind, dict) else [None])]
    return bool(bodies) and all(isinstance(body, dict) for body in bodies)
