"""Variables that users of milabench have set."""

from __future__ import annotations


class MilabenchVariables:
    """Inside a benchmark's own process $MILABENCH_CONFIG holds JSON, not a path."""

    prefix = "MILABENCH_"
    names = frozenset(["BASE", "CONFIG", "SYSTEM", "DATA_DIR"])
