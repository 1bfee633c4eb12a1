"""For tests that fetch artifacts: what to fetch, within which limits, and what was said meanwhile."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from benchwright.artifacts.limits import FetchLimits
from benchwright.core.artifact import Artifact

QUICK = FetchLimits(back_off_s=0.01, longest_wait_s=0.05, connect_s=20.0, stall_s=20.0, keep_free_bytes=0)


class Heard:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        self.lines.append(f"{name}: {what}")

    def on_step_now(self, name: str, what: str) -> None:
        self.lines.append(f"{name}: {what}")

    def on_step_done(self, name: str, how: str = "") -> None:
        self.lines.append(f"{name}: {how}")

    def on_note(self, text: str) -> None:
        self.lines.append(text)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def limits(**changes: float) -> FetchLimits:
    return msgspec.structs.replace(QUICK, **changes)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def model(location: str, content: bytes | None = None, **more: object) -> Artifact:
    """A file `model.onnx`, with the SHA-256 of `content`."""
    fields: dict[str, Any] = {"key": "model", "filename": "model.onnx", "location": location, **more}
    if content is not None:
        fields["sha256"] = sha256(content)
    return Artifact(**fields)
