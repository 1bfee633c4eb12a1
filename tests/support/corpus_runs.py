"""Runs of many models made up for reports of corpora: most succeed, some fail in every way there is."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import builders
import model_runs
from example_reports import MACHINE

from benchwright.core.benchmark import Benchmark
from benchwright.core.model import ModelScript, ScriptDiscovery
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Reason, Status
from benchwright.kinds.models.benchmarks import benchmarks_of
from benchwright.options.table import Options
from benchwright.results.kept_runs import Results
from benchwright.runs.base_folder import BaseFolder

RUNTIMES = ("torch-eager", "onnxruntime", "openvino", "torch-compile")
AUTHORS, TASKS = ("google", "meta", "microsoft", "openai", "huggingface"), ("text", "vision", "audio", "graph")
BUSY = Note(text="ran while the machine was busy", evidence="got 81 % of the CPU time it wanted", kind="busy")
_FAILURES = (
    ("export", "unsupported", "Unsupported: data-dependent control flow in line {0}", None),
    ("export", "unsupported", "operator aten::unique is not supported in node '{0}'", "aten::unique"),
    ("convert", "error", "RuntimeError: no kernel for shape {0}x{0}", None),
    ("script", "error", "OSError: config-{0}.json not found", None),
    ("run", "crashed", "the process was killed by SIGSEGV", None),
)


def corpus_run(count: int, *, seed: int = 1, started: str = "2026-11-14T10:00:00+00:00", samples: int = 60) -> Run:
    """`count` models, each on every runtime."""
    draw = random.Random(seed)
    results: list[Result] = []
    for number in range(count):
        results += _model(number, draw, samples)
    results += [
        _withheld(),
        _script("broken.py", "ModuleNotFoundError: No module named 'foo'"),
        _script("empty.py", None),
    ]
    run = builders.run(
        *results, id=f"corpus.{seed}", machine=MACHINE, started=started, name="corpus", uid=f"{seed:032x}"
    )
    return run


def keep(run: Run, cache: Path) -> None:
    """In the store and the folder of a cache, as an imported run is kept."""
    with Results(BaseFolder(cache), str(cache / "store.db")) as results:
        results.keep(run)
    (cache / "runs").mkdir(exist_ok=True)


def _model(number: int, draw: random.Random, samples: int) -> list[Result]:
    name = f"net{number:04d}"
    parameters = int(10 ** draw.uniform(4, 9.5))
    seconds = 2e-11 * parameters ** draw.uniform(0.95, 1.08) + 3e-5
    labels = {"name": name, "author": draw.choice(AUTHORS), "task": draw.choice(TASKS), "test_group": "daily,monthly"}
    identity = f"{draw.getrandbits(64):016x}"
    found = []
    for runtime in RUNTIMES:
        of: dict[str, Any] = {"identity": identity, "parameters": parameters, "class_": f"Net{number}"}
        model = model_runs.model(runtime, script=f"/models/zoo{number % 3}/{name}.py", place=f"{name}.py:21", **of)
        failing = draw.random() < (0.02 if runtime == "torch-eager" else 0.12)
        speed = 1.0 if runtime == "torch-eager" else math.exp(draw.gauss(0.25, 0.35))
        if failing:
            found.append(_result(name, model, labels, _failed(draw, number)))
            continue
        wrong = runtime != "torch-eager" and draw.random() < 0.02
        unsure = draw.random() < 0.01
        check = model_runs.check(
            10 ** draw.uniform(-7, -5), ok=not wrong, claimed=not unsure, detail=_detail(wrong, unsure)
        )
        notes = (BUSY,) if draw.random() < 0.1 else ()
        steps = () if runtime == "torch-eager" else model_runs.BUILT
        facts = {"check": check, "build": model_runs.steps(*steps)}
        status: dict[str, Any] = {"status": Status.FAILED, "reason": Reason.INVALID} if wrong else {}
        launch = model_runs.launch(
            seconds / speed, samples=samples, facts=facts, notes=notes, job=f"{name}.{runtime}.D0", **status
        )
        found.append(_result(name, model, labels, launch))
    return found


def _detail(wrong: bool, unsure: bool) -> str:
    if wrong:
        return "relative L2 error 0.3, at most 1e-4 is allowed"
    return "nothing is claimed: its own calls differ" if unsure else ""


def _failed(draw: random.Random, number: int) -> Launch:
    stage, kind, text, operator = draw.choice(_FAILURES)
    failure = {"stage": stage, "kind": kind, "text": text.format(number), "operator": operator}
    given: dict[str, Any] = {"status": Status.FAILED, "reason": Reason.BUILD_FAILED, "detail": f"in {stage}: {text}"}
    return builders.launch(job=f"net{number}.D0", facts={"started": True, "failure": failure}, **given)


def _result(name: str, model: Any, labels: dict[str, str], launch: Launch) -> Result:
    benchmark = Benchmark(
        name=f"{name}.py::{model.class_}@{model.runtime}",
        kind="script",
        workload=model,
        source=f"{name}.py",
        loop="latency",
        labels=labels,
    )
    return Result(
        benchmark=benchmark, status=launch.status, reason=launch.reason, detail=launch.detail, launches=(launch,)
    )


def _withheld() -> Result:
    model = model_runs.model(identity="f" * 16, class_="Trained")
    why = "it is in training; measure its steps with --as training"
    benchmark = Benchmark(name="train.py::Trained", kind="script", workload=model, source="train.py", withheld=why)
    return Result(benchmark=benchmark, status=Status.SKIPPED, reason=Reason.NOT_MEASURABLE, detail=why)


def _script(name: str, trouble: str | None) -> Result:
    """As a run has it: a script in which no model was found, or that failed before."""
    work = ModelScript(
        path=f"/models/zoo0/{name}",
        args=(),
        cwd="/models",
        python="python",
    )
    asked = Benchmark(name=name, kind="script", workload=work, source=name)
    (made,) = benchmarks_of(asked, ScriptDiscovery(script=name, models=(), exit_code=0, trouble=trouble), Options())
    if trouble is None:
        return Result(benchmark=made, status=Status.SKIPPED, reason=Reason.NOT_MEASURABLE, detail=made.withheld)
    assert isinstance(made.workload, ModelScript)
    assert made.workload.failure is not None
    reason, detail = made.workload.failure
    return Result(benchmark=made, status=Status.FAILED, reason=reason, detail=detail)
