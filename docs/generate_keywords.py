"""Writes the keywords of the Python API, with their types, from the table of options.

python docs/generate_keywords.py             writes src/benchwright/options/keywords.py
python docs/generate_keywords.py --check     exit 1 if it is out of date
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import get_args, get_type_hints

FILE = Path(__file__).parents[1] / "src" / "benchwright" / "options" / "keywords.py"
ONLY_PRINTED = ("show_output", "as_json", "dash", "quiet", "verbose")  # Python has its own way to show things
_HEAD = '''"""The keywords of `benchwright.run`: the options of `benchwright run`, as Python writes them.

Made by docs/generate_keywords.py from options/table.py: change that, and run it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict

Text = str | os.PathLike[str]
Texts = str | Sequence[str]  # one, or several
Pairs = Mapping[str, object] | str | Sequence[str]  # name → value, or values; or NAME=VALUE


class RunOptions(TypedDict, total=False):
    """Durations are seconds or texts such as 90s; sizes are texts such as 8GiB."""
'''
_FORMS = {"flag": "bool", "switch": "bool | None", "count": "int | None", "choice": "str | None"}
_FORMS |= {"list": "Texts", "words": "Texts", "pairs": "Pairs | None", "optional": "str | None"}
_FILES = ("DIR", "FILE", "FILE.py", "PATH")


def keywords_text() -> str:
    from benchwright.options.table import OPTIONS, Options

    hints = get_type_hints(Options)
    lines, section = [_HEAD], ""
    for name, option in OPTIONS.items():
        if name in ONLY_PRINTED:
            continue
        if option.section != section:
            section = option.section
            lines.append(f"\n    # {section}\n")
        kinds = get_args(hints[name]) or (hints[name],)
        written = _FORMS.get(option.form) or ("Text | None" if option.metavar in _FILES else "str | None")
        if option.form == "text" and (float in kinds or int in kinds):
            written = "str | float | None" if float in kinds else "str | int | None"
        elif option.form == "text" and option.parse is not None and written == "str | None":
            written = "str | int | Sequence[str | int] | None"
        lines.append(f"    {name}: {written}\n")
    return "".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        FILE.write_text(keywords_text(), encoding="utf-8")
    elif not FILE.is_file() or FILE.read_text(encoding="utf-8") != keywords_text():
        print(f"{FILE.name} is out of date: python docs/generate_keywords.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
