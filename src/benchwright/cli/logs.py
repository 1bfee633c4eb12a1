"""`benchwright logs`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click


@click.command(epilog="Example: benchwright logs last train.py --follow")
@click.argument("run", default="last")
@click.argument("bench", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as long as the program prints.")
@click.option("-n", "--tail", type=click.IntRange(0), help="Only the last lines.")
@click.option("--base", help="Where results are kept.")
def command(run: str, bench: str | None, follow: bool, tail: int | None, base: str | None) -> None:
    """Show what the programs of RUN printed: all of them, or those of one BENCH (or job, such as train.py.R0.D0)."""
    from benchwright.stores.base_folder import BaseFolder
    from benchwright.stores.logs import choose_logs, follow_log, read_log, tail_of
    from benchwright.stores.run_folder import find_run

    folder = find_run(BaseFolder.choose(base, os.environ).runs, run)
    logs = choose_logs(folder.path, bench)
    out = sys.stdout.buffer
    for log in logs:
        if len(logs) > 1:
            out.write(f"==> {log.job} <==\n".encode())
        if follow and log is logs[-1] and not log.compressed:
            blocks: Iterable[bytes] = follow_log(folder, log)
        else:
            blocks = read_log(log) if tail is None else tail_of(log, tail)
        for block in blocks:
            out.write(block)
            out.flush()
