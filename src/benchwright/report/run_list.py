"""A list of runs for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from benchwright.core.numbers.quantities import format_bytes
from benchwright.report.text.one_line import clip, one_line


class RunLine(Protocol):
    """What a list shows of a run."""

    @property
    def id(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def benchmarks(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def annotation(self) -> str | None: ...
    @property
    def size_bytes(self) -> int: ...


def run_list(rows: Sequence[RunLine], *, width: int = 80) -> str:
    """One line a run, or more if its id is long: an id is never cut. Its annotation stands below it, and its uid if another
    run is called the same."""
    if not rows:
        return "no runs\n"
    called = Counter(row.id for row in rows)
    broadest = max(20, width - 42)
    names = max((len(row.id) for row in rows if len(row.id) <= broadest), default=20)
    lines = [f"{'run':<{names}}  {'status':<12} {'benchmarks':>10}  {'size':>9}  host"]
    for row in rows:
        name = one_line(row.id)
        if len(name) > names:
            lines += [name[at : at + width] for at in range(0, len(name), width)]
            name = ""
        count = f"{row.benchmarks}" if not row.failed else f"{row.failed}/{row.benchmarks} ✗"
        line = f"{name:<{names}}  {row.status:<12} {count:>10}  {format_bytes(row.size_bytes):>9}  {row.host}"
        lines.append(clip(line, width))
        if called[row.id] > 1:
            lines.append(clip(f"  {row.uid}", width))
        if row.annotation:
            lines.append(clip(f"  {row.annotation}", width))
    return "\n".join(lines) + "\n"
