"""The command that measures both sides of a comparison in turn, instead of one after the other."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from benchwright.core.benchmark import Command
from benchwright.core.results.provenance import CodeRevision
from benchwright.core.run import Result

_LONGEST = 120  # a longer line is harder to read than to write
_DIGITS = 10  # of a commit


def alternating_command(pairs: Sequence[tuple[Result, Result]], control: Sequence[CodeRevision]) -> str:
    """One to paste, where one benchmark is compared and its command is short; else how it is written.

    A command that did not change measures other code, so that it is an A/B of commits. `control`: the revisions of its run.
    """
    commands = [result.benchmark.workload for pair in pairs for result in pair]
    known = [shlex.join(x.argv) for x in commands if isinstance(x, Command) and not x.shell]
    commit = next((r.commit[:_DIGITS] for r in control if not r.files and not r.packages and not r.modified), "COMMIT")
    if len(known) == len(commands) == 2:
        before, after = known
        same = f"bw ab --control {commit} -- {after}"
        line = same if before == after else shlex.join(["bw", "run", "--repeat", "10", "-c", before, "-c", after])
        if len(line) <= _LONGEST:
            return line
    return f"bw run --repeat 10 -c A -c B, or of commits: bw ab --control {commit}"
