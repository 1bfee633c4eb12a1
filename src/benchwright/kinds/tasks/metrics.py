"""The three lists of a task, `patterns`, `metrics` and `compute_method`, as MetricSpecs."""

from __future__ import annotations

import re

from benchwright.core.errors import InvalidInput
from benchwright.core.metric import JSON_LINES, KEY_VALUE, REGEX, MetricSpec, check_aggregate, guess_direction
from benchwright.kinds.metric_option import check_pattern, compile_problem, extractor_of
from benchwright.kinds.tasks.list_literal import Element, place_in_literal, read_list
from benchwright.kinds.tasks.syntax import Section, TaskFile
from benchwright.kinds.unit_guess import guess_unit

_KEY = re.compile(r"[\w./@-]+")
LISTS = ("patterns", "metrics", "compute_method")


def read_metrics(file: TaskFile, section: Section, *, workers: int | None) -> tuple[MetricSpec, ...]:
    """The metrics of a section, in its order; none if it has none of the lists. `workers`: see TaskOverrides."""
    given = [key for key in LISTS if key in section.entries]
    if not given:
        return ()
    absent = [key for key in LISTS if key not in section.entries]
    if absent:
        raise file.error(
            f"[{section.name}] has {' and '.join(given)} but no {' and no '.join(absent)}",
            section.line,
            "give all three: each pattern has one name and one method",
        )
    patterns, names, methods = (read_list(file, section.entries[key]) for key in LISTS)
    _check_lengths(file, section, [len(patterns), len(names), len(methods)])
    _check_names(file, names)
    return tuple(
        _metric(file, pattern, name, method, workers)
        for pattern, name, method in zip(patterns, names, methods, strict=True)
    )


def _check_lengths(file: TaskFile, section: Section, lengths: list[int]) -> None:
    if len(set(lengths)) == 1:
        return
    # The one that differs from the other two is where to look.
    odd = next((key for key, n in zip(LISTS, lengths, strict=True) if lengths.count(n) == 1), LISTS[0])
    counts = ", ".join(f"{key} {n}" for key, n in zip(LISTS, lengths, strict=True))
    raise file.error(
        f"the lists of [{section.name}] have different lengths: {counts}",
        section.entries[odd].place,
        "give each pattern one name and one method, in the same order",
    )


def _check_names(file: TaskFile, names: list[Element]) -> None:
    first: dict[str, Element] = {}
    for name in names:
        if not name.text.strip() or not name.text.isprintable():
            raise file.error(f"{name.text!r} cannot be the name of a metric", name.place, "write a word")
        if name.text in first:
            line = first[name.text].place.line
            raise file.error(
                f"metric '{name.text}' appears twice, first in line {line}",
                name.place,
                "rename one: both would be written to the same key of the result",
            )
        first[name.text] = name


def _metric(file: TaskFile, pattern: Element, name: Element, method: Element, workers: int | None) -> MetricSpec:
    kind, text = _extractor(file, pattern)
    try:
        check_aggregate(method.text)
    except InvalidInput as error:
        raise file.error(error.what, method.place, error.remedy) from None
    if method.text == "average_aggregate" and not workers:
        raise file.error(
            "'average_aggregate' multiplies by the number of workers, which is not known",
            method.place,
            "set DEEPLEARNING_WORKERS_COUNT to 1 or more",
        )
    unit = None if kind != REGEX or method.text == "count" else guess_unit(text)
    return MetricSpec(
        name=name.text,
        pattern=text,
        kind=kind,
        unit=unit,
        direction=guess_direction(name.text, unit),
        aggregate=method.text,
    )


def _extractor(file: TaskFile, pattern: Element) -> tuple[str, str]:
    """Which extractor reads it, and what it is given. As in `--metric`, but the driver knows regular expressions only: what
    can be one stays one, such as `json: (.*)`."""
    kind, text = extractor_of(pattern.text)
    if kind == REGEX or (kind in (JSON_LINES, KEY_VALUE) and not _KEY.fullmatch(text)):
        kind, text = REGEX, pattern.text
        _check_pattern(file, pattern)
    else:
        try:
            check_pattern(kind, text)
        except InvalidInput as error:
            raise file.error(error.what, pattern.place, error.remedy) from None
    return kind, text


def _check_pattern(file: TaskFile, pattern: Element) -> None:
    if not pattern.text:
        raise file.error("the pattern is empty", pattern.place, "write a regular expression that finds one number")
    if "\b" in pattern.text:
        raise file.error(
            r"'\b' in a plain string is a backspace, which no log holds",
            pattern.place,
            r"write r'…\b…' for the edge of a word",
        )
    problem = compile_problem(pattern.text)
    if problem is not None:
        what, position = problem
        raise file.error(
            f"this is not a regular expression: {what}",
            place_in_literal(file, pattern, position),
            "put a backslash before a character that is meant literally",
        )
