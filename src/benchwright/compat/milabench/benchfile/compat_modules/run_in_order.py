"""Runs commands one after the other, up to the first that fails: the steps of a benchfile's SequenceCommand.

    python run_in_order.py FOLDER COUNT WORD_1 … WORD_COUNT  FOLDER COUNT WORDS…

Exit code: that of the step that failed (128 + its signal), 127 if it could not be started.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence


def steps(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each step's folder and command."""
    rest = list(words)
    while rest:
        folder, count = rest[0], int(rest[1])
        yield folder, rest[2 : 2 + count]
        rest = rest[2 + count :]


def main() -> int:
    for folder, argv in steps(sys.argv[1:]):
        try:
            code = subprocess.call(argv, cwd=folder)
        except OSError as error:
            sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
            return 127
        if code != 0:
            return code if code > 0 else 128 - code
    return 0


if __name__ == "__main__":
    sys.exit(main())
