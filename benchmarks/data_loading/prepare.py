#!/usr/bin/env python3
"""Makes the JPEG files, once."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

from main import FILES, NAME, arguments

from workload.image_files import make
from workload.options import data_folder

if __name__ == "__main__":
    options = arguments()
    sys.stdout.write(f"{make(data_folder(options, NAME), FILES[options.size])}\n")
