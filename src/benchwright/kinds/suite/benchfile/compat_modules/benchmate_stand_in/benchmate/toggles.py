"""Settings that come from the environment."""

from __future__ import annotations

import os

from . import unknown_names


def get_observation_count(value: int | None) -> int | None:
    """How many rates to observe."""
    given = os.getenv("BENCHMATE_OBSERVATION_COUNT")
    return value if given is None else int(given)


def get_poll_interval(value: float) -> float:
    """Seconds between two looks at the machine."""
    return float(os.getenv("BENCHMATE_POLL_INTERVAL", str(value)))


def earlystop_count(skip: int = 10) -> int:
    """Observations to make, those to be skipped included, as voir's options say."""
    return int(os.getenv("VOIR_EARLYSTOP_COUNT", "60")) + int(os.getenv("VOIR_EARLYSTOP_SKIP", str(skip)))


__getattr__ = unknown_names(__name__)
