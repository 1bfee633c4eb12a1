"""The options of a system file: `options.cpu`, `options.sizer` and `options.torchrun`."""

from __future__ import annotations

from collections.abc import Mapping

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.system import OPTION_KEYS, System


def check_options(system: System) -> None:
    """InvalidInput for an unknown name."""
    for section in OPTION_KEYS:
        for key in _section(system, section):
            if key not in OPTION_KEYS[section]:
                raise InvalidInput(
                    f"'{key}' is not an option of {section}",
                    where=f"options.{section}",
                    remedy=did_you_mean(key, OPTION_KEYS[section]) or f"use {', '.join(OPTION_KEYS[section])}",
                )


def whole_number(system: System, section: str, key: str) -> int | None:
    """The option as a whole number of 0 or more; None if it is not given."""
    value = _section(system, section).get(key)
    if value is None:
        return None
    try:
        number = int(str(value), 10)
    except ValueError:
        number = -1
    if isinstance(value, bool) or number < 0:
        raise InvalidInput(
            f"'{value}' is not a whole number", where=f"options.{section}.{key}", remedy="write 0 or more"
        )
    return number


def number(system: System, section: str, key: str) -> float | None:
    """The option as a number; None if it is not given."""
    value = _section(system, section).get(key)
    try:
        return None if value is None else float(str(value))
    except ValueError:
        raise InvalidInput(f"'{value}' is not a number", where=f"options.{section}.{key}") from None


def text(system: System, section: str, key: str) -> str | None:
    """The option as it is written; None if it is not given."""
    value = _section(system, section).get(key)
    return None if value is None else str(value)


def switch(system: System, section: str, key: str) -> bool:
    """Whether the option is on: true, 1, "yes"…"""
    value = _section(system, section).get(key)
    word = str(value).strip().lower()
    if value is None or word in ("0", "false", "no", "off", ""):
        return False
    if word in ("1", "true", "yes", "on"):
        return True
    raise InvalidInput(f"'{value}' is neither on nor off", where=f"options.{section}.{key}", remedy="write 1 or 0")


def _section(system: System, section: str) -> Mapping[str, object]:
    found = system.options.get(section)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise InvalidInput(f"'{found}' is not a map of options", where=f"options.{section}")
    return found
