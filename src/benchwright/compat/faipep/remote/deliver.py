"""Sending what waits in the spool: each request is tried a few times, with growing pauses, and at least once delivered."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from benchwright.artifacts.outbox import USUAL_LIMITS, Rejected, SendLimits, Waiting, claimed, sent_in_time
from benchwright.compat.faipep.remote.endpoint import AccessToken, Endpoint
from benchwright.compat.faipep.remote.messages import logs_of
from benchwright.compat.faipep.remote.post import post
from benchwright.compat.faipep.remote.spool import Spool, Spooled
from benchwright.compat.faipep.reports import HarnessReport


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """`messages`: that the server took. `waiting`: requests that stay in the spool; `why` the first of them was not taken."""

    messages: int = 0
    waiting: int = 0
    why: str | None = None


def spool_reports(spool: Spool, endpoint: Endpoint, run: str, reports: Sequence[HarnessReport]) -> None:
    """Keeps the messages of a run until they are sent; CannotWrite if that fails."""
    for report in reports:
        if logs := logs_of(report, endpoint.category):
            spool.add(endpoint, run, logs)


def send_waiting(
    spool: Spool,
    endpoint: Endpoint,
    token: AccessToken,
    limits: SendLimits = USUAL_LIMITS,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> Sent:
    """Sends everything for the endpoint, oldest first. A server that cannot be reached is not tried for every request."""
    deadline = time.monotonic() + limits.total_s
    messages, left = 0, 0
    why: str | None = None
    reachable = True
    for each in spool.waiting(endpoint):
        if not reachable:
            left += 1
            continue
        with claimed(each.path) as mine:
            if not mine:
                continue  # another process sends it
            try:
                sent_in_time(partial(_send, each, token, limits), limits, deadline, pause)
            except Rejected as refusal:
                left += 1
                why = why or str(refusal)
                reachable = refusal.alone
                continue
            with suppress(FileNotFoundError):
                each.path.unlink()
            messages += len(each.content.logs)
    return Sent(messages=messages, waiting=left, why=why)


def _send(each: Waiting[Spooled], token: AccessToken, limits: SendLimits) -> None:
    post(each.content.endpoint, token, each.content.logs, timeout_s=limits.timeout_s)
