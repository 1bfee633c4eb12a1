"""Sends the run folders of a base to a store, one after the other, as `benchwright import` does; says which it has sent.

send_runs.py BASE STORE FIRST      FIRST: how many to leave out
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchwright.core.errors import StoreTrouble
from benchwright.results.kept_runs import Results
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.run_folder import RunFolder


def main() -> int:
    base = BaseFolder(Path(sys.argv[1]))
    with Results(base, sys.argv[2]) as results:
        for path in sorted(base.runs.iterdir())[int(sys.argv[3]) :]:
            try:
                results.ingest(RunFolder(path))
            except StoreTrouble as trouble:
                print(f"{path.name}: {trouble}", flush=True)
                return trouble.exit_code
            print("sent", flush=True)
    print("all there", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
