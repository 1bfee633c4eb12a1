"""`benchwright import` of run folders."""

from __future__ import annotations

from pathlib import Path

from benchwright.app.results.kept_runs import Results
from benchwright.cli.working import Working
from benchwright.core.errors import InvalidInput
from benchwright.runs.run_folder import RunFolder

_OURS = ("plan.json", "run.json")  # files that only a run folder of ours has


def is_run_folder(path: str) -> bool:
    """Whether `path` is the folder of a run that benchwright made."""
    return any((Path(path) / name).exists() for name in _OURS)


def add_run(name: str, results: Results, working: Working) -> bool:
    """Adds the run in the folder `name` to the store, and says so; False if it cannot be."""
    try:
        added = results.ingest(RunFolder(Path(name).absolute()))
    except InvalidInput as error:
        working.echo(f"benchwright: {error}", err=True)
        return False
    except OSError as error:
        working.echo(f"benchwright: {error.filename or name}: {error.strerror or error}", err=True)
        return False
    working.echo(f"{name}: {'ingested' if added else 'already there'}")
    return True
