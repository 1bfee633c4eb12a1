"""How exact the client for served models is, against a server that logs what it really did.

    python performance/serving_client.py [--seconds 60] [--quick] [--core-of-server 0] [--core-of-client 1]

Both share the machine's monotonic clock, so every stamp of the client can be compared with the moment the server sent it. Prints
errors of the time to the first token at 10, 100 and 1,000 requests a second, tokens, chunks for each second of the client's CPU
time, and mean waiting times of one queue (M/M/1, M/D/1) against Lindley's recursion over the same arrivals and services, and
against the formula.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MS = 1e6


def measured(
    options: argparse.Namespace, server: list[str], words: list[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The requests that were answered, each with what the server logged of it, and the client's own end."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        program = [sys.executable, str(ROOT / "tests/support/known_server.py"), "--log", str(log), *server]
        started = subprocess.Popen([*program, "--core", str(options.core_of_server)], stdout=subprocess.PIPE, text=True)
        assert started.stdout is not None
        try:
            url = started.stdout.readline().strip()
            command = ["taskset", "-c", str(options.core_of_client), sys.executable, "-m", "benchload", url]
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
            done = subprocess.run(
                [*command, "--model", "known", *words], env=environment, capture_output=True, text=True, check=True
            )
        finally:
            started.kill()
            started.wait()
        told = {int(line["id"]): line for line in map(json.loads, log.read_text().splitlines())}
    events = [json.loads(line) for line in done.stdout.splitlines()]
    rows = []
    for event in (e for e in events if e["event"] == "requests"):
        names = [name for name, column in event.items() if isinstance(column, list)]
        rows += [dict(zip(names, row, strict=True)) for row in zip(*(event[n] for n in names), strict=True)]
    answered = [row | {"server": told[row["number"]]} for row in rows if row["failure"] is None]
    return sorted(answered, key=lambda r: r["planned"]), events[-1]


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def latencies(options: argparse.Namespace) -> None:
    print("rate      requests   error of the first token: median   p99      max     sent late (p99)   tokens wrong")
    for rate in (10, 100, 1000):
        count = str(max(50, int(rate * options.seconds)))
        words = ["--load", str(rate), "--requests", count, "--workload", "random:in=16,out=4"]
        rows, _ = measured(options, ["--first", "0.02", "--gap", "0.002"], words)
        errors = [(r["first"] - r["server"]["stamps"][0]) / MS for r in rows]
        late = [(r["begun"] - r["planned"]) / MS for r in rows]
        wrong = sum(r["tokens_out"] != r["server"]["tokens"] or r["chunks"] != r["server"]["tokens"] for r in rows)
        figures = f"{quantile(errors, 0.5):.3f} ms {quantile(errors, 0.99):8.3f} {max(errors):8.3f}"
        print(f"{rate:5}/s {len(rows):10}   {'':28} {figures} {quantile(late, 0.99):12.3f} ms {wrong:8}")


def chunks(options: argparse.Namespace) -> None:
    words = ["--load", "users:16", "--seconds", str(options.seconds), "--workload", "random:in=8,out=400"]
    rows, end = measured(options, ["--first", "0.001", "--gap", "0"], words)
    count = sum(r["chunks"] for r in rows)
    span_s = (max(r["ended"] for r in rows) - rows[0]["begun"]) / 1e9
    used = fmean(end["cpu"])
    errors = [(r["first"] - r["server"]["stamps"][0]) / MS for r in rows]
    print(
        f"chunks: {count / span_s:,.0f}/s with {used * 100:.0f} % of a core, {count / span_s / used:,.0f} for each second of "
        f"CPU time; an arrival lay unread for {max(end['lag_ns']) / MS:.3f} ms (p99), first tokens {quantile(errors, 0.99):.3f} ms"
    )


def queues(options: argparse.Namespace) -> None:
    print("queue    load   requests   mean wait   by Lindley   by the formula")
    for name, service in (("M/M/1", "exp"), ("M/D/1", "const")):
        for load in (0.5, 0.8):
            mean_s = 0.05
            count = str(int(options.seconds * 2 * load / mean_s))
            words = ["--load", f"{load / mean_s:g}", "--requests", count, "--workload", "random:in=4,out=1"]
            rows, _ = measured(
                options, ["--slots", "1", "--service", f"{service}:{mean_s}", "--first", "0", "--gap", "0"], words
            )
            # How long a service really held the server: a sleep is longer than asked for, and then the end is sent.
            services = [(r["server"]["released"] - r["server"]["started"]) / 1e9 for r in rows]
            until_first = ((r["server"]["stamps"][0] - r["server"]["started"]) / 1e9 for r in rows)
            waits = [(r["first"] - r["planned"]) / 1e9 - s for r, s in zip(rows, until_first, strict=True)]
            wait, theory = 0.0, []
            for i, taken in enumerate(services):
                theory.append(wait)
                gap = (rows[i + 1]["planned"] - rows[i]["planned"]) / 1e9 if i + 1 < len(rows) else 0.0
                wait = max(0.0, wait + taken - gap)
            busy = fmean(services) * load / mean_s
            formula = busy * fmean(services) / (1 - busy) / (1 if service == "exp" else 2) if busy < 1 else float("inf")
            ratio = fmean(waits) / fmean(theory)
            figures = f"{fmean(waits) * 1000:8.2f} ms  {fmean(theory) * 1000:8.2f} ms ({ratio - 1:+.1%})  {formula * 1000:8.2f} ms"
            print(f"{name}   {load:.0%} {len(rows):10} {figures}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--quick", action="store_true", help="4 seconds of each")
    parser.add_argument("--core-of-server", type=int, default=0)
    parser.add_argument("--core-of-client", type=int, default=1)
    options = parser.parse_args()
    options.seconds = 4.0 if options.quick else options.seconds
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    latencies(options)
    chunks(options)
    queues(options)


if __name__ == "__main__":
    main()
