"""Which reporters there are: our own, loaded only when used, and those that other packages add."""

from __future__ import annotations

import importlib
from importlib import metadata

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.report.base import ENTRY_POINT_GROUP, Reporter

# The same as the entry points of this package: looking those up costs more than loading these.
BUILT_IN = {
    "screen": "benchwright.report.screen:ScreenReporter",
    "json": "benchwright.report.run_json:JsonReporter",
    "csv": "benchwright.report.csv_table:CsvReporter",
    "markdown": "benchwright.report.markdown:MarkdownReporter",
    "html": "benchwright.report.html:HtmlReporter",
    "driver": "benchwright.exchange.driver.result_file:DriverReporter",
}


def reporter_named(name: str) -> Reporter:
    """The reporter that `--format` calls so."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        made: Reporter = getattr(importlib.import_module(module), attribute)()
        return made
    added = {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)}
    if name in added:
        other: Reporter = added[name].load()()
        return other
    known = list(dict.fromkeys([*BUILT_IN, *added]))
    raise InvalidInput(
        f"'{name}' is not a format",
        where="--format",
        remedy=did_you_mean(name, known) or f"use one of {', '.join(known)}",
    )
