"""The `--metric` option: `NAME[unit,direction,aggregate]=PATTERN`.

The brackets belong to the name, before the first `=`, so nothing in a pattern can be taken for them:

    --metric 'speed=Speed: {number} samples/sec'        a regular expression with any number in it
    --metric 'speed[samples/s,higher,p90]=Speed: (.*)'  or with a group: the first that matched, or the whole match
    --metric 'loss=json:train.loss'                     the key of JSON lines, dots reach into objects
    --metric 'loss=kv:loss'                             `loss=0.12` anywhere in a line
    --metric loss                                       the same, shorter
    --metric 'loss=NAME:PATTERN'                        the extractor NAME of an installed package
    --metric 'loss=regex:json: {number}'                  a regular expression, whatever it begins with
"""

from __future__ import annotations

import re
import warnings

from benchwright.core.errors import InvalidInput
from benchwright.core.metric import (
    AGGREGATES,
    JSON_LINES,
    KEY_VALUE,
    OURS,
    REGEX,
    Direction,
    MetricSpec,
    check_aggregate,
    guess_direction,
)
from benchwright.core.pattern import with_numbers
from benchwright.kinds.unit_guess import guess_unit
from benchwright.options.table import Options

_WHERE = "--metric"
_OPTION = re.compile(r"([^\[\]=]*)(?:\[([^\]]*)\])?(?:=(.*))?", re.DOTALL)
_KEY = re.compile(r"[\w./@-]+")
_PREFIX = re.compile(r"([A-Za-z][\w-]*):")
_PREFIXES = {"json": JSON_LINES, "kv": KEY_VALUE, "regex": REGEX}
_DIRECTIONS = tuple(d.value for d in Direction)
_EXAMPLE = "write NAME=PATTERN, such as 'speed=Speed: {number}'"


def parse_metric_option(text: str) -> MetricSpec:
    """The metric that one `--metric` asks for; InvalidInput says which part of it is wrong."""
    match = _OPTION.fullmatch(text)
    name = match[1].strip() if match else ""
    if match is None or not name:
        raise InvalidInput(f"'{text}' does not begin with a name", where=_WHERE, remedy=_EXAMPLE)
    if match[3] is None and not _KEY.fullmatch(name):
        raise InvalidInput(f"'{text}' has no pattern", where=_WHERE, remedy=_EXAMPLE)
    check_metric_name(name)
    kind, pattern = _kind_and_pattern(name, match[3])
    options = _options(match[2] or "", text)
    aggregate = options.get("aggregate", "median")
    unit_in_pattern = kind == REGEX and aggregate != "count"  # a number of matches is no percentage
    unit = options.get("unit") or (guess_unit(pattern) if unit_in_pattern else None)
    direction = options.get("direction")
    return MetricSpec(
        name=name,
        pattern=pattern,
        kind=kind,
        unit=unit,
        direction=Direction(direction) if direction else guess_direction(name, unit),
        aggregate=aggregate,
    )


def metrics_of(options: Options) -> tuple[MetricSpec, ...]:
    """The metrics that `--metric` asks for."""
    if not options.metrics:
        return ()
    found = tuple(map(parse_metric_option, options.metrics))
    check_distinct(found)
    return found


def check_metric_name(name: str) -> None:
    """InvalidInput for a name that could not be shown or stored."""
    if not name.strip() or not name.isprintable():
        raise InvalidInput(f"{name!r} cannot be the name of a metric", where=_WHERE, remedy=_EXAMPLE)
    if name.startswith(OURS):
        raise InvalidInput(
            f"'{name}' is a name for what benchwright itself measures",
            where=_WHERE,
            remedy=f"call it 'my_{name.replace('.', '_')}'",
        )


def check_distinct(metrics: tuple[MetricSpec, ...]) -> None:
    """InvalidInput if two metrics of one benchmark have the same name."""
    seen: set[str] = set()
    for metric in metrics:
        if metric.name in seen:
            raise InvalidInput(f"metric '{metric.name}' is given twice", where=_WHERE, remedy="rename one of the two")
        seen.add(metric.name)


def compile_problem(pattern: str) -> tuple[str, int] | None:
    """Why `pattern` is no regular expression and at which character, or None if it is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(with_numbers(pattern))
    except InvalidInput as error:
        return f"{error.what}; {error.remedy}", 0
    except re.error as error:
        return error.msg, min(error.pos or 0, len(pattern))
    except (OverflowError, RecursionError, MemoryError, ValueError) as error:
        return str(error) or "too deep", 0
    return None


def extractor_of(text: str) -> tuple[str, str]:
    """`EXTRACTOR:PATTERN` taken apart; a text that begins with no extractor's name is a regular expression."""
    match = _PREFIX.match(text)
    if match is None:
        return REGEX, text
    name, rest = match[1], text[match.end() :]
    if name in _PREFIXES:
        return _PREFIXES[name], rest
    from benchwright.agent.extractors.registry import EXTRACTORS  # here: only few patterns look like this

    return (name, rest) if name in EXTRACTORS.plugins() else (REGEX, text)


def _kind_and_pattern(name: str, given: str | None) -> tuple[str, str]:
    if given is None:
        return KEY_VALUE, name
    if not given:
        raise InvalidInput(f"the pattern of '{name}' is empty", where=_WHERE, remedy=_EXAMPLE)
    kind, pattern = extractor_of(given)
    if kind in (JSON_LINES, KEY_VALUE):
        pattern = pattern.strip()
        if not pattern:
            raise InvalidInput(f"'{name}={given}' names no key", where=_WHERE, remedy=f"write {name}={given}{name}")
    elif kind == REGEX:
        _check_regex(name, pattern)
    else:
        check_pattern(kind, pattern, where=_WHERE)
    return kind, pattern


def check_pattern(kind: str, pattern: str, *, where: str | None = None) -> None:
    """InvalidInput if the extractor `kind` of a package refuses the pattern; BrokenPlugin if it cannot be loaded."""
    from benchwright.agent.extractors.registry import EXTRACTORS

    try:
        EXTRACTORS.load(kind, where=where)(pattern)
    except InvalidInput as error:
        raise InvalidInput(error.what, where=error.where or where, remedy=error.remedy, text=pattern) from None


def _check_regex(name: str, pattern: str) -> None:
    problem = compile_problem(pattern)
    if problem is not None:
        what, position = problem
        raise InvalidInput(
            f"the pattern of '{name}' is not a regular expression: {what} (at character {position + 1})",
            where=_WHERE,
            text=pattern,
            remedy="put a backslash before a character that is meant literally",
        )


def _options(inside: str, text: str) -> dict[str, str]:
    """`unit`, `direction` and `aggregate` from between the brackets, in any order; `unit=min` where a word is unclear."""
    found: dict[str, str] = {}
    for item in (part.strip() for part in inside.split(",")):
        if not item:
            continue
        what, value = _option(item)
        if what in found:
            raise InvalidInput(
                f"'{text}' gives its {what} twice, '{found[what]}' and '{value}'", where=_WHERE, remedy="remove one"
            )
        found[what] = value
    return found


def _option(item: str) -> tuple[str, str]:
    what, equals, value = (part.strip() for part in item.partition("="))
    if equals and what == "unit" and value:
        return what, value
    if equals and what == "direction" and value in _DIRECTIONS:
        return what, value
    if equals and what == "aggregate":
        return what, check_aggregate(value, where=_WHERE)
    if equals:
        remedy = "write unit=…, direction=higher, lower or neither, or aggregate=…"
        raise InvalidInput(f"'{item}' is not an option of a metric", where=_WHERE, remedy=remedy)
    if item in _DIRECTIONS:
        return "direction", item
    if item in AGGREGATES or re.fullmatch(r"p[0-9]+(\.[0-9]+)?", item):
        return "aggregate", check_aggregate(item, where=_WHERE)
    import difflib  # costs start-up

    near = difflib.get_close_matches(item, (*_DIRECTIONS, *AGGREGATES), n=1, cutoff=0.8)
    if near:
        raise InvalidInput(
            f"'{item}' is neither a direction nor an aggregate",
            where=_WHERE,
            remedy=f"did you mean '{near[0]}'? If it is the unit, write unit={item}",
        )
    return "unit", item
