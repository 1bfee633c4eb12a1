"""What a run says of its models: those of one class and place together, a row for each way one was measured."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

import msgspec

from benchwright.domain.efficiency import FLOPS, Efficiency
from benchwright.domain.model import DEFAULT_RUNTIME, PRECISIONS, FoundInput, Model
from benchwright.domain.run import Launch, Result
from benchwright.domain.status import Reason, Status
from benchwright.domain.summary import Summary
from benchwright.reporters.base import Report
from benchwright.reporters.model_facts import build_seconds, fact, is_model, is_plain_script, steps_done

# Of a model; its other figures stand beside them. Of a profile there is only how long it took.
TELLING = ("latency", "rate", "throughput.streams", "process.duration")
_OTHER = "other"


class OperatorTime(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of operator takes of a call of the model; `share` is of all operators."""

    op: str
    seconds: float
    share: float
    calls: str


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model as it was measured once: runtime, device, precision and parameters."""

    number: int  # of its result in the run
    result: Result
    model: Model
    summaries: tuple[Summary, ...]  # none if the numbers are not to be believed
    efficiency: tuple[Efficiency, ...] = ()
    beside: tuple[Launch, ...] = ()  # of its profile, which may be the one that built
    speedup: float | None = None  # over torch-eager in fp32, the same model, parameters and device

    def figure(self, metric: str) -> Summary | None:
        return next((s for s in self.summaries if s.metric == metric), None)

    @property
    def latency(self) -> Summary | None:
        return self.figure("latency")

    @property
    def measured(self) -> bool:
        return self.latency is not None

    @property
    def builders(self) -> tuple[Launch, ...]:
        """The launches, warm-up included, among which one may have built: its own, or those of its profile."""
        own = self.result.launches
        return own if steps_done(own) or not steps_done(self.beside) else self.beside

    @property
    def build_s(self) -> float | None:
        """0: it was cached; None: there is nothing to build."""
        return build_seconds(self.builders)

    @property
    def items(self) -> int | None:
        """Of one call, where they are known; those of a file only its launches can tell."""
        told = (fact(self.result, "model") or {}).get("items")
        return self.model.items if self.model.items is not None else told if isinstance(told, int) else None

    @property
    def inputs(self) -> tuple[FoundInput, ...]:
        """Of one call; those of a file only its launches can tell."""
        told = (fact(self.result, "model") or {}).get("inputs") or ()
        try:
            return self.model.inputs or msgspec.convert(told, tuple[FoundInput, ...])
        except msgspec.ValidationError:
            return ()

    @property
    def flops_per_item(self) -> float | None:
        told = (s.value for s in self.summaries if s.metric.partition(".")[0] == "flops_per_item")
        return next(told, None)

    @property
    def flops(self) -> float | None:
        """Of one call."""
        per_item = self.flops_per_item
        if per_item is not None:
            return per_item * (self.items or 1)
        counted = (fact(self.result, "model") or {}).get("flops")
        return float(counted) if isinstance(counted, int | float) else None

    @property
    def arithmetic(self) -> Efficiency | None:
        return next((e for e in self.efficiency if e.work.quantity == FLOPS), None)

    @property
    def precision(self) -> str:
        """In which it really computed, where the runtime told: a model may be bfloat16 by itself."""
        told = (fact(self.result, "runtime") or {}).get("precision")
        return told if isinstance(told, str) and told else self.model.precision

    @property
    def parameter_count(self) -> int:
        told = (fact(self.result, "model") or {}).get("parameters")
        return self.model.parameters or (told if isinstance(told, int) else 0)


class ModelGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One model, whatever it was measured on and with which inputs. `rows`: as the run has them."""

    source: str  # the script or the file
    rows: tuple[ModelRow, ...]
    profiles: tuple[ModelRow, ...] = ()  # launches that told the time of each operator

    @property
    def every(self) -> tuple[ModelRow, ...]:
        return self.rows + self.profiles

    @property
    def identities(self) -> list[str]:
        return list(dict.fromkeys(row.model.identity for row in self.every))


def only_models(report: Report) -> bool:
    """Whether there is nothing but models, and scripts of theirs in which none was found: in a folder one often is."""
    results = report.run.results
    return any(map(is_model, results)) and all(is_model(r) or is_plain_script(r) for r in results)


def telling(result: Result, summaries: Sequence[Summary]) -> list[Summary]:
    """Of a model the few figures that matter; of anything else all that are given."""
    return [s for s in summaries if s.metric in TELLING] if is_model(result) else list(summaries)


def model_rows(report: Report) -> list[ModelRow]:
    """One for each result of a model, in the order of the run."""
    return rows_of(report.run.results, report.summaries, report.efficiency)


def rows_of(
    results: Sequence[Result],
    summaries: Mapping[str, Sequence[Summary]],
    efficiency: Mapping[str, Sequence[Efficiency]],
) -> list[ModelRow]:
    rows = []
    for number, result in enumerate(results):
        name, workload = result.benchmark.name, result.benchmark.workload
        if isinstance(workload, Model):
            rows.append(_row(number, result, workload, summaries.get(name, ()), efficiency.get(name, ())))
    eager = {
        _compared(row): row.latency.value
        for row in rows
        if row.result.status is Status.OK
        and (row.model.runtime, row.model.precision) == (DEFAULT_RUNTIME, PRECISIONS[0])
        and row.latency is not None
    }
    others: dict[object, tuple[Launch, ...]] = {}
    for row in rows:
        others[_built(row)] = others.get(_built(row), ()) + row.result.launches
    return [
        msgspec.structs.replace(row, speedup=_ratio(eager.get(_compared(row)), row.latency), beside=others[_built(row)])
        for row in rows
    ]


def model_groups(report: Report) -> list[ModelGroup]:
    """Rows of the same script, class, place and size together, in the order of the run."""
    found: dict[tuple[object, ...], list[ModelRow]] = {}
    for row in model_rows(report):
        model = row.model
        key = (model.script or model.file, model.class_, row.parameter_count, model.place)
        found.setdefault(key, []).append(row)
    paths = {str(path) for path, *_ in found}
    groups = []
    for (path, *_), rows in found.items():
        alone = sum(os.path.basename(other) == os.path.basename(str(path)) for other in paths) == 1
        groups.append(
            ModelGroup(
                source=os.path.basename(str(path)) if alone else str(path),
                rows=tuple(row for row in rows if not _only_profile(row)),
                profiles=tuple(row for row in rows if _only_profile(row)),
            )
        )
    return groups


def operators(row: ModelRow) -> list[OperatorTime]:
    """The slowest first, what was too little to be told apart last; empty if it was not profiled."""
    best: dict[str, Summary] = {}
    for s in row.summaries:
        op = s.labels.get("op", "")
        # The same operator with another number of calls is another series: the one of most launches counts.
        if s.metric == "op.time" and (op not in best or s.launches > best[op].launches):
            best[op] = s
    total = math.fsum(s.value for s in best.values())
    order = sorted(best.items(), key=lambda pair: (pair[0] == _OTHER, -pair[1].value))
    return [
        OperatorTime(
            op=op, seconds=s.value, share=s.value / total if total > 0 else math.nan, calls=s.labels.get("calls", "")
        )
        for op, s in order
    ]


def _row(
    number: int, result: Result, model: Model, summaries: Sequence[Summary], efficiency: Sequence[Efficiency]
) -> ModelRow:
    believed = result.reason is not Reason.INVALID
    return ModelRow(
        number=number,
        result=result,
        model=model,
        summaries=tuple(summaries) if believed else (),
        efficiency=tuple(efficiency) if believed else (),
    )


def _only_profile(row: ModelRow) -> bool:
    return row.model.profile and not row.measured and row.result.benchmark.withheld is None


def _compared(row: ModelRow) -> tuple[object, ...]:
    """What must be the same for one to be faster than the other."""
    model, parameters = row.model, row.result.benchmark.parameters
    where = (model.script, model.args, model.file, model.identity, model.device, model.threads)
    return (*where, tuple(sorted(parameters.items())), row.result.benchmark.placement.cores)


def _built(row: ModelRow) -> tuple[object, ...]:
    """What is the same for a model and its profile."""
    return (*_compared(row), row.model.runtime, row.model.precision)


def _ratio(eager: float | None, latency: Summary | None) -> float | None:
    if eager is None or latency is None or not (latency.value > 0 and math.isfinite(eager)):
        return None
    return eager / latency.value
