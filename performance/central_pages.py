"""CPU time and queries of the server's pages, in a store of 20,000 runs and a million summaries.

Twenty machines, each with one real run of 25 benchmarks; the runs before it are copies of its rows, one every six hours, with noise.
Then the history of one series of as many points, and two runs of many benchmarks side by side. `--quick`: 2,000 runs.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

from sqlalchemy import event

from benchwright.core.aggregates import aggregate
from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.machine import Machine
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Status
from benchwright.server.change_book import ChangeBook
from benchwright.server.pages.frame import Archive, Asked
from benchwright.server.pages.views import ITEM_VIEWS, VIEWS
from benchwright.server.store_server import rarely_collected
from benchwright.store.base import RunFilter, SummaryFilter
from benchwright.store.sql_store import SqlStore, open_store

HOSTS, BENCHMARKS = 20, 25
METRICS = (("rate", "items/s", Direction.HIGHER, "log"), ("memory.peak_rss", "B", Direction.LOWER, "process"))
EVERY_S = 6 * 3600
CPU_MS, P99_MS, MOST_QUERIES = 60, 150, 8
HISTORY_MS, HISTORY_BYTES = 100, 100_000
LARGE, LARGE_MS = 5_000, 1_000


def real_run(host: int, draw: random.Random, number: int, benchmarks: int = BENCHMARKS) -> Run:
    def result(number: int) -> Result:
        launches = [
            Launch(
                job=f"b{number}.R{n}",
                status=Status.OK,
                position=n,
                measurements=tuple(
                    Measurement(
                        metric=metric,
                        unit=unit,
                        direction=direction,
                        source=source,
                        labels={},
                        samples=tuple((number + 1) * 100 * draw.gauss(1, 0.01) for _ in range(7)),
                    )
                    for metric, unit, direction, source in METRICS
                ),
            )
            for n in range(6)
        ]
        words = Command(argv=("python", f"b{number}.py"), cwd="/code")
        return Result(
            benchmark=Benchmark(name=f"benchmark {number:02d}", workload=words, source="made"),
            status=Status.OK,
            launches=tuple(launches),
        )

    machine = Machine(
        hostname=f"host{host:02d}",
        system="Linux",
        kernel="6",
        architecture="x86_64",
        cpu=f"CPU {host}",
        cores=8,
        cores_total=8,
        memory_bytes=1 << 34,
        python="3.11",
    )
    started = datetime.now(UTC) - timedelta(hours=number)
    return Run(
        id=f"nightly.{host:02d}.{number}",
        name="nightly",
        started=started.isoformat(),
        folder="",
        status=Status.OK,
        machine=machine,
        results=tuple(map(result, range(benchmarks))),
    )


def fill(path: Path, runs: int, hosts: int = HOSTS, benchmarks: int = BENCHMARKS) -> None:
    with open_store(str(path), aggregate=aggregate) as store:
        draw = random.Random(1)
        for host in range(hosts):
            store.ingest(real_run(host, draw, 2, benchmarks), digest="1")
    copies = runs // hosts - 1
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous = OFF")
    columns = {
        table: [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        for table in ("runs", "results", "summaries")
    }
    base = database.execute("SELECT max(key) FROM runs").fetchone()[0]
    changed = {"key": f"t.key + {base} * n", "id": "t.id || '-' || n", "called": "t.called || '-' || n"}
    changed |= {"started_s": f"t.started_s - n * {EVERY_S}"}
    _copy(database, "runs", columns["runs"], changed, copies)
    changed = {"run": f"t.run + {base} * n"}
    failed = "CASE WHEN abs(random()) % 5000 = 0 THEN 'failed' ELSE t.status END"
    _copy(database, "results", columns["results"], changed | {"status": failed}, copies)
    noise = "(1 + (random() % 1000) / 100000.0)"
    changed |= {name: f"t.{name} * {noise}" for name in ("value", "low", "high")}
    changed |= {"started_s": f"t.started_s - n * {EVERY_S}"}
    kept = [name for name in columns["summaries"] if name != "key"]
    _copy(database, "summaries", kept, changed, copies)
    database.execute(
        "UPDATE runs SET failed = (SELECT count(*) FROM results WHERE run = runs.key AND status = 'failed')"
    )
    database.commit()
    database.close()
    with open_store(str(path), aggregate=aggregate) as store:  # a later one of each, to compare with
        for host in range(hosts):
            store.ingest(real_run(host, draw, 1, benchmarks), digest="1")


def _copy(database: sqlite3.Connection, table: str, columns: list[str], changed: dict[str, str], copies: int) -> None:
    values = ", ".join(changed.get(name, f"t.{name}") for name in columns)
    numbers = f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {copies})"
    order = "ORDER BY n DESC" if table != "results" else ""
    database.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) {numbers} SELECT {values} FROM {table} t, numbers {order}"
    )


def link(path: str, /, item: str = "", **parameters: object) -> str:
    return f"{path}{item}?{urlencode(parameters)}" if parameters else f"{path}{item}"


def pages(store: SqlStore) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Name, path, item, parameters."""
    rows = store.runs(RunFilter(), limit=2)
    series = store.series(SummaryFilter(headline=True))[0].id
    for path in VIEWS:
        yield path, path, "", {}
    yield "/ since long ago", "/", "", {"since": "2020-01-01"}
    yield "/benchmarks of a metric", "/benchmarks", "", {"metric": "memory.peak_rss"}
    yield "/runs, filtered", "/runs", "", {"machine": "host03", "text": "nightly", "from": "500"}
    yield "/runs of a benchmark", "/runs", "", {"benchmark": "benchmark 0*"}
    yield "/compare of two", "/compare", "", {"control": "nightly.00.2", "treatment": "nightly.00.1"}
    yield "/runs/ID", "/runs/", rows[0].uid, {}
    yield "/history/SERIES", "/history/", series, {}


def measure(store: SqlStore, book: ChangeBook, times: int) -> bool:
    asked: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if statement.lstrip().startswith(("SELECT", "WITH")):
            asked.append(statement)

    event.listen(store._engine, "before_cursor_execute", note)
    archive = Archive(store, book, "")
    good = True
    print(f"{'page':28} {'median':>9} {'worst':>9} {'queries':>8} {'kB':>6}")
    for name, path, item, parameters in pages(store):
        taken = []
        for _ in range(times + 1):
            asked.clear()
            question = Asked(link=link, path=path, parameters=parameters, csrf="x", origin="http://x")
            start = time.process_time()
            text = ITEM_VIEWS[path](archive, question, item) if item else VIEWS[path](archive, question)
            taken.append((time.process_time() - start) * 1e3)
        middle, worst = statistics.median(taken[1:]), max(taken[1:])  # the first one compiles the queries
        fits = middle <= CPU_MS and worst <= P99_MS and len(asked) <= MOST_QUERIES
        good &= fits
        print(
            f"{name:28} {middle:6.1f} ms {worst:6.1f} ms {len(asked):8} {len(text) / 1e3:6.1f}"
            + ("" if fits else "  over the bar")
        )
    return good


def measure_history(folder: Path, points: int, times: int) -> bool:
    """One series alone: its page reads every value, and draws the extremes of each part."""
    fill(folder / "history.db", points, hosts=1, benchmarks=1)
    with open_store(str(folder / "history.db"), aggregate=aggregate) as store:
        series = store.series(SummaryFilter(headline=True))[0].id
        archive, taken, text = Archive(store, ChangeBook(folder), ""), [], ""
        for _ in range(times + 1):
            start = time.process_time()
            text = ITEM_VIEWS["/history/"](archive, Asked(link=link, path="/history/"), series)
            taken.append((time.process_time() - start) * 1e3)
    middle = statistics.median(taken[1:])
    fits = middle <= HISTORY_MS and len(text) <= HISTORY_BYTES
    print(
        f"history of {points:,} points: {middle:.0f} ms, {len(text) / 1e3:.0f} kB" + ("" if fits else "  over the bar")
    )
    return fits


def measure_large(folder: Path, benchmarks: int) -> bool:
    with open_store(str(folder / "large.db"), aggregate=aggregate) as store:
        draw = random.Random(1)
        for number in (2, 1):
            store.ingest(real_run(0, draw, number, benchmarks), digest="1")
        archive, taken = Archive(store, ChangeBook(folder), ""), []
        for every in ({}, {"all": "1"}):
            sides = {"control": "nightly.00.2", "treatment": "nightly.00.1"}
            asked, each = Asked(link=link, path="/compare", parameters=sides | every), []
            for _ in range(4):
                start = time.process_time()
                VIEWS["/compare"](archive, asked)
                each.append((time.process_time() - start) * 1e3)
            taken.append(statistics.median(each[1:]))
    fits = taken[0] <= LARGE_MS
    words = f"{taken[0]:,.0f} ms; with all of their {len(METRICS)} metrics {taken[1]:,.0f} ms"
    print(f"comparison of {benchmarks:,} benchmarks: {words}" + ("" if fits else "  over the bar"))
    return fits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--times", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        rarely_collected()  # as the server does
        runs = 2_000 if options.quick else 20_000
        fill(Path(folder) / "store.db", runs)
        print(f"filled in {time.process_time() - start:.0f} s of CPU time")
        with open_store(str(Path(folder) / "store.db"), aggregate=aggregate) as store:
            book = ChangeBook(Path(folder))
            start = time.process_time()
            book.examine_run(store, "nightly.00.1")
            print(f"looking for changes after a run: {time.process_time() - start:.2f} s of CPU time")
            good = measure(store, book, options.times)
        good &= measure_history(Path(folder), runs, options.times)
        good &= measure_large(Path(folder), LARGE // 10 if options.quick else LARGE)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
