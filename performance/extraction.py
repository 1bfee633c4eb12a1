"""How fast metrics are read out of a log, beside what `re` does with the same bytes.

    python performance/extraction.py [--size 32MB] [--rounds 5]
    python performance/extraction.py --size 2GB --memory

Speed: four logs (the metric in one line of 1000, in one of 1000 among progress bars and other alphabets, in every
line, in every line twice), each read from a temporary file in blocks of 1 MiB. CPU time; rounds are interleaved, ratios are
medians over rounds of the ratio within a round.
`re by line` is what the result must equal. `re by block` is the engine's own scan of each block that keeps the values,
`float(match[1])` of `finditer`; it knows no line numbers. `re by block, kept nothing` only steps over the matches.

Memory: feeds a log that is made on the fly and prints the peak resident memory as it goes.

Bars: sparse at least 200 MB/s per pattern; dense at least 0.8 of `re by block`; flat memory; result equal.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from operator import truediv
from pathlib import Path
from statistics import median

from benchwright.agent.extractors.scanner import LogScanner
from benchwright.core.metric import KEY_VALUE, MetricSpec

BLOCK_BYTES = 1 << 20
PATTERN = r"Speed: (\d+\.\d+|\d+) samples/sec"
OTHER_LINE = "INFO:root:Epoch[3] worker {i} fetched shard {j} of the training set from the cache in {k} ms, queue {j}\n"
SPEED_LINE = "INFO:root:Epoch[3] Batch [{i}]\tSpeed: {speed} samples/sec\taccuracy=0.{k}\tcross-entropy=2.{j}\n"
BAR_LINE = "epoch 3:  17%|█▋        | {i}/5000 [00:{k}<01:{j}, 1{k}.2it/s, näher]\r"
SIZE_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}


def lines(kind: str) -> Iterator[str]:
    """Endless lines of a log of one kind."""
    i = 0
    while True:
        i += 1
        fill = {"i": i, "j": 100 + i * 7 % 900, "k": 10 + i * 3 % 90, "speed": 900 + i * 37 % 1000 / 8}
        if kind.startswith("dense") or i % 1000 == 0:
            line = SPEED_LINE.format(**fill)
            yield line[:-1] + line if kind == "dense, two a line" else line
        else:
            yield (BAR_LINE if kind == "sparse, bars" and i % 3 == 0 else OTHER_LINE).format(**fill)


def write_log(path: Path, kind: str, size_bytes: int) -> None:
    source = lines(kind)
    part = "".join(next(source) for _ in range(20_000)).encode()
    with path.open("wb") as file:
        for _ in range(max(size_bytes // len(part), 1)):
            file.write(part)


def blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block


def by_scanner(path: Path, metrics: list[MetricSpec]) -> list[float]:
    scanner = LogScanner(metrics)
    values: list[float] = []
    for block in blocks(path):
        for found in scanner.feed(block):
            values += found.values
    for found in scanner.close():
        values += found.values
    return values


def by_line(path: Path, pattern: str) -> list[float]:
    search = re.compile(pattern).finditer
    values: list[float] = []
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            values += [float(match[1]) for match in search(line)]
    return values


def by_block(path: Path, pattern: str) -> list[float]:
    search = re.compile(pattern).finditer
    return [float(match[1]) for block in blocks(path) for match in search(block.decode("utf-8", "replace"))]


def by_block_keeping_nothing(path: Path, pattern: str) -> None:
    search = re.compile(pattern).finditer
    for block in blocks(path):
        for _ in search(block.decode("utf-8", "replace")):
            pass


def rates(work: dict[str, Callable[[], object]], size_bytes: int, rounds: int) -> dict[str, list[float]]:
    """MB/s of CPU time, one of each in every round, so that a slow spell of the machine meets all of them."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, call in work.items():
            start = time.process_time()
            call()
            taken[name].append(size_bytes / (time.process_time() - start) / 1e6)
    return taken


def measure_speed(size_bytes: int, rounds: int, folder: Path) -> bool:
    """Prints the tables; True if the bars are met."""
    path = folder / "log"
    metrics = [MetricSpec(name="speed", pattern=PATTERN)]
    work: dict[str, Callable[[], object]] = {
        "benchwright": lambda: by_scanner(path, metrics),
        "re by line": lambda: by_line(path, PATTERN),
        "re by block": lambda: by_block(path, PATTERN),
        "re by block, kept nothing": lambda: by_block_keeping_nothing(path, PATTERN),
    }
    met = True
    for kind in ("sparse", "sparse, bars", "dense", "dense, two a line"):
        write_log(path, kind, size_bytes)
        found = rates(work, path.stat().st_size, rounds)
        ratios = {name: median(map(truediv, found["benchwright"], found[name])) for name in work}
        equal = by_scanner(path, metrics) == by_line(path, PATTERN)
        print(
            f"\n{kind} ({path.stat().st_size / 1e6:.0f} MB); result equal to line by line: {'yes' if equal else 'NO'}"
        )
        for name in work:
            print(f"  {name:26}{median(found[name]):8.0f} MB/s   benchwright / this: {ratios[name]:6.2f}")
        dense = kind.startswith("dense")
        met &= equal and (ratios["re by block"] >= 0.8 if dense else median(found["benchwright"]) >= 200)
    print_other_kinds(size_bytes, rounds, folder)
    return met


def print_other_kinds(size_bytes: int, rounds: int, folder: Path) -> None:
    path = folder / "log"
    write_log(path, "sparse", size_bytes)
    four = [MetricSpec(name=f"m{i}", pattern=f"Time{i} cost=([0-9.]+)") for i in range(4)]
    key = [MetricSpec(name="m", pattern="accuracy", kind=KEY_VALUE)]
    no_text = [MetricSpec(name="m", pattern=r"(\d+\.\d+) \w+")]
    inner = [MetricSpec(name="m", pattern=r"(?i)(\d+\.\d+) SAMPLES/sec")]
    work: dict[str, Callable[[], object]] = {
        "one that never matches": lambda: by_scanner(path, four[:1]),
        "four that never match": lambda: by_scanner(path, four),
        "key_value": lambda: by_scanner(path, key),
        "(?i), text at the end": lambda: by_scanner(path, inner),
        "hardly any literal text": lambda: by_scanner(path, no_text),
    }
    print("\nsparse, other kinds")
    for name, found in rates(work, path.stat().st_size, rounds).items():
        print(f"  {name:26}{median(found):8.0f} MB/s")


def measure_memory(size_bytes: int) -> bool:
    """Feeds a log of that size, a tenth of it one line without an end; True if the peak stays flat."""
    source = lines("dense")
    part = "".join(next(source) for _ in range(8_000)).encode()
    scanner = LogScanner(
        [MetricSpec(name="speed", pattern=PATTERN), MetricSpec(name="never", pattern="No such (text)")]
    )
    fed, matches = 0, 0
    marks: list[float] = []
    start = time.process_time()
    while fed < size_bytes:
        block = b"x" * len(part) if 0.4 < fed / size_bytes < 0.5 else part
        matches += sum(len(found.values) for found in scanner.feed(block))
        fed += len(block)
        if fed * 10 // size_bytes > len(marks):
            marks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
            print(f"  {fed / 1e6:8.0f} MB fed   peak memory {marks[-1]:7.1f} MiB   {matches} matches", flush=True)
    scanner.close()
    print(f"  {fed / 1e6 / (time.process_time() - start):.0f} MB/s of CPU time, two patterns")
    return marks[-1] - marks[0] < 16


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", default="32MB", help="of each log: 500KB, 32MB, 2GB")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--memory", action="store_true", help="check that memory stays flat instead")
    options.add_argument("--quick", action="store_true", help="4 MB, 3 rounds")
    given = options.parse_args()
    if given.quick:
        given.size, given.rounds = "4MB", 3
    size_bytes = int(float(given.size[:-2]) * SIZE_UNITS[given.size[-2:].upper()])
    if given.memory:
        met = measure_memory(size_bytes)
    else:
        with tempfile.TemporaryDirectory() as folder:
            met = measure_speed(size_bytes, given.rounds, Path(folder))
    print(f"\nbars {'met' if met else 'NOT met'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
