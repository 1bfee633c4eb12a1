"""What declaring one small noun costs at start-up: msgspec, pydantic, dataclasses.

    python -m venv /tmp/peers && /tmp/peers/bin/pip install msgspec pydantic
    python performance/import_cost.py --python /tmp/peers/bin/python

CPU time (user and system) of whole interpreters, started in turn; the median of each, and what it adds to a
bare interpreter. A library that the environment lacks is left out and said so.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys

FIELDS = "name: str; count: int; labels: dict[str, str]"
CASES = {
    "bare interpreter": "pass",
    "dataclasses": f"import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Noun: {FIELDS}",
    "msgspec": f"import msgspec\nclass Noun(msgspec.Struct, frozen=True): {FIELDS}",
    "pydantic": f"import pydantic\nclass Noun(pydantic.BaseModel, frozen=True): {FIELDS}",
}


def cpu_ms(python: str, code: str) -> float | None:
    """CPU milliseconds of one interpreter that runs `code`; None if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([python, "-I", "-c", code], stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        return None
    return 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter whose environment has the libraries")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--quick", action="store_true", help="7 rounds")
    options = parser.parse_args()
    rounds = 7 if options.quick else options.rounds

    samples: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(rounds + 1):  # the first round compiles bytecode and warms the file cache
        for name, code in CASES.items():
            spent = cpu_ms(options.python, code)
            if spent is not None:
                samples[name].append(spent)
    print(f"{os.path.basename(options.python)}, {rounds} rounds, median CPU ms")
    bare = statistics.median(samples["bare interpreter"][1:])
    for name, values in samples.items():
        if not values:
            print(f"  {name:<18} not installed there")
            continue
        median = statistics.median(values[1:])
        print(f"  {name:<18} {median:6.1f}   + {median - bare:.1f}")


if __name__ == "__main__":
    main()
