"""Runs that were kept: found, listed, compared, scored, deleted, and put into the store.

Its modules are imported when they are first used: `from benchwright import results as kept`, then `kept.compare.compare_runs(…)`.
"""

from __future__ import annotations

from benchwright.core.lazy_modules import import_submodule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.results import adhoc_import as adhoc_import
    from benchwright.results import admin as admin
    from benchwright.results import after_run as after_run
    from benchwright.results import check_store as check_store
    from benchwright.results import compare as compare
    from benchwright.results import corpora as corpora
    from benchwright.results import fan_outs as fan_outs
    from benchwright.results import kept_runs as kept_runs
    from benchwright.results import machines as machines
    from benchwright.results import missing_module as missing_module
    from benchwright.results import node_spreads as node_spreads
    from benchwright.results import peaks as peaks
    from benchwright.results import rebuild as rebuild
    from benchwright.results import run_digest as run_digest
    from benchwright.results import run_index as run_index
    from benchwright.results import scores as scores
else:  # for a type checker any name would be a module

    def __getattr__(name: str) -> object:
        return import_submodule(__name__, name)
