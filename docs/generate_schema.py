"""Writes what is published about the keys of suites from the table that checks them.

python docs/generate_schema.py             writes the JSON Schema, and the table in docs/reference/suites.md
python docs/generate_schema.py --check     exit 1 if one of them is out of date
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "src" / "benchwright" / "schemas" / "suite.schema.json"
PAGE = ROOT / "docs" / "reference" / "suites.md"
BEGIN, END = "<!-- keys: written by docs/generate_schema.py -->\n", "<!-- end of keys -->\n"


def schema_text() -> str:
    from benchwright.kinds.suite.read.keys import json_schema

    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"


def page_text(page: str) -> str:
    """`page` with the table written anew."""
    from benchwright.kinds.suite.read.keys import ENTRY

    rows = [
        f"| `{name}` | {key.type.says} | {key.meaning.replace('|', chr(92) + '|')} |"
        for name, key in ENTRY.keys.items()
    ]
    table = "\n".join(["| key | is | means |", "|---|---|---|", *rows])
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{table}\n\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    wanted = {SCHEMA: schema_text(), PAGE: page_text(PAGE.read_text(encoding="utf-8"))}
    late = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if options.check:
        for path in late:
            print(f"{path} is out of date; write it again with: python docs/generate_schema.py", file=sys.stderr)
        return 1 if late else 0
    for path in late:
        path.write_text(wanted[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
