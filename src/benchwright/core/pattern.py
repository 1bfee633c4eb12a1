"""The pattern of a metric: `{number}` in it, and where it says that its number begins and ends."""

from __future__ import annotations

import re

from benchwright.core.errors import InvalidInput

NUMBER = "{number}"  # what a user writes for any number
SEPARATORS = "'_\u2019\u00a0\u2009\u202f"  # between thousands, and nothing else

_DIGITS = rf"(?:[0-9]{{1,3}}(?:[,{SEPARATORS}][0-9]{{3}})+(?!,?[0-9])|[0-9]+)"
_SPACED_DIGITS = rf"(?:[0-9]{{1,3}}(?:[ ][0-9]{{3}})+(?![0-9])|{_DIGITS})"
_TAIL = r"(?:[eE][-+]?[0-9]+|(?-i:[kKMGT])(?!\w))?(?![0-9])"
_NOT_FINITE = r"(?:[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)(?!\w)"
_ANY_NUMBER = rf"(?<![0-9])(?<![0-9][.,])[-+]?(?:(?:DIGITS(?:\.[0-9]*)?|\.[0-9]+){_TAIL}|{_NOT_FINITE})"
ANY_NUMBER = _ANY_NUMBER.replace("DIGITS", _DIGITS)
_SPACED_NUMBER = _ANY_NUMBER.replace("DIGITS", _SPACED_DIGITS)
_TEXT_FOLLOWS = re.compile(r"(?:[ ]|\\s[*+]?)?[A-Za-z%/\]]")
_PLAIN_BEFORE = re.compile(r"(?:^|[^\\])[\w \"'=:,;/<>@#%&~-]$|\\[^\w\s]$")
_PLAIN_AFTER = re.compile(r"(?:[\w \"'=:,;/<>@#%&~-]|\\[^\w\s])(?![*?{])")


def with_numbers(pattern: str) -> str:
    """The regular expression of a pattern with `{number}` in it; InvalidInput if another group would be read instead.

    Where text follows in the pattern, spaces between thousands are read too: nothing else can stand there.
    """
    if NUMBER not in pattern:
        return pattern
    parts = pattern.replace(f"({NUMBER})", NUMBER).split(NUMBER)
    try:
        groups = re.compile("0".join(parts)).groups
    except (re.error, OverflowError, RecursionError):
        groups = 0  # the compiler of the whole pattern reports it
    if groups:
        raise InvalidInput(
            f"the pattern has {NUMBER} and another group",
            remedy="write (?:…) for groups that are not read",
            text=pattern,
        )
    whole = parts[0]
    for rest in parts[1:]:
        whole += f"({_SPACED_NUMBER if _TEXT_FOLLOWS.match(rest) else ANY_NUMBER}){rest}"
    return whole


def first_group(pattern: str) -> tuple[int, int] | None:
    """Where the first outermost capturing group begins and ends, or None if there is none."""
    opened: list[int | None] = []  # of each open parenthesis: where it is, if it captures
    position, in_class = 0, False
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
            position += pattern.startswith(("]", "^"), position + 1)  # a ] right behind [ is a member of the class
        elif character == "(":
            captures = not pattern.startswith("?", position + 1) or pattern.startswith("?P<", position + 1)
            opened.append(position if captures else None)
        elif character == ")" and opened:
            start = opened.pop()
            if start is not None and all(outer is None for outer in opened):
                return start, position + 1
        position += 1
    return None


def open_sides(pattern: str) -> tuple[bool, bool]:
    """Whether the number that a pattern reads may go on before and behind the match: not where it has a plain character."""
    group = first_group(pattern)
    if group is None:
        return True, True
    before, after = pattern[: group[0]], pattern[group[1] :]
    return not _PLAIN_BEFORE.search(before), not _PLAIN_AFTER.match(after)


def better_pattern(pattern: str) -> str:
    """The pattern with `{number}` for its group."""
    group = first_group(pattern)
    if group is None:
        return NUMBER
    before = pattern[: group[0]]
    return before + ("?" if before.endswith((".*", ".+")) else "") + NUMBER + pattern[group[1] :]
