"""Summary of a corpus: for each runtime how many models passed each stage and how fast they are, and the causes of the rest."""

from __future__ import annotations

import math
import statistics
from collections import Counter

import msgspec

from benchwright.kinds.models.corpus.causes import COMPILED, CORRECT, EXPORTED, FASTER, FOUND, STAGES
from benchwright.kinds.models.corpus.entries import Corpus, CorpusEntry, RuntimeVariant

_COMPILING = {"optimise", "convert", "compile"}


class RuntimeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`passed`: how many models passed each stage; None where the runtime has no such stage. `speedup`: the geometric mean over
    the `compared` models that have a right result on eager in the same run, without the `doubtful` ones."""

    variant: RuntimeVariant
    passed: dict[str, int | None]
    speedup: float | None
    slowest: float | None  # speed-ups: the smallest, and the largest
    fastest: float | None
    compared: int
    doubtful: int
    waiting: int  # models that have not been tried yet, and count nowhere else
    latency_s: float | None  # the median over models
    build_s: float | None  # of all builds that were made

    @property
    def models(self) -> int:
        return self.passed[FOUND] or 0

    @property
    def right(self) -> int:
        return self.passed[CORRECT] or 0

    @property
    def success(self) -> float | None:
        return self.right / self.models if self.models else None


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Models of one task on one runtime."""

    task: str
    runtime: RuntimeSummary


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Results with the same trouble at the same stage. `runtimes`: how many of each; empty: before any runtime was tried."""

    stage: str
    cause: str
    runtimes: dict[str, int]
    models: tuple[str, ...]
    count: int  # of results
    example: str  # in the words of the first model


def runtime_summaries(corpus: Corpus) -> list[RuntimeSummary]:
    return [_summary(variant, [entry for _, entry in corpus.entries(variant)]) for variant in corpus.variants]


def task_summaries(corpus: Corpus) -> list[TaskSummary]:
    """For each task that models are labelled with, the most frequent first; none if there are not several."""
    tasks = Counter(task for model in corpus.models if (task := model.labels.get("task")))
    found: dict[tuple[str, RuntimeVariant], list[CorpusEntry]] = {
        (task, variant): [e for model, e in corpus.entries(variant) if model.labels.get("task") == task]
        for task, _ in (tasks.most_common() if len(tasks) > 1 else ())
        for variant in corpus.variants
    }
    return [
        TaskSummary(task=task, runtime=_summary(variant, entries))
        for (task, variant), entries in found.items()
        if entries
    ]


def _summary(variant: RuntimeVariant, every: list[CorpusEntry]) -> RuntimeSummary:
    entries = [entry for entry in every if not entry.ending.waiting]
    passed: dict[str, int | None] = {
        stage: sum(entry.ending.passed > number for entry in entries) for number, stage in enumerate(STAGES)
    }
    if not any("export" in e.steps or e.ending.kept_from == EXPORTED for e in entries):
        passed[EXPORTED] = None
    if not any(_COMPILING & e.steps or e.ending.kept_from == COMPILED for e in entries):
        passed[COMPILED] = None
    if variant.is_eager:
        passed[FASTER] = None
    compared = [] if variant.is_eager else [e for e in entries if e.speedup is not None and e.speedup > 0]
    ratios = [e.speedup for e in compared if e.doubt is None and e.speedup is not None]
    latencies = [e.latency_s for e in entries if e.latency_s is not None]
    builds = [e.build_s for e in entries if e.build_s]
    return RuntimeSummary(
        variant=variant,
        passed=passed,
        speedup=math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None,
        slowest=min(ratios, default=None),
        fastest=max(ratios, default=None),
        compared=len(ratios),
        waiting=len(every) - len(entries),
        doubtful=len(compared) - len(ratios),
        latency_s=statistics.median(latencies) if latencies else None,
        build_s=math.fsum(builds) if builds else None,
    )


def causes_of(corpus: Corpus) -> list[Cause]:
    """The most frequent first; what is only slower than eager comes last."""
    found: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for aside in (corpus.scripts, corpus.withheld):
        for name, ending in aside.items():
            found.setdefault((STAGES[ending.passed], ending.cause), []).append((name, "", ending.detail))
    for variant in corpus.variants:
        for model, entry in corpus.entries(variant):
            ending = entry.ending
            if ending.kept_from is not None and not ending.waiting:
                same = found.setdefault((ending.kept_from, ending.cause), [])
                same.append((model.name, str(variant), ending.detail))
    causes = [
        Cause(
            stage=stage,
            cause=cause,
            runtimes=dict(Counter(variant for _, variant, _ in same if variant)),
            models=tuple(dict.fromkeys(name for name, _, _ in same)),
            count=len(same),
            example=same[0][2],
        )
        for (stage, cause), same in found.items()
    ]
    return sorted(causes, key=lambda cause: (cause.stage == FASTER, -cause.count, STAGES.index(cause.stage)))


def common_notes(corpus: Corpus) -> list[tuple[str, int]]:
    """Reasons to doubt numbers, each with the number of results it concerns, the most frequent first."""
    count = Counter(note for variant in corpus.variants for _, e in corpus.entries(variant) for note in _texts(e))
    return count.most_common()


def _texts(entry: CorpusEntry) -> list[str]:
    """Without the evidence, which differs."""
    return list(dict.fromkeys(note.partition(" (")[0] for note in entry.notes))
