"""`benchwright.benchmark_model`: a model that this process holds, as the benchmarks of a run."""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

import msgspec
from msgspec.structs import replace

from benchmodels.measure.here import build_here, described, held, is_measured_here, measure_here
from benchmodels.settings import BUILT_BEFORE, BUILT_NOW, PART, settings_from
from benchwright.core.aggregates import workers_count
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.health import Leftovers, Mark
from benchwright.core.job import Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.model import FoundInput
from benchwright.core.stop_rule import Warmup
from benchwright.executors.base import Executor, Listener
from benchwright.executors.local import LocalExecutor
from benchwright.kinds.base import Resolved
from benchwright.kinds.models.benchmarks import (
    USUAL_STOP,
    USUAL_WARMUP,
    model_of,
    on_device,
    variant_name,
    variants,
    with_profile,
)
from benchwright.options.table import Options
from benchwright.runner.resolve import checked_launches
from benchwright.runner.run import RunOrder

if TYPE_CHECKING:
    from benchmodels.measure.here import HeldModel


# What Python code of this process prints, kept from the screen.


@contextmanager
def printed() -> Iterator[io.StringIO]:
    """Has all of it, that of loggers too; afterwards everything goes where it went before.

    No handler is changed: some compute their stream and cannot be given another.
    """
    text = _Captured(sys.stderr)
    with ExitStack() as until_the_end:
        for handler in _handlers_on(sys.stdout, sys.stderr):
            to_text = _ToText(handler, text)
            handler.addFilter(to_text)
            until_the_end.callback(handler.removeFilter, to_text)
        until_the_end.callback(text.end)
        until_the_end.enter_context(redirect_stdout(text))
        until_the_end.enter_context(redirect_stderr(text))
        yield text


class _Captured(io.StringIO):
    """Keeps what is written, until `end`: whoever still holds it then writes to the screen."""

    def __init__(self, screen: TextIO) -> None:
        super().__init__()
        self._screen = screen
        self._ended = False

    def end(self) -> None:
        self._ended = True

    def write(self, text: str) -> int:
        return self._screen.write(text) if self._ended else super().write(text)

    def flush(self) -> None:
        if self._ended:
            self._screen.flush()


class _ToText(logging.Filter):
    """The last filter of a handler: writes the record into the text instead of onto the screen."""

    def __init__(self, handler: logging.StreamHandler[TextIO], text: io.StringIO) -> None:
        super().__init__()
        self._handler = handler
        self._text = text

    def filter(self, record: logging.LogRecord) -> bool:
        self._text.write(self._handler.format(record) + self._handler.terminator)
        return False


def _handlers_on(*screens: TextIO) -> list[logging.StreamHandler[TextIO]]:
    loggers = [logging.getLogger(), *logging.getLogger().manager.loggerDict.values()]
    found = {handler for logger in loggers if isinstance(logger, logging.Logger) for handler in logger.handlers}
    return [each for each in found if isinstance(each, logging.StreamHandler) and each.stream in screens]


# Runs the jobs of a model that this process holds: here if they need the module, else by another executor.


class HeldModelExecutor:
    """`within` runs the processes that measure builds; it is closed with this one."""

    def __init__(self, model: HeldModel, within: Executor) -> None:
        self._model = model
        self._within = within
        self._stopped = False

    def __enter__(self) -> Self:
        self._within.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._within.__exit__(kind, error, trace)

    def machine(self) -> Machine:
        return self._within.machine()

    def end_leftovers(self, marks: Sequence[Mark]) -> Leftovers:
        return self._within.end_leftovers(marks)

    def stop(self) -> None:
        """A model in this process ends by its own stop rule."""
        self._stopped = True
        self._within.stop()

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        return [self._run(job, listener) for job in jobs]

    def _run(self, job: Job, listener: Listener) -> Outcome:
        if self._stopped:
            return Outcome(job=job.id, stopped=True)
        settings = settings_from(job.probe[PART])
        if is_measured_here(settings.runtime):
            with _Written(job, listener) as written, printed() as log:
                written.log = log
                measure_here(self._model, json.dumps({"stream": job.stream, **job.probe}))
            return written.outcome
        with printed() as log:
            built = build_here(self._model, settings)
        if built.failed:
            with _Written(job, listener) as written:
                written.log = log
                written.add(built.events)
            return written.outcome
        part = {**job.probe[PART], "rebuild": "never", "built_by_caller": BUILT_NOW if built.made else BUILT_BEFORE}
        own = msgspec.structs.replace(job, probe={**job.probe, PART: part})
        return self._within.run([own], listener)[0]


class _Written:
    """The frame of a stream, which an agent writes elsewhere."""

    def __init__(self, job: Job, listener: Listener) -> None:
        self._job = job
        self._listener = listener
        self._began_ns = time.perf_counter_ns()
        self._cpu_s = time.process_time()
        self.outcome = Outcome(job=job.id)
        self.log = StringIO()

    def __enter__(self) -> Self:
        job, here = self._job, {"t": self._began_ns, "wall": time.time()}
        start = {"pid": os.getpid(), "argv": job.argv, "cwd": os.getcwd(), "env": {}, "devices": job.devices}
        self.add(
            [
                {"event": "stream", **here, "version": 1, "job": job.id},
                {"event": "start", **here, **start, "cores": None},
            ]
        )
        self._listener.on_started(job.id, os.getpid())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        job, now_ns = self._job, time.perf_counter_ns()
        self.outcome = Outcome(job=job.id, exit_code=0, duration_s=(now_ns - self._began_ns) / 1e9)
        outcome = {name: value for name, value in msgspec.to_builtins(self.outcome).items() if name != "job"}
        end = {"event": "end", "t": now_ns, "wall": time.time(), "cpu_s": time.process_time() - self._cpu_s, **outcome}
        nothing_read = {"event": "extraction", "t": now_ns, "metrics": {}, "lines": 0, "bytes": 0}
        self.add([nothing_read, end])
        if not job.discard_log:
            Path(f"{job.log}.gz").write_bytes(gzip.compress(self.log.getvalue().encode(errors="replace")))
        self._listener.on_finished(self.outcome)

    def add(self, events: Sequence[Mapping[str, Any]]) -> None:
        with open(self._job.stream, "a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(event) + "\n" for event in events)


HERE = "measured in the process that called benchmark_model, beside whatever else it holds"
SET_TO_EVAL = "set to eval() to be measured: it is in training mode"


def order_and_executor(order: RunOrder, model: Any, inputs: Any) -> tuple[RunOrder, HeldModelExecutor]:
    """The run of a model and the executor that measures it; InvalidInput if it is not a module of torch."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        raise InvalidInput(
            f"{type(model).__name__} is not a torch.nn.Module",
            where="benchmark_model",
            remedy="give a module, or run a script with benchwright.run",
        )

    taken = held(model, inputs)
    try:
        facts = described(taken)
    except TypeError as error:  # the inputs do not fit its forward
        raise InvalidInput(str(error), where="inputs", remedy="give what the model is called with") from None
    options = order.options
    benchmarks = _benchmarks(options, facts, taken)
    interleave = len(benchmarks) > 1 if options.interleave is None else options.interleave
    name = options.name or str(facts["class"])
    resolved = Resolved(
        benchmarks=tuple(benchmarks),
        options=checked_launches(replace(options, interleave=interleave, workers=workers_count(os.environ))),
        name=name,
    )
    return msgspec.structs.replace(order, resolved=resolved), HeldModelExecutor(taken, LocalExecutor())


def _benchmarks(options: Options, facts: dict[str, Any], model: HeldModel) -> list[Benchmark]:
    name = options.name or str(facts["class"])
    found: list[Benchmark] = []
    for variant in variants(options, device=facts["device"]):
        workload = model_of(
            options,
            **variant.fields,
            python=sys.executable,
            cwd=os.getcwd(),
            identity=facts["identity"],
            weights=facts["weights"],
            content=facts["content"],
            class_=facts["class"],
            parameters=facts.get("parameters") or 0,
            inputs=msgspec.convert(facts["inputs"], tuple[FoundInput, ...]),
            set_to_eval=bool(model.module.training),
        )
        benchmark = Benchmark(
            name=name + variant_name(workload, variant.swept),
            kind="script",
            workload=workload,
            source=name,
            placement=on_device(variant.device),
            loop="latency",
            parameters=variant.swept,
            labels={"name": name},
            notes=(
                *((HERE,) if is_measured_here(variant.runtime) else ()),
                *((SET_TO_EVAL,) if model.module.training else ()),
            ),
        )
        benchmark = options.applied(benchmark)
        found += with_profile(
            msgspec.structs.replace(
                benchmark,
                stop=benchmark.stop or USUAL_STOP,
                warmup=USUAL_WARMUP if benchmark.warmup == Warmup() else benchmark.warmup,
            )
        )
    return found
