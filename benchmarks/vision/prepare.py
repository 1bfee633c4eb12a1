#!/usr/bin/env python3
"""Makes the JPEG files for `--loader pipeline`, once; the synthetic loader needs none."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

from main import FILES, NAME, arguments

from workload.image_files import make
from workload.options import data_folder

if __name__ == "__main__":
    options = arguments()
    if options.loader == "pipeline":
        sys.stdout.write(f"{make(data_folder(options, NAME), FILES[options.size])}\n")
