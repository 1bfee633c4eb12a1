"""One request to a remote reporter's server, and whether it took all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from benchwright.artifacts.outbox import Rejected, post_json
from benchwright.compat.faipep.remote.endpoint import AccessToken, Endpoint


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
