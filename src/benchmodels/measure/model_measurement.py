"""Measures one model: loads it, calls it, times it, and checks its outputs against the reference."""

from __future__ import annotations

import gc
import sys
import threading
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import benchprobe
from benchmodels.check.goldens import golden_errors
from benchmodels.check.output_check import NOTHING_CLAIMED, Agreement, is_rounding, rounding_text
from benchmodels.check.reference import FLOAT64, Reference, judged
from benchmodels.failures import TIMED_OUT
from benchmodels.measure.batch import Batch
from benchmodels.measure.generation import refuse_unread, tell_generations, timed_calls
from benchmodels.measure.measured_loops import Caller, latency_loop, streams_times, times_in_runtime
from benchmodels.measure.memory import PeakMemory
from benchmodels.measure.turn import Turn
from benchmodels.measure.work import CallWork
from benchmodels.process_exit import end_children, leave
from benchmodels.reports import HIGHER, LOWER, BuildSteps, Reports
from benchmodels.runtimes.base import OpTime, Runtime, RuntimeOptions, Session, TellsKernels, TimesItself, Unsupported
from benchmodels.runtimes.parts.tf32 import FP32, TF32, Arithmetic, arithmetic, as_seen, without_tf32
from benchmodels.runtimes.parts.torch_modules import use_device
from benchmodels.settings import ModelSettings
from benchmodels.tensors import flatten_call
from benchmodels.types import Arrays, Details, ModelInputs, Value

SLOWEST = 20
OTHER = "other"


class Operator(NamedTuple):
    """All nodes of one type: their seconds and runs in one call of the model."""

    op: str
    seconds: float
    calls: float


def operators(found: Sequence[OpTime]) -> List[Operator]:
    """Times by operator type, slowest first; beyond the first 20 they are summed as `other`."""
    sums: Dict[str, List[float]] = {}
    for each in found:
        of_kind = sums.setdefault(str(each.op), [0.0, 0.0])
        of_kind[0] += float(each.seconds_per_call)
        of_kind[1] += float(each.calls)
    ordered = sorted((Operator(op, s, n) for op, (s, n) in sums.items()), key=lambda each: (-each.seconds, each.op))
    rest = ordered[SLOWEST:]
    if not rest:
        return ordered
    return [*ordered[:SLOWEST], Operator(OTHER, sum(r.seconds for r in rest), sum(r.calls for r in rest))]


def tell_operators(reports: Reports, found: Sequence[OpTime]) -> None:
    """One figure per operator type: its share of a call, in seconds."""
    for op, seconds, times in operators(found):
        reports.measured("op.time", [seconds], "s", LOWER, {"op": op, "calls": f"{times:g}"})


_Errors = Tuple[Optional[float], Optional[float]]
SMALL_BYTES = 16_000_000
FRESH_BYTES = 256_000_000  # of inputs prepared ahead per stream, if calls consume them
BATCH_UNKNOWN = "rates are in calls/s because the batch size is not known; set it with --items N"
WORK_KINDS = {"int8-dynamic": "int8"}


class Subject(NamedTuple):
    """The model to measure. `batch`, `reference` and `work` are called after measuring, so their cost does not count.

    `build_s`: the time its build took; None: it has no build.
    """

    load: Callable[[RuntimeOptions], Session]
    inputs: ModelInputs
    batch: Callable[[], Optional[Batch]]
    reference: Callable[[], Reference]
    work: Callable[[str], CallWork]
    build_s: Optional[float] = None
    generates: bool = False  # its rate is that of tokens


class ModelMeasurement:
    """One model on one runtime. An exception is a failure of `reports.stage`. `endless`: a stop rule ends the loop."""

    def __init__(self, settings: ModelSettings, runtime: Runtime, reports: Reports, endless: bool = True) -> None:
        self._settings = settings
        self._runtime = runtime
        self._options = settings.options
        self._reports = reports
        self._endless = endless
        self._checked = False

    def measure(self, subject: Subject) -> None:
        turn = Turn()
        turn.wait(self._reports)
        use_device(self._options)
        peak = PeakMemory()
        with self._reports.at("load"):
            began = perf_counter_ns()
            session = subject.load(self._options)
            load_s = (perf_counter_ns() - began) / 1e9
            peak.end_phase("load")
        try:
            calls = _Calls(session, subject.inputs, peak)
            outputs = self._first_calls(calls, subject.build_s, load_s)
            peak.end_phase("first call")
            self._tell_runtime(session)
            if self._settings.profile:
                self._profile(calls)
                return
            with turn.quiet():
                self._measure_loops(calls, bool(outputs))
            outputs += calls.of_streams
            self._tell_memory(peak, turn.is_alone)
            with self._reports.at("run"):
                outputs.append(session.outputs(session.run(calls.prepared())))
                if isinstance(session, TellsKernels):
                    session.details.update(session.kernels(calls.fresh()))
        finally:
            session.close()
        turn.pass_on()
        self._reports.event("check_begin")
        with _limited(self._settings.check_timeout_s, self._give_up_check):
            self._examine(subject, session, outputs, turn)

    def _examine(self, subject: Subject, session: Session, outputs: List[Arrays], turn: Turn) -> None:
        """Reports items, FLOPs and the check of the outputs, once the model has been measured."""
        batch = self._tell_items(subject)
        work = subject.work(session.precision)
        stated = arithmetic(session.precision, session.details.get("tf32_allowed", ()), work.kinds)
        errors = self._check(outputs, subject, stated, turn)
        computed, doubt = as_seen(stated, *errors)
        if doubt is not None:
            self._reports.message(doubt, "info" if stated.kinds else "warning")
        if computed.where is not None or computed != stated or isinstance(session, TellsKernels):
            self._tell_runtime(session, computed)
        # Of a model whose weights alone are smaller, the type that it computes in.
        self._tell_work(
            work, batch, computed._replace(precision=session.details.get("computes_in", computed.precision))
        )
        if self._settings.goldens:
            self._compare(outputs[-1])

    def _first_calls(self, calls: _Calls, build_s: Optional[float], load_s: float) -> List[Details]:
        """The outputs of the first call, unless they are large: they would count as memory of the runtime."""
        with self._reports.at("first_run"):
            if calls.session.first_run_builds:
                build_s = self._compile(calls)
            began = perf_counter_ns()
            result = calls.session.run(calls.prepared())
            first_s = (perf_counter_ns() - began) / 1e9
            refuse_unread(result)
            outputs = calls.looked_at(result)
        measured, labels = self._reports.measured, _start()
        measured("time.load", [load_s], labels=labels)
        measured("time.first_run", [first_s])
        measured("time.to_first_result", [load_s + (build_s or 0.0) + first_s], labels=labels)
        return [outputs] if sum(array.nbytes for array in outputs.values()) <= SMALL_BYTES else []

    def _compile(self, calls: _Calls) -> float:
        steps = BuildSteps(self._reports, self._runtime.versions())
        with _limited(self._settings.build_timeout, self._give_up_compiling), steps.step("compile"):
            result = calls.session.run(calls.prepared())
        calls.looked_at(result)
        self._reports.measured("time.build", [steps.seconds], labels=_start())
        self._reports.measured("build.compile", [steps.seconds], labels=_start())
        return steps.seconds

    def _give_up_compiling(self) -> None:
        limit_s = self._settings.build_timeout
        self._reports.failure(TIMED_OUT, f"compile took longer than {limit_s:g} s", "compile")

    def _measure_loops(self, calls: _Calls, keep: bool) -> None:
        with self._reports.at("run"):
            fresh = calls.fresh if calls.used_up else None
            generations = timed_calls(calls.session)
            before = len(generations or ())
            latency_loop(calls.session.run, calls.prepared(), fresh, self._endless)
            if generations is not None:
                tell_generations(self._reports, generations[before:])
            if isinstance(calls.session, TimesItself) and fresh is None:
                inside, around = times_in_runtime(calls.session, calls.prepared())
                self._reports.measured("time.in_runtime", inside)
                self._reports.measured("time.around_runtime", around)
            if self._options.streams > 1:
                self._measure_streams(calls, keep)

    def _measure_streams(self, calls: _Calls, keep: bool) -> None:
        streams = self._options.streams
        makers = [lambda: calls.new_caller(keep) for _ in range(streams)]
        if calls.used_up:
            with calls.apart():  # the inputs of many calls are our memory, not the model's
                times = streams_times(makers, max(1, FRESH_BYTES // max(1, calls.input_bytes())))
        else:
            times = streams_times(makers)
        labels = {"streams": str(streams)}
        self._reports.measured("throughput.streams", times.rates, "calls/s", HIGHER, labels)
        self._reports.measured("latency.streams", times.seconds, labels=labels)

    def _profile(self, calls: _Calls) -> None:
        with self._reports.at("run"):
            found = calls.session.profile(calls.prepared(), self._settings.profile_calls)
            if not found:
                raise Unsupported("run", f"the profiler of {self._runtime.name} saw no operator", kind="error")
            tell_operators(self._reports, found)

    def _tell_runtime(self, session: Session, computed: Optional[Arithmetic] = None) -> None:
        """Reported again once the model's arithmetic is known; the last report counts."""
        options, details = self._options, session.details
        if computed is not None and (computed.where is not None or "tf32_allowed" in details):
            details = {**details, "tf32": computed.where}
        self._reports.event(
            "runtime",
            name=self._runtime.name,
            version=self._runtime.version(),
            device=options.device,
            provider=session.provider,
            threads=details.get("threads", options.threads),
            wait_policy=details.get("wait_policy"),
            precision=session.precision if computed is None else computed.precision,
            streams=options.streams,
            details={key: value for key, value in details.items() if key not in ("threads", "wait_policy")},
        )

    def _tell_memory(self, peak: PeakMemory, alone: bool) -> None:
        host = peak.host_bytes()
        self._reports.measured("memory.host", [host], "B", labels={"bound": "upper"} if peak.is_upper_bound else {})
        peak.end_phase("measured")
        device = peak.device_bytes()
        if device is not None:
            self._reports.measured("memory.device", [device], "B")
        for phase, size in peak.device_phases.items():
            self._reports.measured("memory.device_peak", [size], "B", labels={"phase": phase})
        for metric, value in peak.device_view(alone).items():
            self._reports.measured(metric, [value], "ratio" if metric.endswith("fragmentation") else "B")

    def _tell_items(self, subject: Subject) -> Optional[Batch]:
        """Items per call. The loop counts calls; readers multiply."""
        with self._reports.at("check"):
            batch = subject.batch()
        items, source = (None, None) if batch is None else batch
        self._reports.event("items", items=items, items_from=source)
        if batch is None and not subject.generates:
            self._reports.message(BATCH_UNKNOWN)
        return batch

    def _tell_work(self, work: CallWork, batch: Optional[Batch], computed: Arithmetic) -> None:
        figures: Dict[str, float] = {}
        what, items = ("call", 1) if batch is None else ("item", batch.items)
        for precision, flops in _by_precision(work, computed).items():
            figures[f"flops_per_{what}.{WORK_KINDS.get(precision, precision)}"] = flops / items
        if work.bytes_:
            figures[f"bytes_per_{what}"] = work.bytes_ / items
        if figures:
            benchprobe.give(**figures)
        if work.note:
            if work.flops is None:
                self._reports.message(f"arithmetic not counted: {work.note}")
            else:
                self._reports.message(f"work: {work.note}", "info")

    def _check(self, outputs: List[Arrays], subject: Subject, computed: Arithmetic, turn: Turn) -> _Errors:
        """The relative error of the outputs, and the model's own in float32, where they can be compared."""
        with self._reports.at("check"):
            gc.collect()  # the session's copies of the weights
            try:
                with without_tf32():  # it would count as the model's own error
                    reference = subject.reference()
            except Exception as error:
                text = f"not checked, no reference: {type(error).__name__}: {error}"
                self._tell_check(Agreement(False, text[:1000], {}, False))
                return None, None
            if reference.given_up_s is not None:
                self._tell_unchecked(f"computing its reference took longer than {reference.given_up_s:g} s")
                return None, None
            found = judged(outputs, reference, TF32 if computed.kinds else computed.precision)
            if not found.ok and computed.kinds and is_rounding(found):
                found = self._explained_by_tf32(found, reference, subject, turn)
            if reference.note:
                self._reports.message(f"the reference is {reference.label}: {reference.note}", "info")
            if found.ok and not found.claimed:
                self._reports.message(found.detail)
            self._tell_check(found)
            if reference.label != FLOAT64 or not found.claimed:
                return None, None
            return found.figures.get("relative_l2"), max(
                (each.relative_l2 or 0.0 for each in reference.own), default=0.0
            )

    def _explained_by_tf32(self, found: Agreement, reference: Reference, subject: Subject, turn: Turn) -> Agreement:
        """Outputs that are off by rounding are those of TF32 if the same model without it is right."""
        turn.wait(self._reports)
        try:
            with without_tf32():
                session = subject.load(self._options._replace(tf32=False))
                try:
                    exact = session.outputs(session.run(session.prepare(subject.inputs)))
                finally:
                    session.close()
        except Exception as error:  # reported with the results
            return found._replace(
                detail=f"{found.detail}; without TF32 it fails: {type(error).__name__}: {error}"[:1000]
            )
        finally:
            turn.pass_on()
        without = judged([exact], reference, FP32)
        if not without.ok:
            return found._replace(detail=f"{found.detail}; TF32 does not explain it: without, {without.detail}"[:1000])
        text = f"TF32 rounding {rounding_text(found)}: without TF32, {without.detail}"
        self._reports.message(text, "info")
        return Agreement(True, text, found.figures, without.claimed)

    def _give_up_check(self) -> None:
        """Keeps the measurements, unchecked."""
        if not self._checked:
            self._tell_unchecked(f"checking its outputs took longer than {self._settings.check_timeout_s:g} s")

    def _tell_unchecked(self, why: str) -> None:
        text = f"not checked: {why}, so {NOTHING_CLAIMED}"
        self._reports.message(text)
        self._tell_check(Agreement(True, text, {}, False))

    def _compare(self, outputs: Arrays) -> None:
        """The outputs of the last call with golden ones."""
        with self._reports.at("check"):
            for found in golden_errors(outputs, self._settings.goldens, self._settings.tolerance):
                self._reports.event("compared", **found._asdict())

    def _tell_check(self, found: Agreement) -> None:
        self._checked = True
        fields = {"ok": found.ok, "claimed": found.claimed, "detail": found.detail, "figures": found.figures}
        self._reports.event("check", name="outputs", **fields)
        if found.ok and not found.claimed:  # an error without a claim must not be compared
            return
        for name, direction in (
            ("max_abs", "lower"),
            ("relative_l2", "lower"),
            ("cosine", "higher"),
            ("equal", "higher"),
        ):
            if name in found.figures:
                self._reports.measured(f"error.{name}", [found.figures[name]], None, direction)


def _by_precision(work: CallWork, computed: Arithmetic) -> Dict[str, float]:
    """The arithmetic of a call by precision: TF32 apart from the rest."""
    if not work.flops:
        return {}
    fast = sum(flops for kind, flops in work.kinds.items() if kind in computed.kinds)
    if computed.precision != FP32 or not fast:
        return {computed.precision: work.flops}
    return {TF32: fast, FP32: work.flops - fast}


class _Calls:
    """A session and its prepared inputs, which are prepared anew for each call if calls consume them."""

    def __init__(self, session: Session, inputs: ModelInputs, peak: PeakMemory) -> None:
        self.session = session
        self._inputs = inputs
        self._prepared = session.prepare(inputs)
        self._peak = peak
        self._changed = False
        self.of_streams: List[Details] = []
        self._making = threading.Lock()

    @property
    def used_up(self) -> bool:
        return self._changed or self.session.consumes_inputs

    def looked_at(self, result: Value) -> Details:
        """The outputs of the last call; also checks whether that call changed its inputs."""
        with self.apart():
            outputs = self.session.outputs(result)
            if not self.used_up:
                self._changed = self.session.inputs_changed(self._prepared, self._inputs)
            if self.used_up:
                self._prepared = self.fresh()
            return outputs

    def prepared(self) -> Any:
        """The inputs of the next call. Follow it with `looked_at`, unless it is the last."""
        return self._prepared

    def fresh(self) -> Any:
        return self.session.prepare(self._inputs)

    def apart(self) -> ContextManager[None]:
        """Memory allocated inside does not count as the model's."""
        return self._peak.apart()

    def input_bytes(self) -> int:
        inputs = self._inputs
        if isinstance(inputs, Mapping):
            return sum(int(array.nbytes) for array in inputs.values())
        return sum(tensor.numel() * tensor.element_size() for _, tensor in flatten_call(inputs.args, inputs.kwargs))

    def new_caller(self, keep: bool) -> Caller:
        """One more stream, made in its own thread. `keep`: check the outputs of its last call, since it may have its own engine."""

        def look(result: Value) -> None:
            if keep:
                self.of_streams.append(stream.outputs(result))

        with self._making:
            stream = self.session.new_stream()
            if self.used_up:
                return Caller(stream.run, lambda: stream.prepare(self._inputs), stream.close, look)
            prepared = stream.prepare(self._inputs)
            return Caller(stream.run, lambda: prepared, stream.close, look)


def _start() -> Dict[str, str]:
    """The label of times without the imports of torch's compiler, since this process was forked from one that had made them."""
    return {"start": "warm"} if "benchmodels.runtimes.parts.compile_imports" in sys.modules else {}


@contextmanager
def _limited(seconds: float, give_up: Callable[[], None]) -> Iterator[None]:
    """Ends this process after `give_up` if it takes longer."""
    done = threading.Event()

    def watch() -> None:
        if not done.wait(seconds):
            give_up()
            end_children()
            leave(0)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()
