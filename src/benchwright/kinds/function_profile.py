"""A Python command under Python's own profiler: each launch writes where its functions spent their time."""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence

from msgspec.structs import replace

from benchwright.core.benchmark import Benchmark, Command

ENDING = ".prof"
_PYTHON = re.compile(r"python[0-9.]*")
_FLAGS = ("-u", "-B", "-O", "-OO", "-s", "-S", "-E")  # without a value
# Runs in the measured interpreter, whatever its version. The profile is written however the program ends.
_CODE = f"""
import cProfile, os, runpy, sys
folder, module = sys.argv[1], sys.argv[2] == "-m"
sys.argv[:] = sys.argv[3 if module else 2:]
sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.abspath(sys.argv[0]))
profile = cProfile.Profile()
profile.enable()
try:
    if module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    profile.disable()
    profile.dump_stats(os.path.join(folder, "%d{ENDING}" % os.getpid()))
"""


def with_functions_profiled(benchmark: Benchmark, argv: Sequence[str], cwd: str, folder: str) -> Benchmark | None:
    """`argv`, if it is `python SCRIPT …` or `python -m MODULE …`, writing a file into `folder` for each launch; else None."""
    if not argv or not _PYTHON.fullmatch(os.path.basename(argv[0])):
        return None
    start = 1
    while start < len(argv) and argv[start] in _FLAGS:
        start += 1
    rest = argv[start:]
    is_module = len(rest) > 1 and rest[0] == "-m"
    if not rest or (rest[0].startswith("-") and not is_module):
        return None
    words = (*argv[:start], "-c", _CODE, folder, *rest)
    return replace(benchmark, workload=Command(argv=words, cwd=cwd), kind="command", metrics=(), loop=None)
