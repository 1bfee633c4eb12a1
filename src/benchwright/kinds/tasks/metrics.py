"""The three lists of a task, `patterns`, `metrics` and `compute_method`, as MetricSpecs."""

from __future__ import annotations

import ast
import re
import warnings

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.metric import JSON_LINES, KEY_VALUE, REGEX, MetricSpec, check_aggregate, guess_direction
from benchwright.kinds.metric_option import check_pattern, compile_problem, extractor_of
from benchwright.kinds.tasks.syntax import Section, TaskEntry, TaskFile
from benchwright.kinds.text_file import TextPlace
from benchwright.kinds.unit_guess import guess_unit

# The Python list literals of a task file: only strings, nothing is evaluated, every element knows its place.


class Element(msgspec.Struct, frozen=True):
    """One string of a list. `place` is where its literal, quote included, begins."""

    text: str
    place: TextPlace


def read_list(file: TaskFile, entry: TaskEntry) -> list[Element]:
    """The strings of a value such as `['speed', 'accuracy']`; InvalidInput where it is anything else."""
    tree = _parse(file, entry)
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        raise file.error(
            f"'{entry.key}' is a string, not a list", entry.value_place, f"put it in brackets: [{entry.value}]"
        )
    if not isinstance(tree, ast.List):
        raise file.error(f"'{entry.key}' is not a list", entry.value_place, "write ['first', 'second']")
    return [_element(file, entry, node) for node in tree.elts]


def place_in_literal(file: TaskFile, element: Element, position: int) -> TextPlace:
    """Where character `position` of the element's text stands; its literal's beginning if escapes make that unsure."""
    line, start = file.lines[element.place.line - 1], element.place.column - 1
    for opening in ("'", '"', "r'", 'r"'):
        begin = start + len(opening)
        if line[start:begin] == opening and line[begin : begin + len(element.text)] == element.text:
            return TextPlace(element.place.line, begin + position + 1)
    return element.place


def _parse(file: TaskFile, entry: TaskEntry) -> ast.expr:
    try:
        # '\d' in a plain string is an unknown escape, kept as it is: Python warns, every task file has it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(entry.value, mode="eval").body
    except SyntaxError as error:
        place = _python_place(entry, error.lineno or 1, (error.offset or 1) - 1)
        raise file.error(f"'{entry.key}' is not a list: {error.msg}", place, "write ['first', 'second']") from None
    except (ValueError, RecursionError, MemoryError):
        raise file.error(f"'{entry.key}' is not a list", entry.value_place, "write ['first', 'second']") from None


def _element(file: TaskFile, entry: TaskEntry, node: ast.expr) -> Element:
    part = entry.parts[min(node.lineno, len(entry.parts)) - 1]
    # The parser counts columns in bytes of UTF-8.
    characters = len(part.text.encode("utf-8", "surrogatepass")[: node.col_offset].decode("utf-8", "replace"))
    place = _python_place(entry, node.lineno, characters)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return Element(node.value, place)
    raise file.error(f"an element of '{entry.key}' is not a string", place, "write it in quotes")


def _python_place(entry: TaskEntry, lineno: int, column: int) -> TextPlace:
    """The place in the file of Python's 1-based line and 0-based column in the value."""
    part = entry.parts[min(max(lineno, 1), len(entry.parts)) - 1]
    return TextPlace(part.place.line, part.place.column + min(max(column, 0), len(part.text)))


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
    """Which extractor reads it, and what it is given. As in `--metric`, but task files know regular expressions only: what
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
