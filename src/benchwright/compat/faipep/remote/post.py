"""One request to a remote reporter's server, and whether it took all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from benchwright.compat.faipep.remote.endpoint import AccessToken, Endpoint
from benchwright.delivery.http_post import post_json
from benchwright.delivery.not_taken import NotTaken


def post(endpoint: Endpoint, token: AccessToken, logs: Sequence[object], *, timeout_s: float) -> None:
    """Sends the messages; NotTaken unless the server says that it took every one. No redirect is followed."""
    body = json.dumps({"access_token": token.reveal(), "logs": json.dumps(logs)}).encode()
    _check_count(post_json(endpoint.url, body, timeout_s=timeout_s), len(logs))


def _check_count(text: bytes, wanted: int) -> None:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise NotTaken("its answer is not JSON", again=False) from None
    count = answer.get("count") if isinstance(answer, dict) else None
    if isinstance(count, bool) or not isinstance(count, int):
        raise NotTaken('its answer has no "count"', again=False)
    if count != wanted:
        raise NotTaken(f"it took {count} of {wanted} messages", again=False, alone=True)
