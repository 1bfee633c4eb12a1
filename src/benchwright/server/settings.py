"""How a store is served."""

from __future__ import annotations

import msgspec

from benchwright.server.tokens import MAIN


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`project`: what readers without a token see. `public`: whoever reaches the server may read. `https`: that is how browsers reach it, so cookies go only there."""

    project: str = MAIN
    public: bool = False
    https: bool = False
