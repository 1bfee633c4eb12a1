"""Whether a run's results go to one of FAI-PEP's reporters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchwright.options.table import Options

if TYPE_CHECKING:
    from benchwright.compat.faipep.reporters import FaiPepDelivery


def open_delivery(options: Options, base: Path) -> FaiPepDelivery | None:
    if options.local_reporter is None and options.remote_reporter is None:
        return None
    # Most runs have no reporter, and need not wait for its modules.
    from benchwright.compat.faipep.reporters import open_reporters

    return open_reporters(options, base)
