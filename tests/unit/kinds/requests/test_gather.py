"""From the events of the client to measurements, and to doubts about them."""

from __future__ import annotations

from typing import Any

import pytest

from benchwright.core.conditions import DISTURBING
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.status import Reason
from benchwright.core.stop_rule import Warmup
from benchwright.kinds.requests.gather import RequestsGatherer

MS = 1_000_000
NONE = Warmup(steps=0)
ABOUT = {"event": "endpoint", "t": 0, "load": "poisson:100", "loop": "open", "digest": "d", "slo": None, "sweep": False}
END = {"event": "endpoint_end", "t": 9, "finished": True, "cores": "apart", "cpu": [0.2], "lag_ns": [1000]}


def request(number: int, **changes: Any) -> dict[str, Any]:
    """Planned each 10 ms, sent at once, first token after 20 ms, four more each 5 ms apart."""
    planned = number * 10 * MS
    usual = {
        "number": number,
        "planned": planned,
        "begun": planned,
        "first": planned + 20 * MS,
        "last": planned + 40 * MS,
    }
    usual |= {"ended": planned + 41 * MS, "chunks": 5, "gaps": [5 * MS] * 4, "tokens_in": 100, "tokens_out": 5}
    return usual | {"cached": None, "asked": 5, "failure": None} | changes


def gathered(
    rows: list[dict[str, Any]], *others: dict[str, Any], warmup: Warmup = NONE, alone: bool = False, **about: Any
) -> RequestsGatherer:
    gatherer = RequestsGatherer(warmup, alone=alone)
    events = [ABOUT | about, {"event": "requests", "t": 1, "level": 1, **{n: [r[n] for r in rows] for n in rows[0]}}]
    for event in (*events, *others, *([] if any(e["event"] == "endpoint_end" for e in others) else [END])):
        gatherer.add(event)
    return gatherer


def by_name(gatherer: RequestsGatherer) -> dict[str, Measurement]:
    return {m.metric: m for m in gatherer.measurements()}


def kinds(gatherer: RequestsGatherer) -> set[str | None]:
    return {note.kind for note in gatherer.notes()}


def test_figures_count_from_the_planned_time() -> None:
    rows = [request(n, begun=n * 10 * MS + 5 * MS) for n in range(100)]
    found = by_name(gathered(rows))
    assert found["time.first_token"].samples == pytest.approx([0.020] * 100)
    assert found["time.per_token"].samples == pytest.approx([0.005] * 100)
    assert found["time.chunk_gap"].samples == pytest.approx([0.005] * 400)
    assert found["time.request"].samples == pytest.approx([0.041] * 100)
    assert found["time.send_lag"].samples == pytest.approx([0.005] * 100)
    span_s = 0.990 + 0.041
    assert found["throughput.requests"].value == pytest.approx(100 / span_s)
    assert found["throughput.output_tokens"].value == pytest.approx(500 / span_s)
    assert found["throughput.input_tokens"].value == pytest.approx(10_000 / span_s)


def test_failed_and_unfinished_requests_are_in_no_average() -> None:
    """A refusal in a microsecond would make a failing server look fast."""
    bad = request(50, ended=500 * MS + 1, first=None, last=None, failure="http_500", tokens_out=None, chunks=0, gaps=[])
    late = request(60, ended=10**12, failure="unfinished")
    rows = [request(n) for n in range(100) if n not in (50, 60)] + [bad, late]
    gatherer = gathered(rows)
    found = by_name(gatherer)
    assert len(found["time.request"].samples) == 98
    assert min(found["time.request"].samples) == pytest.approx(0.041)
    assert found["failures"].samples == (1.0,)
    assert found["failures"].labels == {"reason": "http_500"}
    assert "failures" in kinds(gatherer), "one of 99 is more than 1 %"


def test_a_server_that_fails_most_has_no_result() -> None:
    rows = [request(n, failure=None if n < 40 else "http_429") for n in range(100)]
    verdict = gathered(rows).judge([])
    assert verdict is not None
    assert verdict.reason is Reason.INVALID
    assert "60 × http_429" in str(verdict.detail)


@pytest.mark.parametrize(("tokens", "usage"), [(50, "wrong"), (1, "wrong"), (None, "missing"), (5, "ok")])
def test_tokens_count_only_if_the_usage_can_be_true(tokens: int | None, usage: str) -> None:
    gatherer = gathered([request(n, tokens_out=tokens if n == 7 else 5) for n in range(30)])
    found = by_name(gatherer)
    assert gatherer.facts()["endpoint"]["usage"] == usage  # type: ignore[index]
    assert ("time.per_token" in found) is ("throughput.output_tokens" in found) is (usage == "ok")
    assert "time.first_token" in found


@pytest.mark.parametrize(
    ("rows", "end", "kind"),
    [
        ([request(n, begun=n * 10 * MS + (11 * MS if n < 6 else 0)) for n in range(100)], {}, "client"),
        ([request(n) for n in range(100)], {"cpu": [0.5, 0.9, 0.9]}, "client"),
        ([request(n) for n in range(100)], {"cores": "shared"}, "cores"),
        ([request(n) for n in range(100)], {"cores": "unknown"}, "cores"),
    ],
)
def test_a_client_that_may_be_the_bottleneck_decides_nothing(
    rows: list[dict[str, Any]], end: dict[str, Any], kind: str
) -> None:
    found = kinds(gathered(rows, END | end)) - {None}
    assert found == {kind}
    assert kind in DISTURBING


def test_a_client_that_keeps_up_is_not_doubted() -> None:
    rows = [request(n, begun=n * 10 * MS + (11 * MS if n < 5 else 0)) for n in range(100)]
    assert not kinds(gathered(rows)) & DISTURBING.keys()


def test_how_long_the_client_waited_for_a_core_matters_as_far_as_it_shows_in_the_latencies() -> None:
    """A first token takes 20 ms."""
    rows = [request(n) for n in range(100)]
    assert "busy" not in kinds(gathered(rows, END | {"wait_ns": [500_000]}))
    busy = gathered(rows, END | {"wait_ns": [100, 700_000]}, alone=True)
    assert busy.watches_waiting
    assert not gathered(rows, END | {"wait_ns": []}, alone=True).watches_waiting, "where the kernel does not say"
    assert not gathered(rows, END | {"wait_ns": [100]}).watches_waiting, "of its server it knows nothing"
    (note,) = [note for note in busy.notes() if note.kind == "busy"]
    assert note.evidence == "the client waited 0.7 ms for a core each time it woke up"


def test_how_long_a_server_on_this_machine_waited_for_a_core_matters_too() -> None:
    rows = [request(n) for n in range(100)]
    assert "busy" not in kinds(gathered(rows, END | {"wait_ns": [100], "server_wait": 0.02}))
    assert "busy" not in kinds(gathered(rows, END | {"wait_ns": [100], "server_wait": None})), "elsewhere"
    busy = gathered(rows, END | {"wait_ns": [100], "server_wait": 0.07}, alone=True)
    (note,) = [note for note in busy.notes() if note.kind == "busy"]
    assert note.evidence == "the server waited for a core 7 % of the time"


def energy(t_ms: int, **joules: float) -> dict[str, Any]:
    sampler = "rapl" if "package_j" in joules else "nvidia"
    return {"event": "sample", "sampler": sampler, "device": "0", "t": t_ms * MS, "values": joules}


def test_joules_per_token_are_those_of_the_measured_requests() -> None:
    """50 W of a GPU and 20 W of the processor. The first requests are warm-up, with 500 W that are not counted."""
    gatherer = gathered([request(n) for n in range(100)], warmup=Warmup(steps=10))
    begin, end = 100, 990 + 41  # ms: planned time of the first that counts, and the last answer
    for t in range(-1000, 3000, 50):
        of_gpu = 0.5 * min(t, begin) + 0.05 * max(0, t - begin)
        gatherer.sampled(energy(t, energy_j=1000 + of_gpu, power_w=50.0))
        gatherer.sampled(energy(t, package_j=7 + 0.02 * t))
    assert gatherer.span == (begin * MS, end * MS)
    found = {m.labels["device"]: m for m in gatherer.measurements() if m.metric == "energy.output_token"}
    tokens = 90 * 5
    assert found["gpu"].samples == pytest.approx([0.05 * (end - begin) / tokens])
    assert found["cpu"].samples == pytest.approx([0.02 * (end - begin) / tokens])
    assert {m.unit for m in found.values()} == {"J"}


@pytest.mark.parametrize("cause", ["elsewhere", "alone", "usage", "uncovered"])
def test_joules_that_may_not_be_the_servers_or_tokens_that_are_not_known_make_no_figure(cause: str) -> None:
    rows = [request(n, tokens_out=None if cause == "usage" else 5) for n in range(100)]
    end = END | ({"cores": "elsewhere"} if cause == "elsewhere" else {})
    gatherer = gathered(rows, end, alone=cause == "alone")
    for t in range(-1000, 500 if cause == "uncovered" else 3000, 50):
        gatherer.sampled(energy(t, energy_j=1000 + 0.05 * t))
    assert "energy.output_token" not in by_name(gatherer)


def test_time_and_memory_of_a_client_alone_are_not_compared() -> None:
    names = ("process.cpu_time", "time.request")
    found = [Measurement(metric=name, unit="s", direction=Direction.LOWER, samples=(1.0,), source="") for name in names]
    rows = [request(n) for n in range(100)]
    alone, served = (gathered(rows, alone=alone).interpreted(found) for alone in (True, False))
    assert [m.labels for m in alone] == [{"process": "client"}, {}]
    assert served == found


def test_a_queue_that_grows_has_no_latency() -> None:
    """One request each 10 ms, served one by one in 15 ms."""
    rows = []
    for n in range(400):
        ended = n * 15 * MS + 15 * MS
        rows.append(request(n, first=ended, last=ended, ended=ended, chunks=1, gaps=[], tokens_out=1))
    gatherer = gathered(rows)
    assert "overloaded" in kinds(gatherer)
    assert not any(name.startswith("time.") and name != "time.send_lag" for name in by_name(gatherer))
    assert by_name(gatherer)["throughput.requests"].value == pytest.approx(1 / 0.015, rel=0.01)


def test_answers_that_take_long_from_the_start_are_no_overload() -> None:
    rows = [request(n, ended=n * 10 * MS + 2000 * MS) for n in range(300)]
    assert "overloaded" not in kinds(gathered(rows))


def test_warm_up_is_kept_and_marked() -> None:
    rows = [request(n, ended=n * 10 * MS + (300 if n < 25 else 41 + n % 3) * MS) for n in range(200)]
    found = by_name(gathered(rows, warmup=Warmup()))["time.request"]
    assert len(found.warmup_samples) == 25
    assert len(found.samples) == 175
    given = by_name(gathered(rows, warmup=Warmup(seconds=0.1)))["time.request"]
    assert len(given.warmup_samples) == 10


def test_a_closed_loop_has_a_label_so_that_nothing_compares_it_with_an_open_one() -> None:
    rows = [request(n) for n in range(30)]
    closed = by_name(gathered(rows, load="users:8", loop="closed"))
    assert closed["time.first_token"].labels == {"load": "8 users"}
    assert by_name(gathered(rows))["time.first_token"].labels == {}


def test_goodput_counts_what_met_the_objective_and_no_failure() -> None:
    rows = [request(n, first=n * 10 * MS + (90 if n % 4 == 0 else 20) * MS) for n in range(100)]
    rows[1]["failure"] = "cut"
    found = by_name(gathered(rows, slo="ttft=50ms@p90"))
    assert found["slo.met"].samples == (74.0,)


def test_a_p99_from_too_few_is_not_told() -> None:
    few = [request(n, ended=n * 10 * MS + (40 + n % 7) * MS) for n in range(300)]
    many = [request(n, ended=n * 10 * MS + (40 + n * 7919 % 101) * MS) for n in range(4000)]
    assert "time.request.p99" not in by_name(gathered(few))
    assert by_name(gathered(many))["time.request.p99"].samples == pytest.approx([0.139], abs=0.001)


def test_what_the_server_tells_of_itself_is_kept() -> None:
    loads = [{"event": "server_load", "t": t, "running": 2.0, "waiting": float(t), "cache": 0.25} for t in range(4)]
    found = by_name(gathered([request(n, cached=50) for n in range(30)], *loads))
    assert found["server.waiting"].samples == (0.0, 1.0, 2.0, 3.0)
    assert found["server.cache"].samples[0] == 25.0
    assert found["server.cached_prompt"].samples == (50.0,)


def test_a_sweep_ends_in_one_number() -> None:
    events = [
        {"event": "level", "number": 1, "load": "poisson:5", "t": 0},
        {"event": "level_end", "number": 1, "rate": 5.0, "share": 1.0, "meets": True, "t": 0},
        {"event": "capacity", "rate": 12.5, "above": 13.0, "t": 0},
    ]
    gatherer = gathered([request(n) for n in range(50)], *events, slo="ttft=50ms@p90", sweep=True)
    assert by_name(gatherer)["capacity"].value == 12.5
    assert gatherer.facts()["endpoint"]["levels"][0]["rate"] == 5.0  # type: ignore[index]
    assert gatherer.judge(gatherer.measurements()) is None
    cut = gathered([request(n) for n in range(50)], *events[:-1], slo="ttft=50ms@p90", sweep=True)
    verdict = cut.judge(cut.measurements())
    assert verdict is not None
    assert "before the highest rate was found" in (verdict.detail or ""), "the highest so far is no capacity"
