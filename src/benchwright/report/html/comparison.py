"""`compare --format html`: every effect in one picture, the numbers with their remarks, every sample, and both machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from benchwright.core.comparison import Comparison, Effect
from benchwright.core.job import readable_job
from benchwright.core.revision import CONTROL, TREATMENT
from benchwright.core.run import Launch, Result, Run
from benchwright.report.comparison import count_words, doubt_texts, warnings
from benchwright.report.document import Figure, ReportTable
from benchwright.report.figures.run import comparison_picture
from benchwright.report.html.benchmark import Pair, machine_line, machine_rows, revision_rows
from benchwright.report.html.pages import data_block, render
from benchwright.report.html.sample_blocks import PRECISION, packed
from benchwright.report.tables.comparison import comparison_table, sorted_effects
from benchwright.report.text.numbers import counted, moment

_MOST_OPEN = 4  # a comparison of more benchmarks begins with them closed


class SideView(NamedTuple):
    role: str
    name: str
    run: Run
    machine: str
    rows: list[Pair]


class SampleView(NamedTuple):
    """The samples of one benchmark on both sides; `place` is where the page has them."""

    place: str
    name: str
    words: str
    data: str
    open: bool


class ComparisonView(NamedTuple):
    at: str
    control: str
    treatment: str
    words: str
    picture: Figure | None
    table: ReportTable
    warnings: list[str]
    remarks: list[str]
    samples: list[SampleView]
    sides: list[SideView]


def comparison_html(comparisons: Sequence[Comparison], runs: Sequence[Run]) -> str:
    """One page for all comparisons with the same control. `runs`: the control, then each treatment; or the one run whose
    benchmarks are compared."""
    views = [
        _view(comparison, runs[0], runs[-1] if len(runs) < 2 else runs[number], f"-{number}")
        for number, comparison in enumerate(comparisons, 1)
    ]
    return render("comparison.html", scripted=True, comparisons=views, precision=PRECISION)


def _view(comparison: Comparison, control: Run, treatment: Run, at: str) -> ComparisonView:
    samples = _samples(comparison, control, treatment, at)
    links = {sample.name: sample.place for sample in samples}
    sides = ("Control", comparison.control, control), ("Treatment", comparison.treatment, treatment)
    return ComparisonView(
        at=at,
        control=comparison.control,
        treatment=comparison.treatment,
        words=count_words(comparison),
        picture=comparison_picture(comparison, links=links),
        table=comparison_table([comparison], remarks=True),
        warnings=[*warnings(comparison), *doubt_texts(comparison)],
        remarks=list(map(str, comparison.remarks)),
        samples=samples,
        sides=[SideView(role, name, run, machine_line(run.machine), _rows(run)) for role, name, run in sides],
    )


def _rows(run: Run) -> list[Pair]:
    about: list[Pair] = [("Run", run.id, False), ("Started", moment(run.started), False)]
    return [*about, *revision_rows(run), *machine_rows(run.machine)]


def _samples(comparison: Comparison, control: Run, treatment: Run, at: str) -> list[SampleView]:
    effects: dict[str, list[Effect]] = {}
    for effect in sorted_effects(comparison.effects):
        effects.setdefault(effect.benchmark, []).append(effect)
    found = []
    for number, (name, compared) in enumerate(effects.items()):
        pair = _pair(comparison, control, treatment, name)
        data = packed(_joined(*pair), (), compared, None) if pair is not None else None
        if pair is not None and data is not None:
            launches = [counted(len(result.counted), "launch", "launches") for result in pair]
            words = f"control {launches[0]}, treatment {launches[1]}"
            opened = len(effects) <= _MOST_OPEN
            data["controls"] = len(pair[0].launches)  # the first so many launches are the control's
            found.append(SampleView(f"b{number}{at}", name, words, data_block(data), opened))
    return found


def _pair(comparison: Comparison, control: Run, treatment: Run, name: str) -> tuple[Result, Result] | None:
    """As they were compared: two benchmarks of one run, such as the sides of an A/B, or those of one name; of two runs of one
    benchmark, the two."""
    before, after = ({r.benchmark.name: r for r in run.results} for run in (control, treatment))
    sides = {r.benchmark.side: r for r in control.results if r.benchmark.pair == name}
    if control is treatment and sides.keys() >= {CONTROL, TREATMENT}:
        found = sides.get(CONTROL), sides.get(TREATMENT)
    elif control is treatment:
        found = before.get(comparison.control), after.get(comparison.treatment)
    else:
        only = treatment.results[0] if len(treatment.results) == 1 else None
        found = before.get(name), after.get(name, only)
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def _joined(control: Result, treatment: Result) -> Result:
    """One result with the launches of both sides, called by their side."""
    launches: list[Launch] = []
    for side, result in (("control", control), ("treatment", treatment)):
        for launch in result.launches:
            place = readable_job(launch.job).removeprefix(f"{result.benchmark.name}.").removesuffix(".D0")
            launches.append(replace(launch, job=f"{side} {place}"))
    return replace(control, launches=tuple(launches))
