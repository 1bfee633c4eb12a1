"""Watching a repository: which commit is next, what it is compared with, and when a regression is called one.

Its modules are imported when they are first used: `regress.watch.watch.watch(…)`.
"""

from __future__ import annotations

from benchwright.core.lazy_modules import import_submodule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.regress.watch import clock as clock
    from benchwright.regress.watch import commits as commits
    from benchwright.regress.watch import control as control
    from benchwright.regress.watch import examination as examination
    from benchwright.regress.watch import notices as notices
    from benchwright.regress.watch import records as records
    from benchwright.regress.watch import state as state
    from benchwright.regress.watch import watch as watch
    from benchwright.regress.watch import watcher as watcher
    from benchwright.regress.watch import work as work
else:  # for a type checker any name would be a module

    def __getattr__(name: str) -> object:
        return import_submodule(__name__, name)
