"""A digest of all that a build may depend on besides the model's identity and weights: part of its cache key.

Values of inputs and configurations, the packages of its classes, and all of the user's own code with its arguments: any
number in it that `forward` uses may become a constant in a build. Comments do not count.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from benchmodels.discover.callers import is_library
from benchmodels.hooks.import_watch import ABSENT, attribute, class_attribute, pass_on_signal
from benchmodels.identity.signatures import tensors_in, walk
from benchmodels.identity.source_text import is_own, names_this_machine
from benchmodels.identity.weights import tensors_digest
from benchmodels.pytorch.module_parts import parts_of
from benchmodels.types import Module, Value

LENGTH = 16
OURS = (
    "benchprobe",
    "benchmodels",
    "benchwright",
)  # as installed from a folder; what is loaded of them changes with time
MOST_PARSED_BYTES = 300_000  # of all files: a fraction of a second; of more code, comments count too


def content_digest(module: Module, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Optional[str]:
    """None if it cannot be computed."""
    try:
        inputs = tensors_digest(tensors_in(args, kwargs))
        if inputs is None:
            return None
        parts = [
            inputs,
            sorted(_configurations(module)),
            sorted(_versions(module).items()),
            _own_sources(),
            sys.argv[1:],
        ]
    except Exception as error:  # inspecting a library's object may run any code
        pass_on_signal(error)
        return None
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:LENGTH]


def _configurations(module: Module) -> Iterator[str]:
    """Configurations that can be serialised, such as those of transformers, each once."""
    seen: Dict[int, Any] = {}
    for _, part in parts_of(module):
        config = attribute(part, "config")
        if config is not None and id(config) not in seen and class_attribute(type(config), "to_dict") is not ABSENT:
            seen[id(config)] = config
            if is_own(type(config)):  # its methods are the program's
                leaves = walk("config", config)
                yield repr([leaf for leaf in leaves if not names_this_machine((leaf.value or "").strip("'\""))])
                continue
            values = config.to_dict()
            yield repr(
                sorted((str(name), repr(values[name])) for name in values if not names_this_machine(values[name]))
            )


def _own_sources() -> List[str]:
    """A digest of each file of the user's code imported so far, sorted independently of their paths."""
    files = _own_files()
    parsed = sum(os.path.getsize(file) for file in files if os.path.isfile(file)) <= MOST_PARSED_BYTES
    return sorted(_source_digest(file, parsed) for file in files)


def _own_files() -> List[str]:
    modules = {name: module for name, module in list(sys.modules.items()) if name.partition(".")[0] not in OURS}
    named = [attribute(module, "__file__") for module in modules.values()]
    return [file for file in dict.fromkeys(each for each in named if type(each) is str) if not is_library(file)]


@lru_cache(maxsize=10_000)
def _source_digest(file: str, parsed: bool) -> str:
    try:
        with open(file, "rb") as source:
            content = source.read()
    except OSError:  # gone since
        return ""
    try:
        content = ast.dump(ast.parse(content)).encode() if parsed else content
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # no Python, such as a compiled module
        pass
    return hashlib.sha256(content).hexdigest()


def _versions(module: Module) -> Dict[str, str]:
    packages = {type(part).__module__.partition(".")[0] for _, part in parts_of(module)}
    found = ((name, attribute(sys.modules.get(name), "__version__")) for name in packages)
    return {name: str(version) for name, version in found if version is not None}
