"""`python -m benchprobe.models.foreign SCRIPT ARGS…`: as `python SCRIPT ARGS…`, with the modules of `benchprobe.compat`."""

from __future__ import annotations

import sys

from benchprobe import compat
from benchprobe.models.running import run_script

if __name__ == "__main__":
    compat.install()
    sys.exit(run_script(sys.argv[1], sys.argv[2:]))
