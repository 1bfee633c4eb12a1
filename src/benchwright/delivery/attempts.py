"""How often a message is sent, and with what pauses, before it has to wait for the next time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import msgspec

from benchwright.delivery.not_taken import NotTaken


class SendLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long to try. The n-th pause is up to `pause_s` × 2ⁿ, at random, so that many senders do not return together."""

    attempts: int = 4
    pause_s: float = 0.5
    timeout_s: float = 20.0
    total_s: float = 60.0  # of pauses and failures, over all messages


USUAL_LIMITS = SendLimits()


def sent_in_time(
    send: Callable[[], object], limits: SendLimits, deadline: float, pause: Callable[[float], None] = time.sleep
) -> None:
    """Calls `send` until it raises no NotTaken; raises the last one. `deadline`: of time.monotonic()."""
    for attempt in range(limits.attempts):
        try:
            send()
            return
        except NotTaken as refusal:
            wait_s = max(refusal.after_s, random.uniform(0.5, 1.0) * limits.pause_s * 2**attempt)  # noqa: S311
            last = attempt + 1 == limits.attempts
            if last or not refusal.again or time.monotonic() + wait_s > deadline:
                raise
        pause(wait_s)
