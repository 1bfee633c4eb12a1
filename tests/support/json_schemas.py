"""As much of JSON Schema as ours use."""

from __future__ import annotations

import re
from typing import Any

TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def fits(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """As much of JSON Schema as ours uses."""
    if "$ref" in schema:
        return fits(value, root["definitions"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema and not any(fits(value, option, root) for option in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    types = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type")
    if types is not None and not any(is_a(value, name) for name in types):
        return False
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        free = [re.compile(p) for p in schema.get("patternProperties", {})]
        if not set(schema.get("required", ())) <= set(value):
            return False
        for key, item in value.items():
            if key in known:
                if not fits(item, known[key], root):
                    return False
            elif not any(p.search(str(key)) for p in free) and (
                rest is False or (isinstance(rest, dict) and not fits(item, rest, root))
            ):
                return False
    if isinstance(value, list) and not all(fits(item, schema.get("items", {}), root) for item in value):
        return False
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        least, above = schema.get("minimum", value), schema.get("exclusiveMinimum", value - 1)
        return bool(least <= value and above < value)
    return True


def is_a(value: Any, name: str) -> bool:
    if name in ("number", "integer"):
        return isinstance(value, int if name == "integer" else int | float) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])
