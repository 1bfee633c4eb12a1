"""The results of a corpus: for each model and runtime the newest one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from benchwright.core.model import DEFAULT_RUNTIME, PRECISIONS
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.kinds.models.build_names import all_labels, build_name
from benchwright.kinds.models.corpus.causes import ModelEnding, ending_of, ending_of_script
from benchwright.kinds.models.report.facts import checked, is_model
from benchwright.kinds.models.report.fields import shown_elsewhere
from benchwright.kinds.models.report.rows import ModelRow, model_rows
from benchwright.report.base import Report
from benchwright.report.notes import result_notes
from benchwright.runs.fan_out_folder import NODE

UNFINISHED = (Status.PENDING, Status.INTERRUPTED)
_SHOWN_DIGITS = 8  # of an identity


class RuntimeVariant(msgspec.Struct, frozen=True, order=True):
    """Where a model is measured: a column of the matrix. `host`: only where results come from several machines."""

    runtime: str
    device: str = "cpu"
    precision: str = PRECISIONS[0]
    threads: int = 0  # as asked for; 0: one for each core
    way: tuple[str, ...] = ()  # how it is built, where that is not the usual way
    machine: str = ""  # its fingerprint
    host: str = ""

    def __str__(self) -> str:
        """`onnxruntime`, with what is not usual: `onnxruntime bf16 on cuda`."""
        words = [self.runtime]
        words += [self.precision] if self.precision != PRECISIONS[0] else []
        words += [f"on {self.device}"] if self.device != "cpu" else []
        words += [f"{self.threads} thread{'s' if self.threads > 1 else ''}"] if self.threads else []
        words += self.way
        return " ".join([*words, *([f"({self.host})"] if self.host else [])])

    @property
    def is_eager(self) -> bool:
        return (self.runtime, self.precision) == (DEFAULT_RUNTIME, PRECISIONS[0])


class CorpusEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one variant. Figures are there only if its outputs are not known to be wrong."""

    variant: RuntimeVariant
    ending: ModelEnding
    run: str
    latency_s: float | None = None
    latency_low_s: float | None = None
    latency_high_s: float | None = None
    speedup: float | None = None
    doubt: str | None = None  # of the speed-up
    error: float | None = None
    memory_bytes: float | None = None
    build_s: float | None = None
    steps: frozenset[str] = frozenset()  # of its build
    notes: tuple[str, ...] = ()


class CorpusModel(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the matrix. `flops`: of one call."""

    name: str
    source: str  # the script, file or zoo
    identity: str
    class_: str
    build: str
    corpus: str
    labels: dict[str, str]
    parameters: int | None
    flops: float | None
    entries: dict[RuntimeVariant, CorpusEntry]


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """`withheld`: models that were found and not measured; `scripts`: those in which no model was found. Both by name."""

    models: tuple[CorpusModel, ...]
    variants: tuple[RuntimeVariant, ...]
    withheld: dict[str, ModelEnding]
    scripts: dict[str, ModelEnding]
    sources: int  # scripts, files and entries of zoos that have models
    runs: tuple[str, ...]
    machines: tuple[str, ...]

    def entries(self, variant: RuntimeVariant) -> list[tuple[CorpusModel, CorpusEntry]]:
        return [(model, model.entries[variant]) for model in self.models if variant in model.entries]


class _Gathered(msgspec.Struct):
    """A model while results are gathered; the newest of the rows that tell most says what it is, and which node has it."""

    row: ModelRow
    of_node: dict[str, str]  # its label, if it has one
    entries: dict[RuntimeVariant, CorpusEntry] = {}


def corpus_of_reports(reports: Iterable[Report]) -> Corpus:
    """Of the results of all runs; the newest counts, unless it is not measured yet."""
    ordered = sorted(reports, key=lambda report: report.run.started)
    hosts = {report.run.machine.fingerprint: report.run.machine.hostname for report in ordered}
    found: dict[tuple[object, ...], _Gathered] = {}
    withheld: dict[str, ModelEnding] = {}
    scripts: dict[str, ModelEnding] = {}
    for report in ordered:
        for row in model_rows(report):
            if row.result.benchmark.withheld is not None:
                withheld[row.result.benchmark.name] = ending_of(row)
            elif not shown_elsewhere(row) and not row.model.profile:
                _add(found, row, report.run, hosts if len(hosts) > 1 else {})
        for result in report.run.results:
            if not is_model(result) and _is_script(result):
                scripts[result.benchmark.name] = ending_of_script(result)
    models, measured = _named(list(found.values())), {_name(each.row) for each in found.values()}
    variants = sorted({v for model in models for v in model.entries}, key=lambda v: (not v.is_eager, v))
    return Corpus(
        models=tuple(models),
        variants=tuple(variants),
        withheld={name: ending for name, ending in withheld.items() if name not in measured},
        scripts=scripts,
        sources=len({model.source for model in models}),
        runs=tuple(report.run.id for report in ordered),
        machines=tuple(dict.fromkeys(hosts.values())),
    )


def _add(found: dict[tuple[object, ...], _Gathered], row: ModelRow, run: Run, hosts: dict[str, str]) -> None:
    model, point = row.model, tuple(sorted(row.result.benchmark.parameters.items()))
    key = (source_of(row), model.args, model.identity, point)
    machine, of_node = run.machine.fingerprint, {NODE: run.labels[NODE]} if NODE in run.labels else {}
    variant = RuntimeVariant(
        model.runtime,
        model.device,
        model.precision,
        model.threads or 0,
        model.build_variant,
        machine,
        hosts.get(machine, ""),
    )
    if key not in found:
        found[key] = _Gathered(row, of_node)
    gathered = found[key]
    if (row.result.status in UNFINISHED or row.model.stops_after) and variant in gathered.entries:
        return  # what was only built leaves an earlier measurement in place
    if _tells(row) >= _tells(gathered.row):
        gathered.row, gathered.of_node = row, of_node
    gathered.entries[variant] = _entry(row, variant, run)


def _tells(row: ModelRow) -> int:
    """How many of its sizes are known."""
    return bool(row.parameter_count) + (row.flops is not None)


def _entry(row: ModelRow, variant: RuntimeVariant, run: Run) -> CorpusEntry:
    found, latency, memory = checked(row.result), row.latency, row.figure("memory.host")
    device = row.figure("memory.device")
    interval = latency.interval if latency is not None else None
    notes = dict.fromkeys(str(note) for note in result_notes(row.result) if note.severity != "info")
    return CorpusEntry(
        variant=variant,
        ending=ending_of(row),
        run=run.id,
        latency_s=None if latency is None else latency.value,
        latency_low_s=None if interval is None else interval.low,
        latency_high_s=None if interval is None else interval.high,
        speedup=row.speedup,
        doubt=None if row.speedup_doubt is None else str(row.speedup_doubt),
        error=None if found is None else found.error,
        memory_bytes=next((s.value for s in (device, memory) if s is not None), None),
        build_s=row.build_s if row.measured or row.build_s else None,
        steps=frozenset(str(step.get("step")) for x in row.result.launches for step in x.facts.get("build") or ()),
        notes=tuple(notes),
    )


def _named(found: Sequence[_Gathered]) -> list[CorpusModel]:
    """By name: the script's if it has one model only; models of one name are distinguished by their identities."""
    of_source = Counter(source_of(each.row) for each in found)
    names = [_name(each.row) for each in found]
    short = [
        name if of_source[source_of(each.row)] > 1 else _without_class(name)
        for name, each in zip(names, found, strict=True)
    ]
    names = short if len(set(short)) == len(short) else names
    count = Counter(names)
    models = []
    for each, name in zip(found, names, strict=True):
        row, labels = each.row, each.row.result.benchmark.labels
        described = all_labels(row.model, labels) | each.of_node
        models.append(
            CorpusModel(
                name=name if count[name] == 1 else f"{name} {row.model.identity[:_SHOWN_DIGITS]}",
                source=source_of(row),
                identity=row.model.identity,
                class_=row.model.class_,
                build=build_name(row.model, labels),
                corpus=described.get("corpus", ""),
                labels=described,
                parameters=row.parameter_count or None,
                flops=row.flops,
                entries=each.entries,
            )
        )
    return sorted(models, key=lambda model: model.name)


def source_of(row: ModelRow) -> str:
    return row.model.script or row.model.file or row.model.zoo or _name(row)


def _name(row: ModelRow) -> str:
    """That of the benchmark, without what it runs on."""
    name, at, _ = row.result.benchmark.name.rpartition("@")
    return name if at else row.result.benchmark.name


def _without_class(name: str) -> str:
    """`bert.py` of `bert.py::BertModel`."""
    return name.partition("::")[0]


def _is_script(result: Result) -> bool:
    words = (result.benchmark.source, *result.benchmark.workload.words)
    return any(os.path.splitext(word)[1] in (".py", ".ipynb") for word in words)
