"""`/compare`: two runs or baselines, each row with its history beside it; or why they cannot be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from benchwright.analysis.comparison.comparable import ComparableResult, ComparableRun
from benchwright.core.comparison import Comparison, Effect
from benchwright.core.errors import InvalidInput
from benchwright.core.redacted import without_secrets
from benchwright.core.run import Run
from benchwright.core.secrets import redact_text
from benchwright.core.status import Status
from benchwright.report.comparison import count_words, doubt_texts, warnings
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of
from benchwright.report.figures.run import comparison_picture
from benchwright.report.figures.text import spark_of
from benchwright.report.tables.comparison import FIELDS, Compared, small_print, sorted_effects
from benchwright.report.text.numbers import moment
from benchwright.results.compare import ChosenMetrics, compare_separate
from benchwright.server.pages.frame import Archive, Asked, FormField, PageBlock, page
from benchwright.server.pages.run_pages import run_table, with_own_folder
from benchwright.server.queries import recent_values, runs_called, series_of_run
from benchwright.store.base import RunFilter
from benchwright.store.run_document import plain

_MOST_DRAWN = 40
_MOST_HISTORIES = 300
_POINTS = 20
_NEWEST = 20
_BASELINE = "baseline:"
_Key = tuple[str, str, tuple[tuple[str, str], ...]]


class _Beside(NamedTuple):
    """The histories of the treatment's metrics."""

    found: Mapping[_Key, tuple[str, Sequence[float]]]  # id of the series, values
    asked: Asked

    def cell(self, effect: Effect) -> Cell:
        found = self.found.get(_key(effect.benchmark, effect.metric, effect.labels))
        if found is None:
            return Cell()
        series, values = found
        address = self.asked.link("/history/", item=series)
        return Cell("history", address=address, drawing=spark_of(values, f"{len(values)} runs"))


def compare(archive: Archive, asked: Asked) -> str:
    words = asked.word("control"), asked.word("treatment")
    fields = [
        FormField("control", "Control", words[0], hint="run, or baseline:NAME"),
        FormField("treatment", "Treatment", words[1], hint="run, or baseline:NAME"),
    ]
    if not all(words):
        blocks = [_newest_runs(archive, asked, words)]
        about = ["Choose two runs, by name or id, or baselines: baseline:NAME."]
        return page(archive, asked, "Compare", blocks, about=about, fields=fields)
    both = _loaded(archive, words)
    control, treatment = (each.run for each in both)
    heading = f"{control.id} → {treatment.id}"
    sides = PageBlock(
        pairs=[_side("Control", control), _side("Treatment", treatment)], links=_links(asked, control, treatment)
    )

    def whole() -> tuple[Run, Run]:
        return archive.store.load(control.unique_id), archive.store.load(treatment.unique_id)

    try:
        chosen = ChosenMetrics(both[0], (), asked.word("all") == "1")
        found = compare_separate(*both, whole, chosen)
    except InvalidInput as error:
        about = [error.what, "Across machines there are only ratios, without a verdict."]
        links = [("machines side by side", asked.link("/machines/compare"))]
        return page(archive, asked, heading, [PageBlock("Not comparable", about, links=links), sides], fields=fields)
    blocks = [_numbers(archive, asked, found, treatment), _notes(found), sides, _for_a_request(asked, found)]
    return page(archive, asked, heading, blocks, about=[count_words(found)], fields=fields)


def _loaded(archive: Archive, words: tuple[str, str]) -> tuple[ComparableRun, ComparableRun]:
    """Control and treatment; InvalidInput names what there is no run of, or several."""
    known = runs_called(archive.store, [word.removeprefix(_BASELINE) for word in words])
    uids = []
    for word in words:
        name = word.removeprefix(_BASELINE)
        found = known.baselines.get(name, []) if name != word else known.runs.get(name, [])
        if len(found) > 1:
            raise InvalidInput(f"{len(found)} runs are called '{word}'", where="compare", remedy="name one by its id")
        if not found:
            remedy = "see the lists of runs and baselines"
            raise InvalidInput(f"there is no run or baseline '{word}'", where="compare", remedy=remedy)
        uids += found
    loaded = {plain(each.run.unique_id): each for each in archive.store.comparables(list(dict.fromkeys(uids)))}
    if missing := [uid for uid in uids if uid not in loaded]:
        raise InvalidInput(f"the run '{missing[0]}' is damaged", where="compare", remedy="see: benchwright store check")
    control, treatment = (replace(loaded[uid], run=with_own_folder(archive, loaded[uid].run)) for uid in uids)
    return _without_secrets(control, treatment), _without_secrets(treatment, control)


def _without_secrets(run: ComparableRun, other: ComparableRun) -> ComparableRun:
    """Of a benchmark that is the same on both sides only the name is shown, and how it ended."""
    alone = len(run.results) == len(other.results) == 1
    others = {each.benchmark.name: each.benchmark for each in other.results}

    def shown(result: ComparableResult) -> ComparableResult:
        benchmark, ending = result.benchmark, result.ending
        same = other.results[0].benchmark if alone else others.get(benchmark.name)
        name = redact_text(benchmark.name)
        if benchmark != same:
            benchmark = without_secrets(benchmark)
        if name != benchmark.name:
            benchmark = replace(benchmark, name=name)
        if ending.failed or ending.status is not Status.OK:
            ending = replace(ending, why=redact_text(ending.why), first_failure=redact_text(ending.first_failure))
        unchanged = benchmark is result.benchmark and ending is result.ending
        return result if unchanged else replace(result, benchmark=benchmark, ending=ending)

    return replace(run, results=tuple(map(shown, run.results)))


def _newest_runs(archive: Archive, asked: Asked, words: Sequence[str]) -> PageBlock:
    """A row's name chooses it as the side that is missing."""
    side = "treatment" if words[0] else "control"

    def link(path: str, /, item: str = "", **parameters: object) -> str:
        return asked.changed(**{side: item}) if item else asked.link(path, "", **parameters)

    found = archive.store.runs(RunFilter(), limit=_NEWEST)
    baselines = list(archive.store.baselines())[:_NEWEST]
    links = [(f"baseline {name}", asked.changed(**{side: f"{_BASELINE}{name}"})) for name in baselines]
    from_here = Asked(link=link, parameters=asked.parameters, path=asked.path)
    return PageBlock(f"Choose the {side}", table=run_table(found, from_here), empty="There are no runs.", links=links)


def _side(role: str, run: Run) -> tuple[str, str, bool]:
    return role, f"{run.id}, {moment(run.started)}, on {run.machine.hostname}", False


def _links(asked: Asked, control: Run, treatment: Run) -> list[tuple[str, str]]:
    return [
        ("control's report", asked.link("/runs/", item=control.unique_id)),
        ("treatment's report", asked.link("/runs/", item=treatment.unique_id)),
        ("the other way round", asked.link("/compare", control=treatment.unique_id, treatment=control.unique_id)),
        ("with all metrics", asked.changed(all=1)),
    ]


def _numbers(archive: Archive, asked: Asked, found: Comparison, treatment: Run) -> PageBlock:
    effects = sorted_effects(found.effects)
    beside = _Beside(_histories(archive, treatment, effects), asked)
    picture = comparison_picture(found) if len(effects) <= _MOST_DRAWN else None
    return PageBlock(
        "Numbers",
        table=_table(found, effects, beside),
        empty="Nothing could be compared.",
        figures=[picture] if picture else [],
    )


def _table(found: Comparison, effects: Sequence[Effect], beside: _Beside) -> ReportTable:
    def of_effect(cell: Callable[[Effect], Cell]) -> Callable[[Compared], Cell]:
        return lambda x: Cell() if x.effect is None else cell(x.effect)

    added: list[Field[Compared]] = [
        Field(Column("treatment's course"), of_effect(beside.cell)),
        Field(Column("remarks"), of_effect(lambda e: Cell("; ".join(small_print(e))))),
    ]
    shown = [field for field in FIELDS if field.column.title]
    return table_of([*shown, *added], [Compared(found, effect) for effect in effects])


def _histories(archive: Archive, run: Run, effects: Sequence[Effect]) -> dict[_Key, tuple[str, Sequence[float]]]:
    """The latest points of what was compared, regressions first where there are too many."""
    wanted = [_key(e.benchmark, e.metric, e.labels) for e in effects]
    of_run = series_of_run(archive.store, run.unique_id)
    ids = {_key(benchmark, metric, labels): found for found, benchmark, metric, labels in of_run}
    chosen = [key for key in wanted if key in ids][:_MOST_HISTORIES]
    values = recent_values(archive.store, [ids[key] for key in chosen], _POINTS) if chosen else {}
    return {key: (ids[key], values.get(ids[key], [])[-_POINTS:]) for key in chosen}


def _key(benchmark: str, metric: str, labels: Mapping[str, str]) -> _Key:
    return benchmark, metric, tuple(sorted(labels.items()))


def _notes(found: Comparison) -> PageBlock:
    texts = [*warnings(found), *doubt_texts(found), *map(str, found.remarks)]
    return PageBlock("What else differs, and what was noted", texts or ["Nothing."])


def _for_a_request(asked: Asked, found: Comparison) -> PageBlock:
    address = f"{asked.origin}{asked.changed()}"
    text = f"[{found.control} → {found.treatment}: {count_words(found)}]({address})"
    return PageBlock(commands=[("For a pull request:", text)] if asked.origin else [])
