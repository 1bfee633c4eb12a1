"""Writes what is published about the keys of suites and specifications from the tables that check them.

python docs/generate_schema.py             writes the JSON Schemas, and the tables in docs/reference
python docs/generate_schema.py --check     exit 1 if one of them is out of date
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "src" / "benchwright" / "schemas"
SCHEMA, SPEC_SCHEMA = SCHEMAS / "suite.schema.json", SCHEMAS / "spec.schema.json"
PAGE, SPEC_PAGE = (ROOT / "docs" / "reference" / name for name in ("suites.md", "specifications.md"))
BEGIN, END = "<!-- keys: written by docs/generate_schema.py -->\n", "<!-- end of keys -->\n"


def schema_text() -> str:
    from benchwright.kinds.suite.read.keys import json_schema

    return _json(json_schema())


def spec_schema_text() -> str:
    from benchwright.kinds.spec.read.keys import json_schema

    return _json(json_schema())


def page_text(page: str) -> str:
    """`page` with the table of a suite's keys written anew."""
    from benchwright.kinds.suite.read.keys import entry_table

    return _between_marks(page, _table(entry_table().keys))


def spec_page_text(page: str) -> str:
    """`page` with the tables of a specification's keys written anew."""
    from benchwright.kinds.spec.read.keys import FILE, META, MODEL, TEST

    named = {"`model`": MODEL, "`tests`": TEST, "A file": FILE, "`meta`": META}
    return _between_marks(page, "\n\n".join(f"### {name}\n\n{_table(table.keys)}" for name, table in named.items()))


def _json(schema: dict[str, object]) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _table(keys: Mapping[str, Any]) -> str:
    rows = [f"| `{name}` | {key.type.says} | {key.meaning.replace('|', chr(92) + '|')} |" for name, key in keys.items()]
    return "\n".join(["| key | is | means |", "|---|---|---|", *rows])


def _between_marks(page: str, text: str) -> str:
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{text}\n\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    wanted = {
        SCHEMA: schema_text(),
        PAGE: page_text(PAGE.read_text(encoding="utf-8")),
        SPEC_SCHEMA: spec_schema_text(),
        SPEC_PAGE: spec_page_text(SPEC_PAGE.read_text(encoding="utf-8")),
    }
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
