"""`benchwright pin`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from benchwright import runner
from benchwright.cli.suites.options import (
    index_options,
    index_options_from,
    outcome_options,
    show_outcome,
    suite_options,
    suite_targets_of,
)
from benchwright.report.text.numbers import counted

if TYPE_CHECKING:
    from benchwright.kinds.suite.setup.pin import Pinned


@click.command(epilog="Example: benchwright pin suite.yaml --select torch --variant cuda")
@suite_options
@click.option(
    "--variant", metavar="V", help="cpu, cuda, rocm, xpu, hpu or any word.  [default: by the machine or system file]"
)
@click.option("--constraints", multiple=True, metavar="FILE", help="Additional constraints file. Repeatable.")
@click.option("--from-scratch", "--from_scratch", is_flag=True, help="Ignore existing pins.")
@index_options
@outcome_options
def command(quiet: bool, **values: Any) -> int:
    """Pin package versions: write requirements.V.txt, with hashes if known, for each requirements.in of SUITE.

    Benchmarks of an install group share an environment, so they get the same versions. Indexes given here are written to
    the files. Exit code: 0 pinned, 1 a group has no solution, 2 wrong suite.
    """
    from benchwright.kinds.suite.setup.pin import PinOptions, pin

    chosen = {name: values[name] for name in ("variant", "constraints", "from_scratch")}
    options = PinOptions(**chosen, where=index_options_from(values))
    with runner.terminal.open_progress(quiet=quiet) as progress:
        done = pin(suite_targets_of(values), runner.requests.options_of(values), options, progress)
    return show_outcome("groups", done, _text(done))


def _text(done: Sequence[Pinned]) -> str:
    lines = []
    for x in done:
        for file in x.files:
            about = "" if file.hashes else ", without hashes"
            word = "written" if file.changed else "unchanged"
            lines.append(f"{x.name}: {file.path}  {word}, {counted(len(file.packages), 'package')}{about}\n")
    return "".join(lines)
