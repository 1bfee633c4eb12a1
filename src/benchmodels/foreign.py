"""`python -m benchmodels.foreign SCRIPT ARGS…`: as `python SCRIPT ARGS…`, with the modules of `benchmodels.compat`."""

from __future__ import annotations

import sys

from benchmodels import compat
from benchmodels.script_runner import run_script

if __name__ == "__main__":
    compat.install()
    sys.exit(run_script(sys.argv[1], sys.argv[2:]))
