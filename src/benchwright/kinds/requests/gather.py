"""Reads what the client saw: measurements of the requests that were answered, failures by reason, and whether to believe it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

from msgspec.structs import replace

from benchload.settings import OPEN, Objective, parse_load, parse_objective
from benchwright.analysis.statistics.request_series import percentile_interval, queue_grew, settled_from
from benchwright.core.aggregates import percentile
from benchwright.core.measurement import DELIVERED, Measurement
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.status import Reason, Status
from benchwright.core.stop_rule import Warmup
from benchwright.record.base import Gatherer
from benchwright.record.samples import OF_DEVICES, OF_PACKAGES, Samples, Span
from benchwright.record.stream_file import Event
from benchwright.record.verdict import LaunchVerdict

CLIENT_MODULE = ("-m", "benchload")
CLIENT = "client"  # the source of its measurements
FIRST_TOKEN, PER_TOKEN, CHUNK_GAP, WHOLE = "time.first_token", "time.per_token", "time.chunk_gap", "time.request"
LATENCIES = (FIRST_TOKEN, PER_TOKEN, CHUNK_GAP, WHOLE)
SEND_LAG, FAILURES, CAPACITY, GOODPUT, MET = "time.send_lag", "failures", "capacity", "goodput", "slo.met"
REQUESTS, OUTPUT, INPUT = "throughput.requests", "throughput.output_tokens", "throughput.input_tokens"
ENERGY = "energy.output_token"
TAIL = 99.0
UNFINISHED = "unfinished"
_NS = 1e-9
_LATE_S, _MOST_LATE = 0.010, 0.05  # of the requests
_MOST_CPU, _MOST_FULL = 0.8, 0.1  # of a core; of the seconds
_MOST_WAITED = (
    0.03  # for a core: each time the client woke up, of the median time to the first token; the server, of all time
)
_MOST_FAILED, _FEWEST_ANSWERED = 0.01, 0.5
_COLUMNS = "number planned begun first last ended chunks gaps tokens_in tokens_out cached asked failure".split()
_HERE = ("apart", "shared", "unknown")  # where the server is: on this machine
_CORES = {
    "shared": "the server runs on the client's cores",
    "unknown": "the server runs on this machine, and its cores cannot be seen",
}


def is_client(words: Sequence[str]) -> bool:
    """Whether a command line starts our client."""
    return tuple(words[1:3]) == CLIENT_MODULE


class SeenRequest(NamedTuple):
    """One request, as the client recorded it; times in ns."""

    number: int
    planned: int
    begun: int
    first: int | None
    last: int | None
    ended: int
    chunks: int
    gaps: Sequence[int]
    tokens_in: int | None
    tokens_out: int | None
    cached: int | None
    asked: int
    failure: str | None
    level: int = 1

    @property
    def first_s(self) -> float | None:
        return None if self.first is None else (self.first - self.planned) * _NS

    @property
    def whole_s(self) -> float:
        return (self.ended - self.planned) * _NS

    @property
    def per_token_s(self) -> float | None:
        """After the first token; None for a single one."""
        if self.first is None or self.last is None or not self.tokens_out or self.tokens_out < 2:
            return None
        return (self.last - self.first) * _NS / (self.tokens_out - 1)

    @property
    def contradicts_usage(self) -> bool:
        """Whether the server's count of tokens cannot be: fewer than chunks of text, or more than were allowed."""
        return self.tokens_out is not None and not self.chunks <= self.tokens_out <= self.asked + 1

    def meets(self, objective: Objective) -> bool:
        times = {"ttft": self.first_s, "tpot": self.per_token_s, "e2e": self.whole_s}
        return self.failure is None and objective.met(times)


class SeenRequests:
    """The requests of a launch, by when they were planned."""

    def __init__(self, requests: Iterable[SeenRequest], warmup: Warmup, open_loop: bool) -> None:
        self.all = sorted((r for r in requests if r.failure != UNFINISHED), key=lambda r: (r.planned, r.number))
        self.answered = [r for r in self.all if r.failure is None]
        self.failures = Counter(r.failure for r in self.all if r.failure is not None)
        self.overloaded = open_loop and queue_grew([r.planned for r in self.all], [r.ended for r in self.all])
        self.warm = self._warm(warmup)

    def _warm(self, rule: Warmup) -> int:
        """How many of those answered are warm-up."""
        if rule.steps is not None:
            return min(rule.steps, len(self.answered))
        if rule.seconds is not None and self.all:
            limit = self.all[0].planned + rule.seconds / _NS
            return sum(r.planned < limit for r in self.answered)
        return 0 if self.overloaded else settled_from([r.whole_s for r in self.answered])

    @property
    def measured(self) -> list[SeenRequest]:
        return self.answered[self.warm :]

    @property
    def span_s(self) -> float:
        """From the first measured request's planned time to the last answer."""
        kept = self.measured
        return (max(r.ended for r in kept) - kept[0].planned) * _NS if kept else 0.0


class RequestsGatherer(Gatherer):
    """Gathers the events of one launch of the client."""

    measures_itself = True

    def __init__(self, warmup: Warmup, *, alone: bool = False) -> None:
        """`alone`: the server is not part of the launch."""
        self._warmup = warmup
        self._alone = alone
        self._samples = Samples()
        self._rows: list[SeenRequest] = []
        self._told: dict[str, Event] = {}
        self._levels: dict[int, dict[str, Any]] = {}
        self._loads: list[Event] = []
        self._said: dict[str, str] = {}

    def add(self, event: Event) -> None:
        name = event["event"]
        if name == "requests":
            columns = [event[column] for column in _COLUMNS]
            self._rows += [SeenRequest(*row)._replace(level=event["level"]) for row in zip(*columns, strict=True)]
            self._said |= event.get("said") or {}
        elif name == "server_load":
            self._loads.append(event)
        elif name in ("level", "level_end"):
            self._levels.setdefault(int(event["number"]), {}).update(
                {k: v for k, v in event.items() if k not in ("event", "process", "t")}
            )
        elif name == "failure":
            self._told.setdefault(name, event)
        elif name in ("endpoint", "endpoint_end", "capacity"):
            self._told[name] = event

    def sampled(self, event: Event) -> None:
        if {OF_DEVICES, OF_PACKAGES} & event.get("values", {}).keys():
            self._samples.add(event)

    @property
    def watches_waiting(self) -> bool:  # type: ignore[override]
        return self._alone and bool(self._end.get("wait_ns"))

    @property
    def span(self) -> Span | None:  # type: ignore[override]
        kept = self._requests.measured
        return (kept[0].planned, max(r.ended for r in kept)) if kept else None

    def interpreted(self, found: list[Measurement]) -> list[Measurement]:
        """Time and memory of a client without its server are of no interest to who compares servers."""
        if not self._alone:
            return found
        ours = ("process.", "memory.")
        label = {"process": CLIENT}
        return [replace(m, labels=m.labels | label) if m.metric.startswith(ours) else m for m in found]

    @cached_property
    def _about(self) -> Event:
        return self._told.get("endpoint") or {}

    @property
    def _end(self) -> Event:
        return self._told.get("endpoint_end") or {}

    @property
    def _sweeps(self) -> bool:
        return bool(self._about.get("sweep"))

    @cached_property
    def _objective(self) -> Objective | None:
        text = self._about.get("slo")
        return parse_objective(text) if text else None

    @cached_property
    def _requests(self) -> SeenRequests:
        return SeenRequests(self._rows, self._warmup, self._about.get("loop") == OPEN and not self._sweeps)

    @cached_property
    def _labels(self) -> dict[str, str]:
        """A closed loop is never compared with an open one: their figures are different things."""
        load = parse_load(str(self._about.get("load") or "offline"))
        return {} if load.loop == OPEN else {"load": load.words}

    @cached_property
    def _usage(self) -> str:
        """ok, missing or wrong."""
        answered = self._requests.answered
        if any(r.contradicts_usage for r in answered):
            return "wrong"
        return "missing" if any(r.tokens_out is None or r.tokens_in is None for r in answered) else "ok"

    # -- measurements ----------------------------------------------------------------------------------------------

    def measurements(self) -> list[Measurement]:
        if self._sweeps:
            rate = (self._told.get("capacity") or {}).get("rate")
            return [] if rate is None else [self._rate(CAPACITY, "requests/s", float(rate)), *self._of_the_client()]
        found = [] if self._requests.overloaded else self._latencies()
        beside = [*self._failures(), *self._of_the_client(), *self._of_the_server(), *self._energy()]
        return [*found, *self._rates(), *beside]

    def _latencies(self) -> list[Measurement]:
        readings: dict[str, Callable[[SeenRequest], Sequence[float | None]]] = {
            FIRST_TOKEN: lambda r: (r.first_s,),
            WHOLE: lambda r: (r.whole_s,),
            PER_TOKEN: lambda r: (r.per_token_s,) if self._usage == "ok" else (),
            CHUNK_GAP: lambda r: [gap * _NS for gap in r.gaps],
        }
        found = []
        for metric, read in readings.items():
            warm, kept = (
                [v for r in part for v in read(r) if v is not None]
                for part in (self._requests.answered[: self._requests.warm], self._requests.measured)
            )
            if not kept:
                continue
            found.append(self._measurement(metric, "s", kept, warm))
            if percentile_interval(kept, TAIL) is not None:
                found.append(self._measurement(f"{metric}.p99", "s", [percentile(kept, TAIL)], aggregate="last"))
        return found

    def _rates(self) -> list[Measurement]:
        kept, span_s = self._requests.measured, self._requests.span_s
        if not kept or span_s <= 0:
            return []
        found = [self._rate(REQUESTS, "requests/s", len(kept) / span_s)]
        if self._usage == "ok":
            found.append(self._rate(OUTPUT, "tokens/s", sum(r.tokens_out or 0 for r in kept) / span_s))
            found.append(self._rate(INPUT, "tokens/s", sum(r.tokens_in or 0 for r in kept) / span_s))
        objective = self._objective
        if objective is not None:
            # Failed requests do not meet it.
            asked = [r for r in self._requests.all if r.planned >= kept[0].planned]
            met = sum(r.meets(objective) for r in asked)
            found.append(self._rate(GOODPUT, "requests/s", met / span_s))
            found.append(
                self._measurement(MET, "%", [100 * met / len(asked)], direction=Direction.HIGHER, aggregate="last")
            )
        return found

    def _failures(self) -> list[Measurement]:
        return [
            self._measurement(
                FAILURES, None, [float(count)], aggregate="last", source="sampler", labels={"reason": reason}
            )
            for reason, count in sorted(self._requests.failures.items())
        ]

    def _of_the_client(self) -> list[Measurement]:
        lags = [(r.begun - r.planned) * _NS for r in self._requests.all]
        return [self._measurement(SEND_LAG, "s", lags, source="sampler")] if lags else []

    def _of_the_server(self) -> list[Measurement]:
        found = []
        for name, unit, factor in (("running", "requests", 1.0), ("waiting", "requests", 1.0), ("cache", "%", 100.0)):
            values = [float(event[name]) * factor for event in self._loads if name in event]
            if values:
                neither = Direction.NEITHER
                found.append(
                    self._measurement(
                        f"server.{name}", unit, values, direction=neither, aggregate="average", source="sampler"
                    )
                )
        cached = [r for r in self._requests.measured if r.cached is not None and r.tokens_in]
        if cached:
            share = 100 * sum(r.cached or 0 for r in cached) / sum(r.tokens_in or 0 for r in cached)
            found.append(
                self._measurement(
                    "server.cached_prompt",
                    "%",
                    [share],
                    direction=Direction.NEITHER,
                    aggregate="last",
                    source="sampler",
                )
            )
        return found

    def _energy(self) -> Iterable[Measurement]:
        """Joules of all GPUs, and of the processors, for each token that was answered; only if they are the server's."""
        tokens, here = sum(r.tokens_out or 0 for r in self._requests.measured), self._end.get("cores") in _HERE
        if self._alone or not tokens or self._usage != "ok" or not here or self.span is None:
            return
        for counter, device in ((OF_DEVICES, "gpu"), (OF_PACKAGES, "cpu")):
            used = self._samples.energy_j([self.span], counter)
            if used is not None:
                yield self._measurement(
                    ENERGY, "J", [used / tokens], aggregate="last", source="sampler", labels={"device": device}
                )

    def _rate(self, metric: str, unit: str, value: float) -> Measurement:
        return self._measurement(metric, unit, [value], direction=Direction.HIGHER, aggregate=DELIVERED, value=value)

    def _measurement(
        self,
        metric: str,
        unit: str | None,
        samples: Sequence[float],
        warm: Sequence[float] = (),
        *,
        direction: Direction = Direction.LOWER,
        aggregate: str = "median",
        source: str = CLIENT,
        labels: dict[str, str] | None = None,
        value: float | None = None,
    ) -> Measurement:
        return Measurement(
            metric=metric,
            unit=unit,
            direction=direction,
            samples=tuple(samples),
            warmup_samples=tuple(warm),
            source=source,
            aggregate=aggregate,
            labels=self._labels | (labels or {}),
            value=value,
        )

    # -- whether to believe it -------------------------------------------------------------------------------------

    def judge(self, found: list[Measurement]) -> LaunchVerdict | None:
        failure = self._told.get("failure")
        if failure is not None:
            return LaunchVerdict(Status.FAILED, Reason.NO_DATA, str(failure.get("text") or "the client failed"))
        if "endpoint_end" not in self._told:
            return LaunchVerdict(Status.FAILED, Reason.NO_DATA, "the client ended before it had measured anything")
        asked, answered = len(self._requests.all), len(self._requests.answered)
        if self._sweeps:
            if any(m.metric == CAPACITY for m in found):
                return None
            if "capacity" not in self._told:
                why = (
                    "it was ended before the highest rate was found; raise --timeout, or begin closer to it with --load"
                )
                return LaunchVerdict(Status.FAILED, Reason.NO_DATA, why)
            lowest = min((float(level["rate"]) for level in self._levels.values() if "rate" in level), default=0.0)
            why = f"even at {lowest:g} requests/s the objective is not met"
            return LaunchVerdict(Status.FAILED, Reason.NO_DATA, f"{why}; {self._words_of_failures()}".rstrip("; "))
        if answered <= _FEWEST_ANSWERED * asked:
            what = "none" if not answered else f"only {answered}"
            why = f"{what} of {asked} requests answered: {self._words_of_failures()}"
            return LaunchVerdict(Status.FAILED, Reason.INVALID if answered else Reason.NO_DATA, why)
        return None

    def _words_of_failures(self) -> str:
        """`12 × http_500 (engine died)`, the most frequent first."""
        words = []
        for reason, count in self._requests.failures.most_common():
            said = self._said.get(str(reason))
            words.append(f"{count} × {reason}{f' ({said})' if said else ''}")
        return ", ".join(words)

    @cached_property
    def _first_s(self) -> float | None:
        times = [r.first_s for r in self._requests.measured if r.first_s is not None]
        return median(times) if times else None

    @cached_property
    def _late_share(self) -> float:
        late = [r for r in self._requests.all if (r.begun - r.planned) * _NS > _LATE_S]
        return len(late) / len(self._requests.all) if self._requests.all else 0.0

    def notes(self) -> list[Note]:
        if not self._requests.all:
            return []
        return [*self._doubts(), *self._remarks()]

    def _waited(self) -> str | None:
        """If client or server waited for a core for so long that it shows in the latencies."""
        wait_s, of_server = max(self._end.get("wait_ns") or (0,)) * _NS, float(self._end.get("server_wait") or 0.0)
        if self._first_s is not None and wait_s > _MOST_WAITED * self._first_s:
            return f"the client waited {wait_s * 1e3:.2g} ms for a core each time it woke up"
        return f"the server waited for a core {of_server * 100:.0f} % of the time" if of_server > _MOST_WAITED else None

    def _doubts(self) -> Iterable[Note]:
        """Doubts that keep a launch from deciding anything."""
        end = self._end
        cpu = [float(share) for share in end.get("cpu") or ()]
        full = sum(share > _MOST_CPU for share in cpu)
        remedy = "use more --clients, or another machine for the client"
        if self._late_share > _MOST_LATE:
            evidence = f"{self._late_share * 100:.0f} % of the requests were sent more than 10 ms late"
            yield Note(text="the client could not keep up", evidence=evidence, kind="client", remedy=remedy)
        elif full > _MOST_FULL * len(cpu):
            evidence = f"it used {max(cpu) * 100:.0f} % of a core"
            yield Note(text="the client could not keep up", evidence=evidence, kind="client", remedy=remedy)
        if waited := self._waited():
            yield Note(text="ran while the machine was busy", evidence=waited, kind="busy")
        cores = _CORES.get(str(end.get("cores")))
        if cores is not None:
            remedy = "give each its own, with --cores and taskset, or measure from another machine"
            yield Note(text=cores, kind="cores", remedy=remedy)
        failed = sum(self._requests.failures.values())
        if failed > _MOST_FAILED * len(self._requests.all) and not self._sweeps:
            text = "requests failed, and count in no average"
            yield Note(
                text=text,
                evidence=f"{failed} of {len(self._requests.all)}: {self._words_of_failures()}",
                kind="failures",
            )

    def _remarks(self) -> Iterable[Note]:
        seen = self._requests
        if seen.overloaded:
            text = "overloaded: requests came faster than they were answered, so there is no latency to tell"
            yield Note(text=text, kind="overloaded", remedy="lower --load; throughput is what the server can do")
        if self._usage == "wrong":
            wrong = sum(r.contradicts_usage for r in seen.answered)
            text = "the server's usage contradicts its stream, so tokens are not counted"
            yield Note(text=text, evidence=f"{wrong} of {len(seen.answered)} answers")
        elif self._usage == "missing":
            text = "the server does not tell its usage, so tokens are not counted"
            yield Note(text=text, remedy="chunks are not tokens; let it answer stream_options.include_usage")
        if seen.warm and not self._sweeps:
            text = f"the first {seen.warm} of {len(seen.answered)} requests are warm-up"
            yield Note(text=text, severity="info")
        planned = max((int(level.get("arrivals") or 0) for level in self._levels.values()), default=0)
        if len(self._rows) < planned and not self._sweeps:
            yield Note(text=f"it was ended after {len(self._rows)} of {planned} requests had been sent")
        if cut := len(self._rows) - len(seen.all):
            yield Note(text=f"requests were cut by its end, and count in no average: {cut}", severity="info")
        failed = sum(seen.failures.values())
        if 0 < failed <= _MOST_FAILED * len(seen.all) or (failed and self._sweeps):
            yield Note(text="requests failed, and count in no average", evidence=self._words_of_failures())

    def facts(self) -> dict[str, object]:
        if not self._about:
            return {}
        end, seen = self._end, self._requests
        kept = ("load", "loop", "digest", "salt", "slo", "api")
        facts: dict[str, object] = {name: self._about[name] for name in kept if name in self._about}
        facts |= {
            "requests": len(seen.all),
            "answered": len(seen.answered),
            "warmup": seen.warm,
            "overloaded": seen.overloaded,
            "usage": self._usage,
            "failures": dict(seen.failures),
            "late_share": self._late_share,
            "cores": end.get("cores"),
            "cpu": max(end.get("cpu") or [0.0]),
            "lag_ns": max(end.get("lag_ns") or [0]),
            "wait_ns": max(end.get("wait_ns") or [0]),
            "server_wait": end.get("server_wait"),
            "levels": self._level_facts() if self._sweeps else [],
            "capacity": {k: v for k, v in (self._told.get("capacity") or {}).items() if k in ("rate", "above")},
            "course": [[e["t"], e.get("running"), e.get("waiting")] for e in self._loads],
        }
        return {"endpoint": facts}

    def _level_facts(self) -> list[dict[str, object]]:
        """Of each level of a sweep its rate, whether it met the objective, and its latencies."""
        by_level: dict[int, list[SeenRequest]] = {}
        for row in self._rows:
            by_level.setdefault(row.level, []).append(row)
        found = []
        for number, level in sorted(self._levels.items()):
            seen = SeenRequests(by_level.get(number, []), Warmup(steps=0), True)
            body = {k: level.get(k) for k in ("rate", "share", "meets")} | {"requests": len(seen.all)}
            for name, values in (
                ("ttft", [r.first_s for r in seen.answered if r.first_s is not None]),
                ("tpot", [r.per_token_s for r in seen.answered if r.per_token_s is not None]),
                ("e2e", [r.whole_s for r in seen.answered]),
            ):
                tail = percentile_interval(values, TAIL)
                body[name] = [percentile(values, 50), tail.value if tail is not None else None] if values else None
            body["overloaded"] = seen.overloaded
            found.append(body)
        return found
