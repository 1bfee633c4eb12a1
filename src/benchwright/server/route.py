"""The route seam: what other tools send to a server of theirs, taken by ours. Entry-point group: `benchwright.routes`.

Each variant passes one contract test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from benchwright.core.registry import Registry
from benchwright.core.run import Run

ENTRY_POINT_GROUP = "benchwright.routes"
FindRun = Callable[[str], Run | None]  # by uid, in the store


class ForeignPost(msgspec.Struct, frozen=True, kw_only=True):
    """A request: the token, and the messages as the tool writes them."""

    token: str
    messages: tuple[object, ...]


class DeliveredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run and the digest of all it is made of."""

    run: Run
    digest: str


class ForeignRoute(Protocol):
    """Takes POST requests. The server checks the token, which must allow writing, and stores the runs."""

    @property
    def path(self) -> str:
        """Where it listens, such as `/timings`."""
        ...

    def read(self, body: bytes) -> ForeignPost:
        """InvalidInput if it is not what the tool sends, whatever the bytes are."""
        ...

    def runs(self, post: ForeignPost, stored: FindRun) -> Sequence[DeliveredRun]:
        """The runs that the messages belong to, with what is stored of them already. The same message twice counts once.
        InvalidInput if a message cannot be understood; then nothing is stored."""
        ...

    def answer(self, post: ForeignPost) -> object:
        """The answer that the tool expects, as JSON, once all is stored."""
        ...


FOREIGN_ROUTES: Registry[Callable[[], ForeignRoute]] = Registry(ENTRY_POINT_GROUP, "route")
