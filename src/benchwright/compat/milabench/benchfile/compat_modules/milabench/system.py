"""The options of the system file."""

from __future__ import annotations

from typing import Any

from . import actions


def option(name: str, kind: Any, default: Any = None) -> Any:
    """Such as torchrun.port."""
    value: Any = actions.options
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    chosen = default if value is None else value
    return None if chosen is None else kind(chosen)
