"""`inherits`: an entry is laid over the one it names, tags are added up; `*` is laid over every entry last.

It happens entry by entry in the order of the files, in place. An entry that comes before what it inherits
takes it as it is written; one that comes after takes it as it has become, `*` included.
"""

from __future__ import annotations

from typing import Any

from benchwright.core.errors import did_you_mean
from benchwright.kinds.suite.read.keys import EVERY
from benchwright.kinds.suite.read.places import Places
from benchwright.kinds.yaml.merge import APPEND, is_append, merge

INHERITS = "inherits"
LONGEST_CHAIN = 100


def parents_of(entries: dict[str, Any], places: Places) -> dict[str, str]:
    """Entry → what it inherits; InvalidInput for an unknown parent, a circle, or a chain that is too long."""
    parents: dict[str, str] = {}
    for name, entry in entries.items():
        parent = entry.get(INHERITS)
        if parent is None:
            continue
        if name == EVERY:
            raise places.error(name, (INHERITS,), "'*' applies to all entries and cannot inherit", "remove it")
        if parent not in entries:
            raise places.error(
                name,
                (INHERITS,),
                f"'{name}' inherits '{parent}', which is not defined",
                did_you_mean(str(parent), entries) or "define it, or include the file that does",
            )
        parents[name] = parent
    checked: set[str] = set()
    for name in parents:
        _check_chain(name, parents, places, checked)
    return parents


def inherit_all(entries: dict[str, Any]) -> dict[str, Any]:
    """Every entry with what it inherits; `parents_of` found nothing wrong."""
    every = entries.get(EVERY)
    resolved = dict(entries)
    for name, entry in entries.items():
        while (parent_name := entry.get(INHERITS)) is not None:
            parent = resolved[parent_name]
            own = {key: value for key, value in entry.items() if key != INHERITS}
            tags = {*tag_list(parent.get("tags")), *tag_list(own.get("tags"))}
            entry = merge(parent, own)
            entry["tags"] = _sorted(tags)
        if INHERITS in entry:
            entry = {key: value for key, value in entry.items() if key != INHERITS}
        resolved[name] = merge(entry, every) if every is not None else entry
    return resolved


def tag_list(value: Any) -> list[object]:
    """Tags from a list, one word, or `{append: […]}`."""
    if is_append(value):
        return list(value[APPEND])
    if isinstance(value, list):
        return value
    return [] if value is None or isinstance(value, dict) else [value]


def _sorted(tags: set[object]) -> list[Any]:
    try:
        return sorted(tags)
    except TypeError:  # words and numbers
        return sorted(tags, key=str)


def _check_chain(name: str, parents: dict[str, str], places: Places, checked: set[str]) -> None:
    chain = [name]
    while chain[-1] in parents and chain[-1] not in checked:
        parent = parents[chain[-1]]
        if parent in chain:
            circle = " → ".join([*chain[chain.index(parent) :], parent])
            raise places.error(chain[-1], (INHERITS,), f"entries inherit each other: {circle}", "remove one 'inherits'")
        chain.append(parent)
        if len(chain) > LONGEST_CHAIN:
            what = f"'{name}' inherits through more than {LONGEST_CHAIN} entries"
            raise places.error(name, (INHERITS,), what, "inherit from fewer")
    checked.update(chain)
