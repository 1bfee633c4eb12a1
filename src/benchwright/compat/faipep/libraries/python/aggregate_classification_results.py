#!/usr/bin/env python3
"""The share of correct images over all batches: adds up the files that classification_compare.py wrote for each.

Reads `<dir>/<prefix>_<n>.txt` for n from 0 to limit − 1 and prints the totals. A batch whose file is missing is an error:
a share of some of the images would pass for that of all.

Standard library only: it runs with any Python.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from typing import Any, Dict, List

TOTAL = re.compile(r"(number|percent)_of_top\d+_corrects")


def read_batches(folder: str, prefix: str, limit: int) -> List[Dict[str, Any]]:
    found = []
    for number in range(limit):
        path = os.path.join(folder, f"{prefix}_{number}.txt")
        try:
            with open(path, encoding="utf-8") as file:
                batch = json.load(file)
        except OSError as error:
            raise SystemExit(f"{path}: {error.strerror}; {number} of {limit} batches are there") from None
        except ValueError as error:
            raise SystemExit(f"{path}: is not JSON: {error}") from None
        if not isinstance(batch, dict) or not all(is_record(record) for record in batch.values()):
            raise SystemExit(f"{path}: is not a file of classification_compare.py")
        found.append(batch)
    return found


def is_record(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("metric"), str) and isinstance(record.get("values"), list)


def totals(batches: List[Dict[str, Any]]) -> Dict[str, Any]:
    """One record for each that the batches have, with the values of all."""
    together: Dict[str, Any] = {}
    for batch in batches:
        for name, record in batch.items():
            together.setdefault(name, dict(record, values=[]))["values"].extend(record["values"])
    for record in together.values():
        values = record["values"]
        kind = TOTAL.fullmatch(record["metric"])
        if kind is None or not values:
            raise SystemExit(f"{record['metric']}: is not a count of correct images")
        figure = sum(values) if kind[1] == "number" else sum(values) * 100.0 / len(values)
        summary = {"num_runs": len(values), "mean": figure, "stdev": 0, "MAD": 0}
        summary.update(dict.fromkeys(("p0", "p10", "p50", "p90", "p100"), figure))
        record.update(metric=f"total_{record['metric']}", summary=summary)
    return together


def main() -> None:
    parser = argparse.ArgumentParser(description="Add up the correct images of all batches.")
    parser.add_argument("--dir", required=True, help="folder of the batches' files")
    parser.add_argument("--prefix", required=True, help="their names begin with this, then _0.txt, _1.txt…")
    parser.add_argument("--limit", required=True, type=int, help="how many batches there are")
    parser.add_argument("--metric-keyword", default="", help="identifier to print before each record")
    parser.add_argument("--result-file", help="also write the totals to this file")
    args = parser.parse_args()
    if args.limit < 1:
        parser.error("--limit must be at least 1")
    found = totals(read_batches(args.dir, args.prefix, args.limit))
    for record in found.values():
        print(f"{args.metric_keyword.strip()} {json.dumps(record, sort_keys=True)}".strip())
    if args.result_file:
        aside = f"{args.result_file}.aside"
        with open(aside, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2, sort_keys=True)
        os.replace(aside, args.result_file)


if __name__ == "__main__":
    main()
