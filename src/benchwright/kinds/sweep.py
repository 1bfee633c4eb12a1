"""Parameter sweeps: `--param batch_size=1,8 --param env:MODE=fast,slow` as the points to measure."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Hashable, Sequence

import msgspec

from benchwright.core.benchmark import Command
from benchwright.core.errors import InvalidInput

_MOST_POINTS = 1000
_VARIABLE = "env:"  # what a parameter that sets an environment variable begins with
Point = dict[str, str]


def sweep_points(texts: Sequence[str], how: str = "grid") -> list[Point]:
    """All combinations (`grid`), or the values side by side (`zip`); one empty point if nothing is swept."""
    values = _parsed(texts)
    if not values:
        return [{}]
    names = list(values)
    if how == "zip":
        rows = list(zip(*_same_length(values), strict=True))
    else:
        count = 1
        for each in values.values():
            count *= len(each)
        if count > _MOST_POINTS:
            raise InvalidInput(
                f"{count} combinations are too many", where="--param", remedy=f"measure at most {_MOST_POINTS} at once"
            )
        rows = list(itertools.product(*values.values()))
    return [dict(zip(names, row, strict=True)) for row in rows]


def script_arguments(point: Point) -> tuple[str, ...]:
    """The words a script gets for it: `--batch_size 8`."""
    return tuple(word for name, value in point.items() if not is_variable(name) for word in (f"--{name}", value))


def is_variable(name: str) -> bool:
    """Whether the parameter `name` sets an environment variable."""
    return name.startswith(_VARIABLE)


def variables(point: Point) -> dict[str, str | None]:
    """The environment variables it sets."""
    return {name.removeprefix(_VARIABLE): value for name, value in point.items() if is_variable(name)}


def with_values(command: Command, point: Point) -> Command:
    """`{NAME}` filled in. A value stays one word, in a shell's line too; one that looks like a placeholder is a value."""
    if not point:
        return command
    names = re.compile(rf"\{{({'|'.join(map(re.escape, point))})\}}")
    quoted = shlex.quote if command.shell else str
    argv = tuple(names.sub(lambda found: quoted(point[found[1]]), word) for word in command.argv)
    return msgspec.structs.replace(command, argv=argv)


def named_point(point: Point) -> str:
    """`[batch_size=8,height=224]`, or nothing."""
    return f"[{','.join(f'{name}={value}' for name, value in point.items())}]" if point else ""


def idle_parameters(found: Sequence[tuple[Point, Hashable]]) -> list[str]:
    """Parameters without effect on the findings: never a difference while all others stay the same."""
    names = dict.fromkeys(name for point, _ in found for name in point)
    return [name for name in names if _is_idle(name, found)]


def _is_idle(name: str, found: Sequence[tuple[Point, Hashable]]) -> bool:
    at: dict[Hashable, dict[str, Hashable]] = {}
    for point, what in found:
        others = tuple(sorted((other, value) for other, value in point.items() if other != name))
        at.setdefault(others, {})[point[name]] = what
    compared = [by_value for by_value in at.values() if len(by_value) > 1]
    return bool(compared) and all(len(set(by_value.values())) == 1 for by_value in compared)


def _parsed(texts: Sequence[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        name = name.strip().lstrip("-")
        given = [value.strip() for value in rest.split(",")]
        if not equals or not re.fullmatch(rf"({_VARIABLE})?[A-Za-z_][\w-]*", name) or not all(given):
            raise InvalidInput(
                f"'{text}' is not a parameter with values",
                where="--param",
                remedy="write NAME=VALUE,VALUE or env:NAME=…",
            )
        if name in values:
            raise InvalidInput(f"'{name}' is given twice", where="--param", remedy="give all its values at once")
        if len(set(given)) < len(given):
            raise InvalidInput(f"'{text}' names a value twice", where="--param", remedy="name each value once")
        values[name] = given
    return values


def _same_length(values: dict[str, list[str]]) -> list[list[str]]:
    longest = max(map(len, values.values()))
    for name, given in values.items():
        if len(given) not in (1, longest):
            raise InvalidInput(
                f"'{name}' has {len(given)} values where another has {longest}",
                where="--param",
                remedy="give each the same number or a single value, or drop --sweep zip",
            )
    return [given * longest if len(given) == 1 else given for given in values.values()]
