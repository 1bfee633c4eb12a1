"""Arguments of a suite's entry, a map or a list, as words; placeholders stay in them."""

from __future__ import annotations

from typing import Any

from benchwright.kinds.suite.yaml.merge import APPEND, is_append


def argv_words(argv: Any) -> tuple[str, ...]:
    """The words. In a map: `true` gives the key alone, null and false nothing, a list is joined by commas; behind the key
    `--` stands a list of words that are taken as they are."""
    if argv is None:
        return ()
    if is_append(argv) and len(argv) == 1:  # there was no list to make longer
        argv = argv[APPEND]
    if isinstance(argv, list):
        return tuple(_word(item) for item in argv)
    words: list[str] = []
    for key, value in argv.items():
        if value is True:
            words.append(str(key))
        elif value is None or value is False:
            continue
        elif isinstance(value, list):
            words += map(_word, value) if key == "--" else (str(key), ",".join(map(_word, value)))
        else:
            words += (_word(value),) if key == "--" else (str(key), _word(value))
    return tuple(words)


def _word(value: Any) -> str:
    return "" if value is None else str(value)
