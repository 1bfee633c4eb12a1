"""`python -m benchmodels.compat` prints the folder of the stand-ins, for PYTHONPATH or a .pth file: plain Python then finds them."""

from __future__ import annotations

import os

if __name__ == "__main__":
    print(os.path.dirname(os.path.abspath(__file__)))
