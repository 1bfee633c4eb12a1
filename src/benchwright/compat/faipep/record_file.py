"""Reading FAI-PEP's files: records, and `meta.txt` beside them, whichever year they are of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import msgspec

from benchwright.compat.faipep.records import OWN, PLACES
from benchwright.core.errors import InvalidInput
from benchwright.kinds.spec.observers.records import number_in
from benchwright.runs.foreign_json import body_of, load, read_foreign

META_FILE = "meta.txt"
_OF_META = ("net_name", "identifier")
_VALUES = ("values", "summary", "control_values")
_MIDDLE = ("p50", "median", "mean")


class RecordBody(msgspec.Struct, frozen=True, kw_only=True):
    """One record, as it stands in a file; `values` in the unit it names."""

    type: str
    metric: str | None = None
    unit: str | None = None
    values: list[Any] = []
    control_values: list[Any] = []
    summary: dict[str, Any] = {}
    control_summary: dict[str, Any] = {}
    diff_summary: dict[str, Any] = {}
    num_runs: Any = None
    info_string: Any = None
    regressed: Any = None
    benchwright: dict[str, Any] = {}

    @property
    def about(self) -> dict[str, object]:
        """Fields beside the numbers."""
        fields_given = {"num_runs": self.num_runs, "info_string": self.info_string, "regressed": self.regressed}
        return {key: value for key, value in fields_given.items() if value not in (None, "")}

    @property
    def places(self) -> int:
        return PLACES.get((self.unit or "").strip().lower(), 0)


def is_record(body: object) -> bool:
    """Whether a JSON value is a record, or the `data.txt` of the simple reporter, which holds several."""
    if not isinstance(body, dict) or not body:
        return False
    if isinstance(body.get("type"), str):
        return any(isinstance(body.get(key), list | dict) for key in _VALUES)
    return all(isinstance(each, dict) and "type" in each and is_record(each) for each in body.values())


def is_meta(body: object) -> bool:
    return isinstance(body, dict) and all(isinstance(body.get(key), str) for key in _OF_META)


def meta_in(folder: Path) -> dict[str, Any] | None:
    """The content of meta.txt; None if there is none that can be read."""
    body = body_of(folder / META_FILE)
    return body if isinstance(body, dict) and is_meta(body) else None


def records_in(path: Path) -> list[RecordBody]:
    """The records of a file, one or several; InvalidInput says what is wrong with it."""
    file = load(path)
    if not is_record(file.body):
        remedy = "give a record such as NET-latency.txt, or its folder"
        raise InvalidInput("not a file of fai-pep: it has no type and values", where=file.path, remedy=remedy)
    # Once more, with the digits of its numbers as written: converting units must not round.
    exact = json.loads(read_foreign(path).decode("utf-8-sig"), parse_float=exact_number)
    return [shaped_record(fields_given, digits, file.path) for fields_given, digits in _each(file.body, exact)]


def _each(body: dict[str, Any], exact: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    if isinstance(body.get("type"), str):
        yield body, exact
        return
    yield from zip(body.values(), exact.values(), strict=False)


def shaped_record(fields_given: Mapping[str, Any], digits: Mapping[str, Any], where: str) -> RecordBody:
    fields = {key: value for key, value in fields_given.items() if value is not None}
    for key in ("values", "control_values", OWN):
        if key in fields and key in digits:
            fields[key] = digits[key]
    try:
        return msgspec.convert(fields, RecordBody)
    except (msgspec.ValidationError, OverflowError) as error:
        what = f"{str(error)[:1].lower()}{str(error)[1:]}"
        raise InvalidInput(f"not a record of fai-pep: {what}", where=where) from error


def exact_number(text: str) -> Decimal | float:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of many digits
        return float(text)


def numbers(values: object, places: int, *, what: str, where: str) -> list[float]:
    """Numbers in the record's unit as our own: `places` of the decimal point to the left."""
    found = []
    for at, value in enumerate(values if isinstance(values, list) else [values]):
        number = _number(value, places)
        if number is None:
            raise InvalidInput(f"not a record of fai-pep: {what}[{at}] is not a number", where=where)
        found.append(number)
    return found


def _number(value: object, places: int) -> float | None:
    if isinstance(value, str) and places:
        value = exact_number(value) if number_in(value) is not None else value
    if isinstance(value, int) and not isinstance(value, bool) and places:
        value = Decimal(value)
    if isinstance(value, Decimal):
        try:
            return float(value.scaleb(-places))
        except InvalidOperation:
            return float(value)  # 0 or infinite, whatever the unit
    number = number_in(value)
    return None if number is None else number / 10**places


def middle_of(summary: Mapping[str, object]) -> float | None:
    """The one number that stands for values that were not kept."""
    return next((n for key in _MIDDLE if (n := number_in(summary.get(key))) is not None), None)
