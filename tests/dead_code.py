"""Lists code that nothing but tests uses: `python tests/dead_code.py`; exit code 1 if there is any.

vulture finds names that are never used. Taken for used here: what an entry point or a table names ("package.module:Name"),
fields of structs (they are file formats) and attributes set on objects of other libraries.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import vulture

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"[a-z_]\w*(?:\.\w+)+:([A-Za-z_]\w*)")

# Called by someone else, each for the reason beside it.
CALLED_FROM_OUTSIDE = [
    "shell_complete",  # click
    "CollectedSteps",  # for tests of runtimes, also those of other packages
    "load_from_cache",  # mlagility's own name, for scripts that import it
    "load_from_file",
    "_repr_html_",  # Jupyter
    "__getattr__",  # of packages, by Python
    *(
        "list_commands",
        "get_command",
        "format_commands",
        "format_options",
        "get_help_option",
        "shell_complete",
    ),  # click
    *("ignore_aliases", "ascend_resolver", "descend_resolver", "current_index"),  # yaml
    *("_should_skip_dynamo", "forward", "transform_for_annotation"),  # torch
    *("report_batch", "ignore_loading"),  # arguments that voir has
    *("revision", "down_revision"),  # alembic
    *("http_error_301", "http_error_303", "http_error_307", "http_error_308", "http_open", "https_open"),  # urllib
]


def fields(path: Path) -> set[int]:
    """The lines of annotated names in classes."""
    classes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
    return {step.lineno for each in classes for step in each.body if isinstance(step, ast.AnnAssign)}


def main() -> int:
    sources = [*(ROOT / "src").rglob("*.py"), ROOT / "pyproject.toml"]
    named = {name for path in sources for name in NAMED.findall(path.read_text(encoding="utf-8"))}
    finder = vulture.Vulture(
        ignore_names=[*CALLED_FROM_OUTSIDE, *named], ignore_decorators=["@*.command*", "@*.group*"]
    )
    finder.scavenge([ROOT / name for name in ("src", "docs", "performance", "benchmarks", "plugins")])
    found = [
        item
        for item in finder.get_unused_code(min_confidence=60)
        if item.filename.is_relative_to(ROOT / "src")
        and item.typ != "attribute"
        and "compat_modules" not in item.filename.parts  # what other people's files call
        if not (item.typ == "variable" and item.first_lineno in fields(item.filename))
    ]
    for item in found:
        print(f"{item.filename.relative_to(ROOT)}:{item.first_lineno}: {item.typ} {item.name!r} is used by nothing")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
