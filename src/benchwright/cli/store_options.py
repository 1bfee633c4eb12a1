"""Where the commands that look at results find them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from benchwright import results as kept
from benchwright.cli.options import options

if TYPE_CHECKING:
    pass

where_options = options(
    "base", store="Store to use.  [default: $BENCHWRIGHT_STORE, else store.db in the base folder]"
)  # --base and --store


def open_results(base: str | None, store: str | None, *, patience_s: float | None = None) -> kept.kept_runs.Results:
    """The results of that base and store. `patience_s`: how long to wait for a store that others have locked."""
    return kept.kept_runs.Results.choose(base, store, os.environ, patience_s=patience_s)
