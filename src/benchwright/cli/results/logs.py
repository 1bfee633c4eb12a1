"""`benchwright logs`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

import click

from benchwright.cli.store_options import open_results, where_options
from benchwright.core.errors import InvalidInput
from benchwright.core.job import readable_job
from benchwright.plan.file_names import safe_name


@click.command(epilog="Example: benchwright logs last train.py --follow")
@click.argument("run", default="last")
@click.argument("bench", required=False)
@click.option("-f", "--follow", is_flag=True, help="Keep printing while the program runs.")
@click.option("-n", "--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines.")
@where_options
def command(run: str, bench: str | None, follow: bool, tail: int | None, base: str | None, store: str | None) -> None:
    """Show the output of RUN's programs, or of one BENCH (or job, such as train.py.R0.D0)."""
    from benchwright.runs.logs import choose_logs, follow_log, read_log, tail_of

    with open_results(base, store) as results:
        found = results.find(run)
        folder = found.folder or results.elsewhere(found.uid)
        if folder is None:
            _show_stored(found.id, results.existing_store.logs(found.uid), bench, tail)
            return
    try:
        logs = choose_logs(folder.path, bench)
    except InvalidInput:
        # Files are called after their benchmark, with what is unsafe in a file name escaped.
        if bench is None or safe_name(bench) == bench:
            raise
        logs = choose_logs(folder.path, safe_name(bench))
    out = sys.stdout.buffer
    ended = True  # whether the last line is
    for log in logs:
        if len(logs) > 1:
            out.write(f"{'' if ended else chr(10)}==> {readable_job(log.job)} <==\n".encode())
            ended = True
        if follow and log is logs[-1] and not log.compressed:
            blocks: Iterable[bytes] = follow_log(folder, log)
        else:
            blocks = read_log(log) if tail is None else tail_of(log, tail)
        for block in blocks:
            out.write(block)
            out.flush()
            ended = block.endswith(b"\n")


def _show_stored(run: str, logs: Mapping[str, list[str]], bench: str | None, tail: int | None) -> None:
    """Log lines in the store, of a run whose folder is elsewhere; InvalidInput if there are none."""
    names = () if bench is None else (bench, safe_name(bench))
    chosen = {
        job: lines
        for job, lines in logs.items()
        if not names or job in names or job.startswith(tuple(f"{name}." for name in names))
    }
    if not chosen:
        raise InvalidInput(
            f"{run} has no logs here",
            remedy="it was imported, or measured elsewhere: look there. The store has the last lines of failed launches only",
        )
    for job, lines in chosen.items():
        click.echo(f"==> {readable_job(job)}, its last lines <==")
        for line in lines[max(0, len(lines) - tail) :] if tail is not None else lines:
            click.echo(line)
