"""benchprobe: what runs inside a measured program.

    from benchprobe import give, iterate

    for batch in iterate("train", loader):
        loss = step(batch)
        give(loss=loss)

Run plainly, all of this is inert and nearly free. `python -m benchprobe main.py` shows what it measures, and `benchwright
run` records it. Which it is depends on the environment variable BENCHPROBE_CONFIG, read once, here.
"""

from __future__ import annotations

import sys as _sys
from typing import TYPE_CHECKING, Optional

from benchprobe.config import from_environment as _from_environment
from benchprobe.noop import give, iterate, phase
from benchprobe.parameters import parse
from benchprobe.version import __version__

if TYPE_CHECKING:
    from benchprobe.loop.probe import Probe

__all__ = ["__version__", "active_probe", "give", "iterate", "parse", "phase"]

_probe: Optional[Probe] = None


def active_probe() -> Optional[Probe]:
    """The probe that records this process; None where nobody measures it."""
    return _probe


_config = _from_environment()
if _config is not None:
    try:
        from benchprobe.loop.measured_functions import functions as _functions
        from benchprobe.loop.probe import Probe as _Probe

        _probe = _Probe(_config)
        iterate, give, phase = _functions(_probe)  # type: ignore[assignment]
    except Exception as _error:  # a program must run even if it cannot be measured
        print(f"benchprobe: {type(_error).__name__}: {_error}; the program runs unmeasured", file=_sys.stderr)
