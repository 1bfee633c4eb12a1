"""Facts read from a model script's source: labels in its first line, its docstring, what it imports and calls."""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from pathlib import Path

import msgspec

from benchmodels.compat import PACKAGES
from benchmodels.notebooks import is_notebook, read_notebook
from benchwright.kinds.models.training_script import looks_like_training

_LABELS = re.compile(r"#\s*labels:\s*(.*)")
_LABEL = re.compile(r"[^:,\s]+::[^,\s]+(,[^,\s]+)*")
_LONGEST_NOTE = 2000


class ScriptNotes(msgspec.Struct, frozen=True):
    """Several values of a label are joined by commas, as written."""

    labels: dict[str, str]
    docstring: str | None
    uses_loop: bool  # benchprobe's iterate: measure its loop, not its models
    trains: bool = False  # it takes gradients and optimizer steps: measure these
    needs_nothing: bool = False  # it imports the standard library only, so no model can be in it
    foreign: bool = False  # it imports another tool's package, which benchmodels.compat may replace


def read_notes(path: Path) -> ScriptNotes:
    """OSError, SyntaxError or ValueError if the script cannot be read."""
    text = source_text(path)
    tree = ast.parse(text, filename=str(path))
    docstring = ast.get_docstring(tree)
    return ScriptNotes(
        labels=parse_labels(text.partition("\n")[0]),
        docstring=docstring[:_LONGEST_NOTE] if docstring else None,
        uses_loop=_uses_loop(tree),
        trains=looks_like_training(tree),
        needs_nothing=all(name in sys.stdlib_module_names for name in _imported(tree)),
        foreign=any(name in PACKAGES for name in _imported(tree)),
    )


def source_text(path: Path) -> str:
    """Of a notebook, its code cells as one script."""
    if is_notebook(path.name):
        return read_notebook(path.read_bytes()).source
    with tokenize.open(path) as handle:
        return handle.read()


def parse_labels(line: str) -> dict[str, str]:
    """`# labels: author::google test_group::daily,monthly`; words without `::` are ignored."""
    found = _LABELS.fullmatch(line.strip().lstrip("\ufeff"))
    if found is None:
        return {}
    pairs = (word.split("::", 1) for word in found[1].split() if "::" in word)
    return {key: ",".join(filter(None, value.split(","))) for key, value in pairs if key}


def faults_of(path: Path) -> list[str]:
    """Faults of a script of a corpus, in words: labels that cannot be read, no docstring."""
    notes = read_notes(path)
    found = _LABELS.fullmatch(source_text(path).partition("\n")[0].strip().lstrip("\ufeff"))
    wrong = [] if found is None else [word for word in found[1].split() if not _LABEL.fullmatch(word)]
    faults = [f"line 1: '{word}' is no label and is ignored; write key::value or key::value,value" for word in wrong]
    if notes.docstring is None:
        faults.append("it has no docstring; say in one where its model comes from")
    return faults


def matches_label(labels: dict[str, str], key: str, value: str) -> bool:
    """Whether one of the values of the label `key` is `value`: `daily` matches `daily,monthly`."""
    return key in labels and value in labels[key].split(",")


def _imported(tree: ast.Module) -> set[str]:
    """The packages it imports by name; a relative import is one of `.`."""
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += ["." if node.level else node.module or "" for node in froms]
    return {name.split(".")[0] for name in names}


def _uses_loop(tree: ast.Module) -> bool:
    """Whether it uses benchprobe's `iterate`; `parse` alone instruments nothing."""
    known = _names_of_probe(tree)
    return any(_takes_iterate(node) or _calls_iterate(node, known) for node in ast.walk(tree))


def _takes_iterate(node: ast.AST) -> bool:
    from_probe = isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "benchprobe"
    return from_probe and any(alias.name in ("iterate", "*") for alias in node.names)  # type: ignore[attr-defined]


def _calls_iterate(node: ast.AST, known: set[str]) -> bool:
    of_name = isinstance(node, ast.Attribute) and node.attr == "iterate" and isinstance(node.value, ast.Name)
    return of_name and node.value.id in known  # type: ignore[attr-defined]


def _names_of_probe(tree: ast.Module) -> set[str]:
    imports = (alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names)
    return {alias.asname or alias.name for alias in imports if alias.name.split(".")[0] == "benchprobe"}
