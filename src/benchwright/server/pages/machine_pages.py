"""`/machines`: what each is, its noise, when it was last seen. `/machines/compare`: benchmarks × machines, as ratios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from benchwright.core.machine import Machine
from benchwright.report.document import Cell, Column, Field, table_of, word
from benchwright.report.figures.text import spark_of
from benchwright.report.html.benchmark import machine_line
from benchwright.report.tables.machine_table import MachineRatios, machine_ratios, ratio_table
from benchwright.report.text.metrics import metric_label
from benchwright.report.text.numbers import counted, percent
from benchwright.results.machines import latest_by_machine
from benchwright.server.pages.frame import Archive, Asked, FormField, PageBlock, choices, page, time_words
from benchwright.server.queries import (
    MachineSeen,
    headline_series,
    machine_facts,
    machines_seen,
    metric_names,
    noise_by_host,
)

_MOST = 3000  # series


class _Row(NamedTuple):
    seen: MachineSeen
    machine: Machine | None
    noise: list[float]


def machines(archive: Archive, asked: Asked) -> str:
    seen = machines_seen(archive.store)
    facts = machine_facts(archive.store, [each.newest for each in seen])
    noise = noise_by_host(archive.store)
    rows = [_Row(each, facts.get(each.newest), noise.get(each.host, [])) for each in seen]
    fields: list[Field[_Row]] = [
        Field(
            Column("machine", quoted=True),
            lambda r: word(r.seen.host, address=asked.link("/runs", machine=r.seen.host)),
        ),
        Field(Column("what it is"), lambda r: Cell(_what(r), small=r.seen.machine)),
        Field(Column("runs", right=True), lambda r: Cell(f"{r.seen.runs:,}")),
        Field(Column("first seen"), lambda r: word(time_words(r.seen.first_s))),
        Field(Column("last seen"), lambda r: word(time_words(r.seen.last_s))),
        Field(Column("noise"), _noise),
    ]
    table = table_of(
        fields,
        rows,
        notes=(
            "Noise: half the width of the confidence intervals, median of each run; the latest 400 runs. Times are UTC.",
        ),
    )
    links = [("side by side", asked.link("/machines/compare"))]
    return page(archive, asked, "Machines", [PageBlock(table=table, empty="None yet.", links=links)])


def _what(row: _Row) -> str:
    return "" if row.machine is None else machine_line(row.machine).partition(" · ")[2]


def _noise(row: _Row) -> Cell:
    if not row.noise:
        return Cell("no interval yet")
    runs = counted(len(row.noise), "run")
    return Cell(f"± {percent(row.noise[-1])}", row.noise[-1], small=runs, drawing=spark_of(row.noise, runs))


def compare_machines(archive: Archive, asked: Asked) -> str:
    metric, base = asked.word("metric") or None, asked.word("base") or None
    known_by = None if metric else headline_series(archive.store, benchmark=None, machine=None, limit=_MOST, offset=0)
    found = latest_by_machine(archive.store, metric=metric, headline=known_by)
    made = machine_ratios(found, base, _prices(asked.word("price")))
    fields = [
        FormField("base", "Relative to", made.base, choices(sorted(made.hosts), "the most complete one")),
        FormField(
            "metric",
            "Metric",
            metric or "",
            [("", "each benchmark's own"), *((n, metric_label(n)) for n in metric_names(archive.store))],
        ),
        FormField("price", "Price per hour", asked.word("price"), hint="hostA=2.50,hostB=4"),
    ]
    tabs = [(host, asked.changed(base=host), host == made.base) for host in made.hosts]
    return page(
        archive,
        asked,
        "Machines side by side",
        [_block(made)],
        about=[_words(made)] if made.base else [],
        fields=fields,
        tabs=tabs,
    )


def _block(made: MachineRatios) -> PageBlock:
    empty = "Two machines that measured the same benchmark in the same way are needed."
    return PageBlock(table=ratio_table(made) if len(made.hosts) > 1 else None, empty=empty)


def _words(made: MachineRatios) -> str:
    return f"Ratios to {made.base}, over 1 is better there. No verdict: other machines may differ in more than their speed."


def _prices(text: str) -> Mapping[str, float]:
    """`a=2.5,b=4`; what is not of that form counts as not given."""
    found = {}
    for part in text.split(","):
        host, _, price = part.partition("=")
        try:
            found[host.strip()] = float(price)
        except ValueError:
            continue
    return {host: price for host, price in found.items() if price > 0}
