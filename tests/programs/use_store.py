"""Uses a store as a process of its own; with --die-at it kills itself (SIGKILL) before that statement.

use_store.py URL ingest PREFIX COUNT SAMPLES [--die-at N]
use_store.py URL ingest_all PREFIX COUNT SAMPLES [--die-at N]
use_store.py URL migrate SCRIPTS [--die-at N]
use_store.py --serve: each line of stdin is a list of such lists of arguments, in JSON. Each gets a process of its own, all at
once; their exit codes are told on stdout. What is imported is imported once.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from sqlalchemy import Engine, event
from stored_runs import big_run

from benchwright.store.base import StoreEntry
from benchwright.store.connection import writing
from benchwright.store.migrations import upgrade
from benchwright.store.sql_store import SqlStore, open_store


def die_at(engine: Engine, number: int) -> None:
    seen = 0

    def count(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(engine, "before_cursor_execute", count)


def ingest(store: SqlStore, prefix: str, count: str, samples: str) -> None:
    for number in range(int(count)):
        store.ingest(big_run(f"{prefix}.{number}", samples=int(samples)), digest=f"{prefix}")


def ingest_all(store: SqlStore, prefix: str, count: str, samples: str) -> None:
    runs = [big_run(f"{prefix}.{number}", samples=int(samples)) for number in range(int(count))]
    store.ingest_all([StoreEntry(run=run, digest=prefix) for run in runs], replace=True)


def migrate(store: SqlStore, scripts: str) -> None:
    with writing(store._engine, store.where) as connection:
        upgrade(connection, scripts=Path(scripts))


def serve() -> None:
    for line in sys.stdin:
        pids = [forked(arguments) for arguments in json.loads(line)]
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]), flush=True)


def forked(arguments: list[str]) -> int:
    pid = os.fork()
    if pid:
        return pid
    os.dup2(2, 1)
    sys.argv[1:] = arguments
    code = 1
    try:
        main()
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("action", choices=["ingest", "ingest_all", "migrate"])
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--die-at", type=int)
    parser.add_argument("--die-anywhere", type=int, help="also while the store is made: the statements of any engine")
    options = parser.parse_args()
    if options.die_anywhere:
        die_at(Engine, options.die_anywhere)  # type: ignore[arg-type]
    store = open_store(options.url)
    if options.die_at:
        die_at(store._engine, options.die_at)
    {"ingest": ingest, "ingest_all": ingest_all, "migrate": migrate}[options.action](store, *options.arguments)
    store.close()
    print("done")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
