"""Which environment variables are secret, and how they are written down."""

from __future__ import annotations

import re
from collections.abc import Mapping

REDACTED = "(redacted)"
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|PASSPHRASE|COOKIE|CREDENTIAL|AUTH|PRIVATE|SESSION_ID", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(?<=://)([^/@:\s]*):([^/@\s]+)@")


def is_secret(name: str) -> bool:
    """Whether a variable of that name is likely to hold a secret."""
    return _SECRET.search(name) is not None


def redact(environment: Mapping[str, str]) -> dict[str, str]:
    """The same variables, with the values of secret ones, and passwords inside URLs, replaced."""
    return {
        name: REDACTED if is_secret(name) else _URL_PASSWORD.sub(rf"\1:{REDACTED}@", value)
        for name, value in environment.items()
    }
