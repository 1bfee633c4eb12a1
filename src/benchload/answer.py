"""The answer to one request: HTTP/1.1 and server-sent events, read piece by piece. Stamps were taken before a piece came here."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

_MOST_HEAD = 1 << 16
_MOST_ERROR = 4096  # bytes of an error's text


class Answer:
    """Feed it what the socket gave, with the time it gave it. `failure`: why it is none, once that is known.

    `stamps`: when text came; pieces of text that came at once have one stamp. `chunks`: all of them. `ended_ns`: when the server said
    that it was done. Of tokens it believes the server's `usage` alone.
    """

    __slots__ = tuple(
        "_body _buffer _chunked _left _said_done _text cached chunks close ended_ns failure finished stamps status "
        "tokens_in tokens_out whole".split()
    )

    def __init__(self) -> None:
        self._buffer = b""
        self._text = b""  # an unfinished line
        self._body = b""  # of an error
        self._left: Optional[int] = None  # bytes of the body or of its chunk that are still to come
        self._chunked = self._said_done = False
        self.status = self.chunks = 0
        self.close = False  # the connection cannot be used again
        self.whole = False  # nothing more will come
        self.finished = False  # the model had finished
        self.failure: Optional[str] = None
        self.stamps: List[int] = []
        self.ended_ns = 0
        self.tokens_in: Optional[int] = None
        self.tokens_out: Optional[int] = None
        self.cached: Optional[int] = None

    @property
    def begun(self) -> bool:
        return bool(self.status or self._buffer)

    def feed(self, data: bytes, stamp: int) -> None:
        try:
            self._feed(data, stamp)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            self.failure = self.failure or "not_a_stream"
            self.whole = self.close = True

    def cut(self, stamp: int) -> None:
        """The server closed the connection."""
        self.close = True
        if self.whole:
            return
        self.whole = True
        complete = (
            self._left is None and not self._chunked and self.status == 200 and (self._said_done or self.finished)
        )
        if complete:
            self._end(stamp)
        elif self.failure is None:
            self.failure = f"http_{self.status}" if self.status not in (0, 200) else "cut"

    @property
    def error_text(self) -> str:
        """The server's own words about its error."""
        text = self._body.decode("utf-8", "replace")
        try:
            body = json.loads(text)
            error = body.get("error", body.get("detail", body))
            text = str(error.get("message", text) if isinstance(error, dict) else error)
        except (ValueError, AttributeError):
            pass
        return " ".join(text.split())[:300]

    def _feed(self, data: bytes, stamp: int) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if not self.status and not self._read_head():
            return
        if self._chunked:
            self._read_chunks(stamp)
        elif self._left is None:
            self._take(self._buffer, stamp)
            self._buffer = b""
        else:
            part, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
            self._left -= len(part)
            self._take(part, stamp)
            if not self._left:
                self._complete(stamp)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MOST_HEAD:
                raise ValueError("no head")
            return False
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        self._buffer = self._buffer[end + 4 :]
        version, status = first.split(" ", 2)[:2]
        if not version.startswith("HTTP/1."):
            raise ValueError(version)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if status == "100":
            return self._read_head()
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        if not self._chunked and "content-length" in headers:
            self._left = int(headers["content-length"])
        self.close = headers.get("connection", "").lower() == "close" or (version == "HTTP/1.0")
        self.status = int(status)
        if self.status == 200 and "event-stream" not in headers.get("content-type", ""):
            self.failure = "not_a_stream"
        elif self.status != 200:
            self.failure = f"http_{self.status}"
        return True

    def _read_chunks(self, stamp: int) -> None:
        buffer, place = self._buffer, 0
        while not self.whole:
            if not self._left:
                end = buffer.find(b"\r\n", place)
                if end < 0:
                    break
                size = int(buffer[place:end].partition(b";")[0], 16)
                if size == 0:
                    if buffer.find(b"\r\n", end + 2) < 0:
                        break  # what follows the last chunk is still to come
                    self._complete(stamp)
                    break
                place, self._left = end + 2, size + 2
            part = buffer[place : place + self._left]
            place, self._left = place + len(part), self._left - len(part)
            text = part[: len(part) + min(0, self._left - 2)] if self._left < 2 else part
            if text:
                self._take(text, stamp)
            if self._left:
                break
        self._buffer = buffer[place:]

    def _take(self, text: bytes, stamp: int) -> None:
        """Some bytes of the body."""
        if self.failure is not None:
            self._body = (self._body + text)[:_MOST_ERROR]
            return
        lines = (self._text + text if self._text else text).split(b"\n")
        self._text = lines.pop()
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[5:].strip(), stamp)

    def _event(self, data: bytes, stamp: int) -> None:
        if data == b"[DONE]":
            self._said_done = True
            self._end(stamp)
            return
        body: Dict[str, Any] = json.loads(data)
        usage = body.get("usage")
        if usage:
            self.tokens_in, self.tokens_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
            self.cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        if body.get("error"):
            self.failure, self._body = "stream_error", data
            return
        for choice in body.get("choices") or ():
            said = choice.get("delta")
            said = said if said is not None else choice
            if said.get("content") or said.get("text") or said.get("reasoning_content") or said.get("tool_calls"):
                self.chunks += 1
                if not self.stamps or stamp != self.stamps[-1]:
                    self.stamps.append(stamp)
            if choice.get("finish_reason"):
                self.finished = True

    def _end(self, stamp: int) -> None:
        self.ended_ns = self.ended_ns or stamp

    def _complete(self, stamp: int) -> None:
        """The body is whole."""
        self.whole = True
        self._end(stamp)
        if self.failure is None and not (self._said_done or self.finished):
            self.failure = "cut"
