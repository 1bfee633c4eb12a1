"""A run's models, grouped by class and place, with a row for each way they were measured."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from itertools import takewhile

import msgspec

from benchwright.core.efficiency import FLOPS, Efficiency, PeakShare, share_of_peak
from benchwright.core.model import DEFAULT_RUNTIME, PRECISIONS, FoundInput, Model
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result
from benchwright.core.status import Reason, Status
from benchwright.core.summary import Summary
from benchwright.kinds.models.report.facts import build_seconds, checked, fact, steps_done
from benchwright.kinds.models.report.speedup import MeasuredModel, Speedup, speedup_over
from benchwright.report.base import Report
from benchwright.runs.fan_out_folder import NODE

# The main figures of a model; a profile has only its duration.
TELLING = ("latency", "rate", "throughput.streams", "process.duration")
_OTHER = "other"


class OperatorTime(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one operator type in a call of the model; `share`: of all operators."""

    op: str
    seconds: float
    share: float
    calls: str


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One way a model was measured: runtime, device, precision and parameters."""

    number: int  # of its result in the run
    result: Result
    model: Model
    summaries: tuple[Summary, ...]  # none if the numbers cannot be trusted
    efficiency: tuple[Efficiency, ...] = ()
    beside: tuple[Launch, ...] = ()  # of its profile, which may have done the build
    against: Speedup | None = None  # torch-eager in fp32, the same model, parameters and device

    def figure(self, metric: str) -> Summary | None:
        return next((s for s in self.summaries if s.metric == metric), None)

    @property
    def speedup(self) -> float | None:
        return None if self.against is None else self.against.value

    @property
    def speedup_doubt(self) -> Note | None:
        return None if self.against is None else self.against.doubt

    @property
    def latency(self) -> Summary | None:
        return self.figure("latency")

    @property
    def measured(self) -> bool:
        return self.latency is not None

    @property
    def builders(self) -> tuple[Launch, ...]:
        """The launches that may have done the build, warm-up included: its own, or those of its profile."""
        own = self.result.launches
        return own if steps_done(own) or not steps_done(self.beside) else self.beside

    @property
    def build_s(self) -> float | None:
        """0: cached; None: nothing to build."""
        return build_seconds(self.builders)

    @property
    def items(self) -> int | None:
        """Items per call, if known: as its launches reported, else as found before."""
        stated = fact(self.result, "items")
        items = self.model.items if stated is None else stated.get("items")
        return items if isinstance(items, int) else None

    @property
    def items_from(self) -> str | None:
        """The evidence for them."""
        items = fact(self.result, "items")
        source = self.model.items_from if items is None else items.get("items_from")
        return source if isinstance(source, str) else None

    @property
    def inputs(self) -> tuple[FoundInput, ...]:
        """Per call; for a file, only its launches report it."""
        inputs = (fact(self.result, "model") or {}).get("inputs") or ()
        try:
            return self.model.inputs or msgspec.convert(inputs, tuple[FoundInput, ...])
        except msgspec.ValidationError:
            return ()

    @property
    def flops_per_item(self) -> float | None:
        """Over all precisions; None if items are not known."""
        return self._fact("flops_per_item")

    @property
    def flops(self) -> float | None:
        """Per call."""
        per_call, per_item = self._fact("flops_per_call"), self.flops_per_item
        if per_call is not None:
            return per_call
        if per_item is not None and self.items:
            return per_item * self.items
        counted = (fact(self.result, "model") or {}).get("flops")
        return float(counted) if isinstance(counted, int | float) else None

    def _fact(self, metric: str) -> float | None:
        values = [s.value for s in self.summaries if s.metric.partition(".")[0] == metric]
        return math.fsum(values) if values else None

    @property
    def flop_per_s(self) -> float | None:
        """Over all precisions."""
        achieved = [e.achieved for e in self.efficiency if e.work.quantity == FLOPS]
        return math.fsum(achieved) if achieved else None

    @property
    def peak_share(self) -> PeakShare | None:
        """Only of models whose arithmetic is known."""
        return share_of_peak(self.efficiency) if self.flop_per_s is not None else None

    @property
    def why_no_share(self) -> str | None:
        """The first reason why there is no share of peak."""
        return next((e.why_no_share for e in self.efficiency if e.work.quantity == FLOPS and e.why_no_share), None)

    @property
    def tf32(self) -> str | None:
        """Where float32 was computed in TF32, in words."""
        details = (fact(self.result, "runtime") or {}).get("details") or {}
        tf32 = details.get("tf32") if isinstance(details, dict) else None
        return tf32 if isinstance(tf32, str) else None

    @property
    def precision(self) -> str:
        """The precision it computed in, as the runtime reported: a model may be bfloat16 itself."""
        precision = (fact(self.result, "runtime") or {}).get("precision")
        return precision if isinstance(precision, str) and precision else self.model.precision

    @property
    def parameter_count(self) -> int:
        parameters = (fact(self.result, "model") or {}).get("parameters")
        return self.model.parameters or (parameters if isinstance(parameters, int) else 0)


class ModelGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One model, on any runtime and with any inputs. `rows`: in the order of the run."""

    source: str  # the script or the file
    rows: tuple[ModelRow, ...]
    profiles: tuple[ModelRow, ...] = ()  # those that timed each operator

    @property
    def every(self) -> tuple[ModelRow, ...]:
        return self.rows + self.profiles

    @property
    def identities(self) -> list[str]:
        return list(dict.fromkeys(row.model.identity for row in self.every))


def model_rows(report: Report) -> list[ModelRow]:
    """One for each result of a model, in the order of the run."""
    rows = []
    for number, result in enumerate(report.run.results):
        name, workload = result.benchmark.name, result.benchmark.workload
        if isinstance(workload, Model):
            found = report.summaries.get(name, ()), report.efficiency.get(name, ())
            rows.append(_row(number, result, workload, *found))
    eager = {
        _compared(row): row
        for row in rows
        if row.result.status is Status.OK
        and (row.model.runtime, row.model.precision) == (DEFAULT_RUNTIME, PRECISIONS[0])
        and row.latency is not None
        and _right(row)
    }
    others: dict[object, tuple[Launch, ...]] = {}
    for row in rows:
        others[_built(row)] = others.get(_built(row), ()) + row.result.launches
    return [
        msgspec.structs.replace(_against(row, eager.get(_compared(row))), beside=others[_built(row)]) for row in rows
    ]


def _against(row: ModelRow, eager: ModelRow | None) -> ModelRow:
    """With its speed-up over eager."""
    if eager is None or not row.measured or not _right(row):
        return row
    reference = MeasuredModel(eager.result, eager.summaries)
    other = reference if row is eager else MeasuredModel(row.result, row.summaries)
    return msgspec.structs.replace(row, against=speedup_over(reference, other))


def grouped(rows: Sequence[ModelRow]) -> list[ModelGroup]:
    """Rows of the same script, class, place, size and node together, in the order of the run."""
    found: dict[tuple[object, ...], list[ModelRow]] = {}
    for row in rows:
        model = row.model
        key = (
            model.script or model.file or model.zoo or row.result.benchmark.source,
            model.class_,
            row.parameter_count,
            model.place,
            row.result.benchmark.labels.get(NODE),
        )
        found.setdefault(key, []).append(row)
    zoos = {row.model.zoo for row in rows}
    names = _shortest({str(path) for path, *_ in found} - zoos)
    return [
        ModelGroup(
            source=names.get(str(path), str(path)),
            rows=tuple(row for row in same if not _only_profile(row)),
            profiles=tuple(row for row in same if _only_profile(row)),
        )
        for (path, *_), same in found.items()
    ]


def _shortest(paths: Collection[str]) -> dict[str, str]:
    """Each by its name, and by as many of its folders as tell it from the others."""
    called: dict[str, list[list[str]]] = {}
    for path in paths:
        called.setdefault(os.path.basename(path), []).append(path.split("/"))
    names = {}
    for alike in called.values():
        for own in alike:
            most = max((_shared_end(own, other) for other in alike if other is not own), default=0)
            names["/".join(own)] = "/".join(own[-1 - most :])
    return names


def _shared_end(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words both end with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(reversed(a), reversed(b), strict=False)))


def operators(row: ModelRow) -> list[OperatorTime]:
    """Slowest first, the sum of the small ones last; empty if it was not profiled."""
    best: dict[str, Summary] = {}
    for s in row.summaries:
        op = s.labels.get("op", "")
        # An operator with another number of calls is another series: the one with most launches counts.
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
    """Everything that must be equal for a speed-up."""
    model, parameters = row.model, row.result.benchmark.parameters
    where = (model.script, model.args, model.file, model.zoo, model.identity, model.device, model.threads)
    return (*where, tuple(sorted(parameters.items())), row.result.benchmark.placement.cores)


def _right(row: ModelRow) -> bool:
    """Whether its outputs are known to be right: a fast wrong answer is no speed-up."""
    found = checked(row.result)
    return found is not None and found.ok and found.claimed


def _built(row: ModelRow) -> tuple[object, ...]:
    """The key that a model and its profile share."""
    return (*_compared(row), row.model.runtime, row.model.precision)
