"""A program that knows nothing of benchwright: it sorts numbers and prints how fast.

python sort_numbers.py --rounds 20
"""

from __future__ import annotations

import argparse
import random
import time


def main() -> None:
    parser = argparse.ArgumentParser(description="Sort random numbers and print how fast.")
    parser.add_argument("--count", type=int, default=100_000, help="numbers sorted in a round (default 100000)")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    random.seed(options.seed)
    for round_number in range(1, options.rounds + 1):
        numbers = [random.random() for _ in range(options.count)]
        begin = time.perf_counter()
        numbers.sort()
        speed = options.count / (time.perf_counter() - begin)
        print(f"round {round_number}  Speed: {speed:.1f} items/sec", flush=True)


if __name__ == "__main__":
    main()
