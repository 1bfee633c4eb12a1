"""Uses a store as a process of its own; with --die-at it kills itself (SIGKILL) before that statement.

use_store.py URL ingest PREFIX COUNT SAMPLES [--die-at N]
use_store.py URL migrate SCRIPTS [--die-at N]
use_store.py URL hold SECONDS
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from sqlalchemy import Engine, event
from stored_runs import big_run

from benchwright.stores.connecting import writing
from benchwright.stores.migrations import upgrade
from benchwright.stores.sql_store import SqlStore, open_store


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


def migrate(store: SqlStore, scripts: str) -> None:
    with writing(store._engine, store.where) as connection:
        upgrade(connection, scripts=Path(scripts))


def hold(store: SqlStore, seconds: str) -> None:
    with writing(store._engine, store.where):
        print("held", flush=True)
        time.sleep(float(seconds))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("action", choices=["ingest", "migrate", "hold"])
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--die-at", type=int)
    parser.add_argument("--die-anywhere", type=int, help="also while the store is made: the statements of any engine")
    options = parser.parse_args()
    if options.die_anywhere:
        die_at(Engine, options.die_anywhere)  # type: ignore[arg-type]
    store = open_store(options.url)
    if options.die_at:
        die_at(store._engine, options.die_at)
    {"ingest": ingest, "migrate": migrate, "hold": hold}[options.action](store, *options.arguments)
    store.close()
    print("done")


if __name__ == "__main__":
    main()
