"""The seam for frameworks: how models of one are seen when a script calls them. A new one is a file and a line in FRAMEWORKS."""

from __future__ import annotations

from importlib import import_module
from typing import Callable, Iterator, List, NamedTuple, Protocol

from benchmodels.discover.model_entries import Watcher
from benchmodels.hooks.imports import ImportWatch
from benchmodels.types import Details

FRAMEWORKS = {"torch": "benchmodels.pytorch.hook:TorchHook"}


class HookOptions(NamedTuple):
    """`script`: its file. `everything` False: only calls are looked for, not what was made and never called, or trained."""

    script: str
    max_depth: int
    everything: bool
    complain: Callable[[str], None]
    weights: bool = False  # they are part of an identity


class Uncalled(NamedTuple):
    """A model that was made, but not seen called; `reason` says what is known. `called`: it was, in a way that is no use."""

    identity: str
    facts: Details
    reason: str
    called: bool = False


class Framework(Protocol):
    """Made with a Watcher and HookOptions. It must not import its framework: it waits until the script does."""

    def install(self, imports: ImportWatch) -> None:
        """From the framework's import on, calls of models are seen."""

    def uninstall(self) -> None:
        """The framework is as the script left it."""

    def lost(self) -> bool:
        """Whether the script has put something in place of our hook, so that models may have been missed."""

    def uncalled(self) -> Iterator[Uncalled]:
        """At the end of the script."""

    def hold_threads(self) -> None:
        """The interpreter is about to end: threads that go on calling models are held before the next call, since one that
        is ended inside of a framework takes the process with it."""


def open_frameworks(watcher: Watcher, options: HookOptions) -> List[Framework]:
    """Every framework's hook, not installed yet."""
    opened: List[Framework] = []
    for place in FRAMEWORKS.values():
        module, _, name = place.partition(":")
        opened.append(getattr(import_module(module), name)(watcher, options))
    return opened
