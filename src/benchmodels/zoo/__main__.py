"""`python -m benchmodels.zoo list [ZOO…]`: the zoos and their models, one JSON object a line.

A line with "version" tells a zoo: an empty one means that it is not installed, and "problem" why it cannot be listed. A line with
"name" tells one of its models. `python -m benchmodels.zoo refresh FILE` writes a newer list of popular models of the hub.
"""

from __future__ import annotations

import json
import sys
from typing import Iterator, List, Sequence

from benchmodels.types import Details
from benchmodels.zoo.base import version_of
from benchmodels.zoo.registry import UnknownZoo, known_zoos, zoo_named


def listed(names: Sequence[str]) -> Iterator[Details]:
    """Of these zoos, or of all."""
    for name in names or known_zoos():
        about: Details = {"zoo": name, "version": "", "torch": version_of("torch"), "packages": [], "problem": None}
        models: List[Details] = []
        try:
            zoo = zoo_named(name)
            about = {**about, "version": zoo.version(), "packages": list(zoo.packages)}
            if about["version"]:
                models = [{**entry._asdict(), "labels": dict(entry.labels)} for entry in zoo.entries()]
        except UnknownZoo:
            raise
        except Exception as error:  # a broken zoo does not hide the others
            about["problem"] = f"{type(error).__name__}: {error}"
        yield about
        yield from models


def main(argv: List[str]) -> int:
    if argv[:1] == ["refresh"] and len(argv) == 2:
        from benchmodels.zoo.huggingface import LIST, refresh

        print(f"{refresh(argv[1])} models in {argv[1]}; set {LIST} to use them")
        return 0
    if argv[:1] != ["list"]:
        print("benchmodels.zoo: write 'python -m benchmodels.zoo list [ZOO…]' or '… refresh FILE'", file=sys.stderr)
        return 2
    try:
        for line in listed(argv[1:]):
            print(json.dumps(line))
    except UnknownZoo as error:
        print(f"benchmodels.zoo: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
