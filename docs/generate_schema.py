"""Writes the JSON Schema of suite files from the table that checks them.

python docs/generate_schema.py             writes src/benchwright/schemas/suite.schema.json
python docs/generate_schema.py --check     exit 1 if that file is out of date
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

SCHEMA = Path(__file__).parents[1] / "src" / "benchwright" / "schemas" / "suite.schema.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()

    from benchwright.sources.suite_keys import json_schema

    wanted = json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
    if options.check:
        if SCHEMA.exists() and SCHEMA.read_text(encoding="utf-8") == wanted:
            return 0
        print(f"{SCHEMA} is out of date; write it again with: python docs/generate_schema.py", file=sys.stderr)
        return 1
    SCHEMA.parent.mkdir(exist_ok=True)
    SCHEMA.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
