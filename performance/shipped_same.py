"""The same benchmark twice, interleaved: nothing must be found where nothing differs.

Three benchmarks of `quick`, eight launches a side, compared as pairs with a margin of 10 %.

    python performance/shipped_same.py [--quick] [--seconds S] [--size small] [--cores 0] [--whole-launches]

The two launches of a pair take turns of half a second (`--turns`), each measured for 10 s of its own: on machines shared with
others the speed of a core wanders within seconds. They use the same core, since one core may be slower than another for minutes. `--whole-launches` shows what that buys: one launch after the other.

Bar: every verdict is `same` or `inconclusive`, at most one of them inconclusive.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = {"graph": "graph", "embedding": "embedding", "vision": "vision"}
ENTRY = """
{name}-{side}:
  inherits: _defaults
  definition: {definition}
  plan: {{method: njobs, n: 1}}
  stop: {{seconds: {seconds}}}
  warmup: {{seconds: 2}}
  env: {{OMP_WAIT_POLICY: PASSIVE, OMP_NUM_THREADS: "1"}}
  argv: {{--size: {size}}}
"""


def bw(*words: str, base: Path) -> str:
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    command = [sys.executable, "-m", "benchwright", *words, "--base", str(base)]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="six launches a side, 4 s each: whether the script works")
    parser.add_argument("--seconds", type=float, help="how long one launch is measured (default: 10)")
    parser.add_argument("--size", default="tiny", help="of the benchmarks: tiny, small or full (default: tiny)")
    parser.add_argument("--cores", default="0", help="those that both sides use, in turns (default: 0)")
    parser.add_argument("--whole-launches", action="store_true", help="one after the other instead of taking turns")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    launches = "6" if options.quick else "8"
    seconds = options.seconds or (4.0 if options.quick else 10.0)
    how = ["--interleave"] if options.whole_launches else ["--turns", "500ms"]
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, definition in BENCHMARKS.items():
            suite = root / f"{name}.yaml"
            place = ROOT / "benchmarks" / definition
            suite.write_text(
                "".join(
                    ENTRY.format(name=name, side=side, definition=place, seconds=seconds, size=options.size)
                    for side in "ab"
                )
            )
            bw("prepare", str(suite), "--use-current-env", base=root)
            run = [
                "run",
                str(suite),
                "--use-current-env",
                "--repeat",
                launches,
                "--cores",
                options.cores,
                "--json",
                "-q",
                *how,
            ]
            body = json.loads(bw(*run, base=root))
            words = ["compare", body["id"], "--between", f"{name}-a", f"{name}-b", "--margin", "10%", "--json"]
            compared = json.loads(bw(*words, base=root))
            rate = next(e for e in effects(compared) if e["metric"] == "rate")
            low, high = rate["interval"]["low"], rate["interval"]["high"]
            verdicts.append(rate["verdict"])
            print(f"{name}: ratio {rate['ratio']:.3f} [{low:.3f}, {high:.3f}], {rate['verdict']}")
    ok = set(verdicts) <= {"same", "inconclusive"} and verdicts.count("inconclusive") <= 1
    print("the bar is met" if ok else "THE BAR WAS MISSED")
    return 0 if ok else 1


def effects(compared: object) -> list[dict[str, object]]:
    """Every effect in the JSON of `compare`, however it is nested."""
    if isinstance(compared, dict):
        if "verdict" in compared and "metric" in compared:
            return [compared]
        return [e for value in compared.values() for e in effects(value)]
    return [e for value in compared for e in effects(value)] if isinstance(compared, list) else []


if __name__ == "__main__":
    sys.exit(main())
