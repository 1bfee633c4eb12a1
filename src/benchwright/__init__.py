"""Benchwright: the truth about machine-learning performance.

import benchwright as bw

run = bw.run(["python", "train.py"], metrics=[r"speed=Speed: ([\\d.]+) samples/sec"], repeat=6)
print(run.result("train.py").status, run.folder)
"""

from __future__ import annotations

from benchwright.version import __version__

TYPE_CHECKING = False  # typing is not imported: the agent on the node starts here too
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Unpack

    from benchwright.api import RunOptions
    from benchwright.core.run import Run

__all__ = ["__version__", "run"]


def run(target: str | os.PathLike[str] | Sequence[str], **options: Unpack[RunOptions]) -> Run:
    """Measures `target`, keeps the run as `benchwright run` does, and returns it.

    `target` is a command as a list of words, or the path of a suite, task file, script or model file. The keywords are
    the options of the command line with `_` for `-`, a plural for what is repeatable (`metrics`, `runtimes`), and a
    mapping for pairs (`env`, `labels`, `params`): see `benchwright.api.RunOptions`. Values are written as on the
    command line (`timeout="10m"`), or as numbers.

    A benchmark that fails is part of the result. Wrong input raises `benchwright.core.errors.InvalidInput`; an option
    that does not apply to the target is wrong input. What went wrong besides is a RuntimeWarning.
    """
    from benchwright.api import run as measured

    return measured(target, **options)
