"""Runs of models made up for the tests of reports."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import builders
import msgspec
from example_reports import MACHINE

from benchwright.core.aggregates import aggregate
from benchwright.core.benchmark import Benchmark
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.model import FoundInput, Model
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Reason, Status
from benchwright.kinds.models.report.sections import contribution
from benchwright.report.base import Report
from benchwright.results.after_run import run_remarks, summaries_of

INPUTS = (
    FoundInput(name="input_ids", shape=(1, 128), dtype="int64"),
    FoundInput(name="attention_mask", shape=(1, 128), dtype="int64"),
)
BUILT = ("export", 5.2), ("optimise", 0.9)
GIB = 2**30


def figure(metric: str, *samples: float, unit: str | None = "s", **fields: Any) -> Measurement:
    return builders.measurement(*samples, metric=metric, unit=unit, **({"source": "model"} | fields))


def steps(*named: tuple[str, float], cached: bool = False, ok: bool = True) -> list[dict[str, Any]]:
    return [{"step": name, "seconds": seconds, "cached": cached, "ok": ok} for name, seconds in named]


def check(
    error: float = 2e-6,
    *,
    ok: bool = True,
    claimed: bool = True,
    detail: str = "",
    reference: str = "float64 eager",
) -> dict[str, Any]:
    figures = {"max_abs": 3 * error, "relative_l2": error, "cosine": 1 - error, "tolerance": 1e-4}
    told = {"name": "outputs", "ok": ok, "claimed": ok and claimed, "detail": detail}
    return told | {"figures": figures | {"reference": reference}}


def model(runtime: str = "torch-eager", **fields: Any) -> Model:
    given: dict[str, Any] = {
        "script": "/home/user/bert.py",
        "identity": "8c1f02aa90b1c2d3",
        "class_": "BertModel",
        "parameters": 109_482_240,
        "place": "bert.py:21",
        "inputs": INPUTS,
        "items": 1,
    }
    return Model(runtime=runtime, python="/usr/bin/python3", cwd="/home/user", **(given | fields))


def launch(
    latency_s: float,
    *,
    items: int | None = 1,
    samples: int = 900,
    position: int = 0,
    facts: Mapping[str, Any] = {},
    **fields: Any,
) -> Launch:
    """One that measured so many calls of about `latency_s`. `items` None: how many a call has is not known."""
    draw = random.Random(f"{latency_s} {position}")
    times = [latency_s * draw.lognormvariate(0, 0.03) for _ in range(samples)]
    times.sort(key=lambda _: draw.random())
    labels = {"loop": "latency"}
    what = "call" if items is None else "item"
    measurements = (
        figure("rate", *((items or 1) / t for t in times), unit=f"{what}s/s", source="loop", labels=labels),
        figure("latency", *times, source="loop", labels=labels),
        figure(
            f"flops_per_{what}.fp32", 22.4e9, unit=None, source="give", aggregate="last", direction=Direction.NEITHER
        ),
        figure("time.load", 0.21),
        figure("time.first_run", 0.09),
        figure("time.to_first_result", 0.30),
        figure("memory.host", 0.6 * GIB, unit="B"),
        figure("error.relative_l2", 2e-6, unit=None),
        figure("process.duration", 12.0, source="process"),
        *fields.pop("more", ()),
    )
    given = {"job": f"bert.R{position}.D0", "duration_s": 12.0, "exit_code": 0} | fields
    told = {"started": True, "check": check(), "runtime": {"name": "torch-eager", "version": "2.13.0", "threads": 2}}
    told |= {"items": {"items": items, "items_from": None if items is None else "--items"}}
    return builders.launch(*measurements, position=position, facts=told | dict(facts), **given)


def result(of: Model, *launches: Launch, **fields: Any) -> Result:
    parameters: dict[str, str] = fields.pop("parameters", {})
    name = f"bert.py::{of.class_}{parameters or ''}@{of.runtime},{of.device},{of.precision}" + of.identity[:4] * (
        of.identity != "8c1f02aa90b1c2d3"
    )
    more = {k: fields.pop(k) for k in ("withheld", "labels", "notes") if k in fields}
    benchmark = Benchmark(
        name=name + " profile" * of.profile,
        workload=of,
        source="bert.py",
        parameters=parameters,
        loop="latency",
        **more,
    )
    return Result(benchmark=benchmark, launches=launches, **({"status": Status.OK} | fields))


def failed(of: Model, detail: str, reason: Reason = Reason.BUILD_FAILED, **fields: Any) -> Result:
    """One whose launch told at which stage it failed: `in export: …`."""
    stage = detail.removeprefix("in ").partition(":")[0]
    facts = {"started": True, "failure": {"stage": stage, "kind": "unsupported", "text": detail}}
    facts |= fields.pop("facts", {})
    bad = Launch(job="bert.D0", status=Status.FAILED, reason=reason, detail=detail, exit_code=0, facts=facts)
    return result(of, bad, status=Status.FAILED, reason=reason, detail=detail, **fields)


def profiled(of_runtime: str, times: Mapping[str, float]) -> Result:
    ops = tuple(figure("op.time", seconds, labels={"op": op, "calls": "12"}) for op, seconds in times.items())
    done = Launch(
        job="bert.P.D0", status=Status.OK, measurements=(*ops, figure("process.duration", 3.0, source="process"))
    )
    return result(model(of_runtime, profile=True), done)


def bert() -> list[Result]:
    """Two batches on three runtimes; one that cannot export."""
    found = []
    for batch, identity in ((1, "8c1f02aa90b1c2d3"), (8, "91d2e4b7aa00ff11")):
        inputs = tuple(FoundInput(name=i.name, shape=(batch, 128), dtype="int64") for i in INPUTS)
        common: dict[str, Any] = {"identity": identity, "inputs": inputs, "items": batch}
        point = {"batch_size": str(batch)}
        eager = launch(0.0412 * batch**0.9, items=batch)
        ort = launch(0.0289 * batch**0.9, items=batch, facts={"build": steps(*BUILT)})
        found += [
            result(model(**common), eager, parameters=point),
            result(model("onnxruntime", **common), ort, parameters=point),
            failed(
                model("openvino", **common),
                "in export: unsupported operator aten::foo (bert.py:21 → modeling_bert.py:310)",
                parameters=point,
            ),
        ]
    return found


def report(results: Sequence[Result], *, width: int = 80, **fields: Any) -> Report:
    bad = any(r.status is Status.FAILED for r in results)
    run = Run(
        id="bert.2026-11-15_10:02:11",
        name="bert",
        started="2026-11-15T10:02:11+00:00",
        folder="/home/user/bench/runs/bert.2026-11-15_10:02:11",
        status=Status.FAILED if bad else Status.OK,
        machine=MACHINE,
        results=tuple(results),
    )
    given = {"remarks": run_remarks(run)} | fields
    made = Report(run=run, summaries=summaries_of(run), aggregate=aggregate, width=width, **given)
    return msgspec.structs.replace(made, added=contribution(made))
