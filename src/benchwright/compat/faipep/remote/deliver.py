"""Sending what waits in the spool: each request is tried a few times, with growing pauses, and at least once delivered."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from benchwright.artifacts.outbox import USUAL_LIMITS, Rejected, SendLimits, Waiting, claimed, post_json, sent_in_time
from benchwright.compat.faipep.records import Record
from benchwright.compat.faipep.remote.endpoint import AccessToken, Endpoint
from benchwright.compat.faipep.remote.spool import Spool, Spooled
from benchwright.compat.faipep.reports import HarnessReport, encoded

_NUMBERS = ("time", "commit_time", "control_commit_time")
_SUMMARIES = {"summary": "", "control_summary": "control_", "diff_summary": "diff_"}
_COUNTS = ("regressed", "num_runs")
_TEXTS = ("type", "metric", "unit", "info_string")
_VECTORS = ("values", "control_values")


def logs_of(report: HarnessReport, category: str) -> list[dict[str, object]]:
    """The `logs` of one request: all records of a test."""
    return [
        {"category": category, "message": encoded(message).decode(), "line_escape": False}
        for message in _messages(report)
    ]


def _messages(report: HarnessReport) -> Iterator[dict[str, object]]:
    base = {name: report.meta[name] for name in _NUMBERS if name in report.meta}
    about = {name: _text(value) for name, value in report.meta.items() if name not in _NUMBERS}
    for record in report.records:
        texts = {name: _text(record[name]) for name in _TEXTS if record.get(name) is not None}
        yield {
            "int": base | _numbers(record),
            "normal": about | texts | {"message_id": _identity(report, record)},
            "normvector": {name: record[name] for name in _VECTORS if name in record},
        }


def _numbers(record: Record) -> dict[str, object]:
    found = {name: record[name] for name in _COUNTS if record.get(name) is not None}
    for key, prefix in _SUMMARIES.items():
        summary = record.get(key)
        if isinstance(summary, Mapping):
            found |= {f"{prefix}{name}": value for name, value in summary.items() if value is not None}
    return found


def _identity(report: HarnessReport, record: Record) -> str:
    """The same each time it is sent: a message may arrive twice, and the server can tell."""
    parts = [report.meta.get(key) for key in ("run", "time", "net_name", "identifier", "metric", "backend")]
    parts += [record["type"], record["metric"], record.get("values")]
    return hashlib.sha256(encoded(parts)).hexdigest()[:32]


def _text(value: object) -> str:
    return value if isinstance(value, str) else encoded(value).decode()


def post(endpoint: Endpoint, token: AccessToken, logs: Sequence[object], *, timeout_s: float) -> None:
    """Sends the messages; Rejected unless the server says that it took every one. No redirect is followed."""
    body = json.dumps({"access_token": token.reveal(), "logs": json.dumps(logs)}).encode()
    _check_count(post_json(endpoint.url, body, timeout_s=timeout_s), len(logs))


def _check_count(text: bytes, wanted: int) -> None:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise Rejected("its answer is not JSON", again=False) from None
    count = answer.get("count") if isinstance(answer, dict) else None
    if isinstance(count, bool) or not isinstance(count, int):
        raise Rejected('its answer has no "count"', again=False)
    if count != wanted:
        raise Rejected(f"it took {count} of {wanted} messages", again=False, alone=True)


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
