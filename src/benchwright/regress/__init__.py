"""Revisions, A/B, watching a repository, bisection: everything handed the function that measures.

Its modules are imported when they are first used: `from benchwright import regress`, then `regress.ab.ab(…)`.
"""

from __future__ import annotations

from benchwright.core.lazy_modules import import_submodule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.regress import ab as ab
    from benchwright.regress import bisect as bisect
    from benchwright.regress import bisect_report as bisect_report
    from benchwright.regress import build_environment as build_environment
    from benchwright.regress import build_inventory as build_inventory
    from benchwright.regress import builder as builder
    from benchwright.regress import builds as builds
    from benchwright.regress import explain as explain
    from benchwright.regress import explain_pairs as explain_pairs
    from benchwright.regress import explain_report as explain_report
    from benchwright.regress import notify as notify
    from benchwright.regress import packages as packages
    from benchwright.regress import repository as repository
    from benchwright.regress import revision_paths as revision_paths
    from benchwright.regress import run_history as run_history
    from benchwright.regress import run_series as run_series
    from benchwright.regress import sides as sides
    from benchwright.regress import watch as watch
else:  # for a type checker any name would be a module

    def __getattr__(name: str) -> object:
        return import_submodule(__name__, name)
