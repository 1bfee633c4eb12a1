"""Messages for remote reporters that wait in `<base>/spool`: one file for each request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchwright.artifacts.outbox import SpoolFolder, Waiting
from benchwright.compat.faipep.remote.endpoint import Endpoint

FORMAT, VERSION = "benchwright-spool", 1


class Spooled(msgspec.Struct, frozen=True, kw_only=True):
    """One request that waits."""

    format: str = FORMAT
    version: int = VERSION
    url: str
    category: str
    run: str
    logs: list[dict[str, Any]]

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.url, self.category)


class Spool(SpoolFolder[Spooled]):
    """Making one touches nothing."""

    def __init__(self, base: Path) -> None:
        super().__init__(base / "spool", Spooled)

    def add(self, endpoint: Endpoint, run: str, logs: Sequence[dict[str, Any]]) -> Path:
        """CannotWrite says why it could not be kept."""
        return self.keep(Spooled(url=endpoint.url, category=endpoint.category, run=run, logs=list(logs)))

    def waiting(self, endpoint: Endpoint | None = None) -> list[Waiting[Spooled]]:
        """Oldest first; `endpoint`: only what is for it. What cannot be read stays where it is; see `damaged`."""
        return [each for each in self.every() if endpoint in (None, each.content.endpoint)]

    def is_ours(self, content: Spooled) -> bool:
        return content.format == FORMAT and content.version == VERSION
