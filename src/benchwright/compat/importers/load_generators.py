"""Results of tools that load servers of language models: `vllm bench serve --save-result`, guidellm and aiperf.

They count latencies from the sending of a request, not from its planned time: a label says so, and keeps them from being compared
with ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.machine import UNKNOWN
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Run
from benchwright.runs.foreign_json import body_of, load, shaped
from benchwright.runs.imported_run import as_text, instant, make_machine, make_run, measurement, one_launch

FROM_SENDING = {"counted": "from sending"}
_FIRST, _PER_TOKEN, _GAP, _WHOLE = "time.first_token", "time.per_token", "time.chunk_gap", "time.request"
_REQUESTS, _OUTPUT = "throughput.requests", "throughput.output_tokens"


def _time(metric: str, samples: list[float], statistic: str = "") -> Measurement:
    labels = FROM_SENDING | ({"statistic": statistic} if statistic else {})
    return measurement(metric, "s", Direction.LOWER, samples, labels=labels)


def _rate(metric: str, unit: str, value: float) -> Measurement:
    return measurement(metric, unit, Direction.HIGHER, (value,))


def _benchmark(model: str, tool: str, parameters: Mapping[str, object]) -> Benchmark:
    return Benchmark(
        name=model,
        workload=Command(argv=(tool,), cwd=UNKNOWN),
        source=tool,
        parameters={key: as_text(value) for key, value in parameters.items() if value is not None},
    )


class _VllmFile(msgspec.Struct, frozen=True):
    model_id: str
    request_throughput: float
    output_throughput: float | None = None
    date: str | None = None
    num_prompts: int | None = None
    completed: int | None = None
    request_rate: float | str | None = None
    max_concurrency: int | None = None
    median_ttft_ms: float | None = None
    median_tpot_ms: float | None = None
    median_itl_ms: float | None = None
    median_e2el_ms: float | None = None
    p99_ttft_ms: float | None = None
    ttfts: list[float] | None = None  # of --save-detailed, in seconds
    itls: list[list[float]] | None = None
    errors: list[str] | None = None


class VllmImporter:
    """Of failed requests, detailed results hold zeros and an error: those are left out."""

    name = "vllm"

    def recognises(self, path: Path) -> bool:
        body = body_of(path)
        return isinstance(body, dict) and {"model_id", "request_throughput", "median_ttft_ms"} <= body.keys()

    def read(self, path: Path) -> list[Run]:
        file = load(path)
        body = shaped(file.body, _VllmFile, where=file.path, tool=self.name)
        given = {"rate": body.request_rate, "concurrency": body.max_concurrency, "requests": body.num_prompts}
        benchmark = _benchmark(body.model_id, self.name, given)
        result = one_launch(benchmark, self._measurements(body), position=0)
        started = instant(body.date, "%Y%m%d-%H%M%S")
        return make_run(file, self.name, [result], machine=make_machine(), started=started)

    def _measurements(self, body: _VllmFile) -> Iterator[Measurement]:
        failed = {i for i, text in enumerate(body.errors or ()) if text}
        firsts = [v for i, v in enumerate(body.ttfts or ()) if i not in failed]
        gaps = [v for i, each in enumerate(body.itls or ()) if i not in failed for v in each]
        given = ((_FIRST, firsts, body.median_ttft_ms), (_GAP, gaps, body.median_itl_ms))
        for metric, samples, middle in given:
            if samples:
                yield _time(metric, samples)
            elif middle is not None:
                yield _time(metric, [middle / 1000], "median")
        for metric, middle in ((_PER_TOKEN, body.median_tpot_ms), (_WHOLE, body.median_e2el_ms)):
            if middle is not None:
                yield _time(metric, [middle / 1000], "median")
        if body.p99_ttft_ms is not None:
            yield _time(f"{_FIRST}.p99", [body.p99_ttft_ms / 1000], "p99")
        yield _rate(_REQUESTS, "requests/s", body.request_throughput)
        if body.output_throughput is not None:
            yield _rate(_OUTPUT, "tokens/s", body.output_throughput)
        if body.completed is not None and body.num_prompts is not None:
            missing = float(max(0, body.num_prompts - body.completed))
            yield measurement("failures", None, Direction.LOWER, (missing,), aggregate="last")


class _Spread(msgspec.Struct, frozen=True):
    median: float | None = None
    mean: float | None = None


class _ByOutcome(msgspec.Struct, frozen=True):
    successful: _Spread = _Spread()


class _GuidellmFile(msgspec.Struct, frozen=True):
    benchmarks: list[dict[str, object]]


# Its time per output token counts from the sending and so includes the first one; what we call that is its inter-token latency.
_GUIDELLM = {
    "time_to_first_token_ms": (_FIRST, 1e-3),
    "inter_token_latency_ms": (_PER_TOKEN, 1e-3),
    "request_latency": (_WHOLE, 1.0),
}
_GUIDELLM_RATES = {"requests_per_second": (_REQUESTS, "requests/s"), "output_tokens_per_second": (_OUTPUT, "tokens/s")}


class GuidellmImporter:
    """Each of its benchmarks, one for each rate, is one here; of its figures those of successful requests."""

    name = "guidellm"

    def recognises(self, path: Path) -> bool:
        body = body_of(path)
        found = body.get("benchmarks") if isinstance(body, dict) else None
        first = found[0] if isinstance(found, list) and found else None
        metrics = first.get("metrics") if isinstance(first, dict) else None
        return isinstance(metrics, dict) and "time_to_first_token_ms" in metrics

    def read(self, path: Path) -> list[Run]:
        file = load(path)
        body = shaped(file.body, _GuidellmFile, where=file.path, tool=self.name)
        results = []
        for number, each in enumerate(body.benchmarks):
            metrics = shaped(each.get("metrics"), dict[str, object], where=file.path, tool=self.name)
            known = {name: metrics[name] for name in (*_GUIDELLM, *_GUIDELLM_RATES) if name in metrics}
            found = shaped(known, dict[str, _ByOutcome], where=file.path, tool=self.name)
            benchmark = _benchmark(f"guidellm {number + 1}", self.name, {})
            results.append(one_launch(benchmark, self._measurements(found), position=number))
        return make_run(file, self.name, results, machine=make_machine(), started=None)

    def _measurements(self, found: Mapping[str, _ByOutcome]) -> Iterator[Measurement]:
        for name, (metric, factor) in _GUIDELLM.items():
            if name in found and (middle := found[name].successful.median) is not None:
                yield _time(metric, [middle * factor], "median")
        for name, (metric, unit) in _GUIDELLM_RATES.items():
            if name in found and (mean := found[name].successful.mean) is not None:
                yield _rate(metric, unit, mean)


class _AiperfFigure(msgspec.Struct, frozen=True):
    unit: str
    avg: float | None = None
    p50: float | None = None


class _AiperfFile(msgspec.Struct, frozen=True):
    request_latency: _AiperfFigure
    start_time: str | None = None


_AIPERF = {"time_to_first_token": _FIRST, "inter_token_latency": _PER_TOKEN, "request_latency": _WHOLE}
_AIPERF_RATES = {"request_throughput": (_REQUESTS, "requests/s"), "output_token_throughput": (_OUTPUT, "tokens/s")}
_UNITS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "us": 1e-6, "ns": 1e-9}


class AiperfImporter:
    """`profile_export_aiperf.json`. Its inter-token latency is a mean over a request: what we call time per output token."""

    name = "aiperf"

    def recognises(self, path: Path) -> bool:
        body = body_of(path)
        latency = body.get("request_latency") if isinstance(body, dict) else None
        return isinstance(latency, dict) and {"unit", "p50"} <= latency.keys()

    def read(self, path: Path) -> list[Run]:
        file = load(path)
        body = shaped(file.body, _AiperfFile, where=file.path, tool=self.name)
        known = {name: file.body[name] for name in (*_AIPERF, *_AIPERF_RATES) if file.body.get(name) is not None}
        found = shaped(known, dict[str, _AiperfFigure], where=file.path, tool=self.name)
        result = one_launch(_benchmark("aiperf", self.name, {}), self._measurements(found), position=0)
        return make_run(file, self.name, [result], machine=make_machine(), started=instant(body.start_time))

    def _measurements(self, found: Mapping[str, _AiperfFigure]) -> Iterator[Measurement]:
        for name, metric in _AIPERF.items():
            figure = found.get(name)
            if figure is not None and figure.p50 is not None and figure.unit in _UNITS:
                yield _time(metric, [figure.p50 * _UNITS[figure.unit]], "median")
        for name, (metric, unit) in _AIPERF_RATES.items():
            if (figure := found.get(name)) is not None and figure.avg is not None:
                yield _rate(metric, unit, figure.avg)
