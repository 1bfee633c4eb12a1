"""`key=1.5`, `key: 1.5`, `"key": 1.5`."""

from __future__ import annotations

import re

from benchwright.agent.extractors.base import Block, Hits
from benchwright.agent.extractors.regex import RegexExtractor
from benchwright.core.errors import InvalidInput
from benchwright.core.pattern import ANY_NUMBER

# Characters that belong to the key if they precede it: `loss` is not found in `val_loss`, `val/loss`, `val.loss`.
_PART_OF_KEY = r"[\w./-]"


class KeyValueExtractor:
    """Every number that follows the key and `=` or `:`, with or without spaces and quotes around."""

    def __init__(self, key: str) -> None:
        if not key.strip() or "\n" in key or "\r" in key:
            raise InvalidInput("the key is empty or not on one line", remedy="name the key as it stands in the log")
        name = re.escape(key.strip())
        # The key comes first and what precedes it is checked afterwards, so that the engine can search for the key.
        pattern = rf"{name}(?<!{_PART_OF_KEY}{name})[\"']?[ \t]*[=:][ \t]*[\"']?({ANY_NUMBER})"
        self._regex = RegexExtractor(pattern, begins_whole=True)
        self.fragments: tuple[str, ...] = (key.strip(),)

    def scan(self, block: Block) -> Hits:
        return self._regex.scan(block)
