#!/usr/bin/env python3
"""Makes the files to read, once."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

from blocks import write
from main import NAME, SIZES, arguments

from workload.options import data_folder
from workload.prepared import made_once

if __name__ == "__main__":
    options = arguments()
    size = SIZES[options.size]
    how = {"files": size["files"], "file_mib": size["file_mib"]}
    sys.stdout.write(f"{made_once(data_folder(options, NAME), how, lambda aside: write(aside, **how))}\n")
