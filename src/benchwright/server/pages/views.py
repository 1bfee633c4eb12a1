"""Every page, by its path."""

from __future__ import annotations

from collections.abc import Callable

from benchwright.server.pages.benchmark_page import benchmarks
from benchwright.server.pages.change_pages import change, changes
from benchwright.server.pages.compare_page import compare
from benchwright.server.pages.frame import Archive, Asked
from benchwright.server.pages.machine_pages import compare_machines, machines
from benchwright.server.pages.overview import overview
from benchwright.server.pages.run_pages import run_page, runs
from benchwright.server.pages.series_page import series_page

PageView = Callable[[Archive, Asked], str]
ItemView = Callable[[Archive, Asked, str], str]

VIEWS: dict[str, PageView] = {
    "/": overview,
    "/benchmarks": benchmarks,
    "/runs": runs,
    "/compare": compare,
    "/changes": changes,
    "/machines": machines,
    "/machines/compare": compare_machines,
}
# Of one thing, which is the last part of the path.
ITEM_VIEWS: dict[str, ItemView] = {"/runs/": run_page, "/history/": series_page, "/changes/": change}
