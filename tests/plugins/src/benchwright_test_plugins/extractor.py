"""Values in tables that a program prints: `| loss | 0.12 |` for `--metric loss=table:loss`."""

from __future__ import annotations

import re

from benchwright.agent.extractors.base import Block, Hits
from benchwright.core.errors import InvalidInput


class TableExtractor:
    """The second cell of every row whose first cell is `row`."""

    def __init__(self, row: str) -> None:
        if not row.strip() or "|" in row:
            raise InvalidInput(f"'{row}' is not the name of a row", remedy="write table:NAME, the row's first cell")
        self.fragments = (row.strip(),)
        self._pattern = re.compile(rf"^\s*\|\s*{re.escape(row.strip())}\s*\|\s*([^|]*?)\s*\|")

    def scan(self, block: Block) -> Hits:
        hits = Hits()
        for line in block.single_lines():
            if match := self._pattern.match(line.text):
                hits.add(match[1], line.first_line)
        return hits
