"""What a store keeps for comparisons gives the same comparison as the samples themselves, to the last digit."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from builders import benchmark, failed_launch, failed_result, launch, machine, measurement, result, run
from msgspec.structs import replace

from benchwright.analysis.comparison.comparable import ComparableRun, comparable
from benchwright.analysis.comparison.separate_runs import steadiness, steadinesses
from benchwright.analysis.statistics.ratio_tests import unpaired_ratio, unpaired_ratios
from benchwright.core.aggregates import aggregate
from benchwright.core.comparison import Comparison, Verdict
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Reason, Status
from benchwright.results.compare import ChosenMetrics, compare_runs, compare_separate
from benchwright.store.base import StoreEntry
from benchwright.store.sql_store import SqlStore, open_store
from benchwright.store.summaries import pack_comparable, unpack_comparable
from benchwright.store.transfer import packed_entry, received_runs

Draw = random.Random
Made = Callable[[Draw], list[Launch]]


def steps(draw: Draw, count: int, slope: float = 0.0, level: float = 1.0) -> list[float]:
    return [level * (1 + slope * n / count) * draw.gauss(1, 0.02) for n in range(count)]


def launches(draw: Draw, *made: Callable[[Draw], Measurement], count: int = 8, **fields: object) -> list[Launch]:
    level = draw.gauss(1, 0.01)
    return [
        launch(
            *(replace(m, samples=tuple(level * v for v in m.samples)) for m in (make(draw) for make in made)),
            job=f"b.R{n}",
            position=n,
            **fields,
        )
        for n in range(count)
    ]


def loops(draw: Draw) -> list[Launch]:
    """With steps that get slower within a launch, a warm-up, and a metric of another process."""
    return launches(
        draw,
        lambda d: measurement(*steps(d, 300, 0.2), metric="step_time", unit="s", warmup_samples=(9.0,)),
        lambda d: measurement(*steps(d, 300), value=d.gauss(100, 3), aggregate="delivered"),
        lambda d: measurement(*steps(d, 5), metric="rate", labels={"process": "child"}),
    )


def learning(draw: Draw) -> list[Launch]:
    """Launches of different lengths, whose loss falls."""
    return launches(
        draw,
        lambda d: measurement(*steps(d, d.randint(20, 40), -0.9), metric="loss", unit=None, source="give"),
        lambda d: measurement(
            *steps(d, d.randint(20, 40), -0.9), metric="end", unit=None, source="give", aggregate="last"
        ),
        lambda d: measurement(*steps(d, d.randint(20, 40)), metric="flat", unit=None, source="log"),
        lambda d: measurement(*steps(d, d.randint(20, 40)), metric="all", unit=None, source="log", aggregate="total"),
        lambda d: measurement(*steps(d, d.randint(3, 4)), metric="slow", unit=None, source="log", aggregate="p90"),
    )


def busy(draw: Draw) -> list[Launch]:
    note = Note(text="others ran", kind="busy", evidence="got 50 % of the CPU time it wanted")
    share = lambda d: measurement(d.random(), d.random(), metric="cpu.own_share", unit=None, source="sampler")  # noqa: E731
    return launches(draw, lambda d: measurement(*steps(d, 9)), share, notes=(note, Note(text="warm")))


def on_gpus(draw: Draw) -> list[Launch]:
    clock = draw.choice((1400.0, 1750.0))
    return launches(
        draw,
        lambda d: measurement(*steps(d, 9)),
        lambda d: measurement(
            *(clock * d.gauss(1, 0.001) for _ in range(4)),
            metric="gpu.clock",
            unit="MHz",
            labels={"device": "0"},
            source="sampler",
            aggregate="average",
        ),
        lambda d: measurement(2.0, 2.0 + d.randint(0, 1), metric="flops_per_item", unit=None, source="give"),
    )


def odd_numbers(draw: Draw) -> list[Launch]:
    return launches(
        draw,
        lambda d: measurement(d.choice((math.nan, 1.0, math.inf)), metric="odd", source="log"),
        lambda d: measurement(0.0, metric="zero", unit=None, source="log"),
        lambda d: measurement(7.0, metric="exact", unit=None, source="log"),
        lambda d: measurement(-d.random(), metric="negative", unit=None, source="log", direction=Direction.NEITHER),
        lambda d: measurement(1.0, metric="needs", source="log", aggregate="average_aggregate"),
    )


def of_ranks(draw: Draw) -> list[Launch]:
    labels = ({"rank": "0"}, {"rank": "1"}, {"ranks": "2"}, {"bound": "1"})
    return launches(
        draw,
        *(lambda d, labels=each: measurement(*steps(d, 4), labels=labels) for each in labels),  # type: ignore[misc]
    )


def of_two_units(draw: Draw) -> list[Launch]:
    return launches(draw, lambda d: measurement(*steps(d, 4), unit=d.choice(("items/s", "img/s"))), count=6)


def some_failed(draw: Draw) -> list[Launch]:
    bad = failed_launch(reason=Reason.OUT_OF_MEMORY, detail="none left")
    warm = launch(measurement(5.0), warmup=True)
    return [warm, *launches(draw, lambda d: measurement(*steps(d, 4))), bad]


def few(draw: Draw) -> list[Launch]:
    return launches(draw, lambda d: measurement(*steps(d, 4), source="log"), count=draw.randint(1, 7))


def plain(draw: Draw) -> list[Launch]:
    made = (
        lambda d: measurement(*steps(d, 7), source="log"),
        lambda d: measurement(d.gauss(1e9, 1e5), metric="memory.peak_rss", unit="B", source="process"),
        lambda d: measurement(d.gauss(3, 0.1), metric="process.cpu_time", unit="s", source="process"),
        lambda d: measurement(d.gauss(3, 0.1), metric="process.duration", unit="s", source="process"),
    )
    return launches(draw, *made, count=draw.choice((6, 8, 20)))


KINDS: dict[str, Made] = {
    made.__name__: made
    for made in (loops, learning, busy, on_gpus, odd_numbers, of_ranks, of_two_units, some_failed, few, plain)
}


def of_kind(name: str, seed: int, **fields: object) -> Result:
    return result(benchmark(name, **fields), *KINDS[name](Draw(f"{name} {seed}")))  # type: ignore[arg-type]


def one_of_each(seed: int) -> Run:
    skipped = Result(benchmark=benchmark("skipped"), status=Status.SKIPPED, reason=Reason.NO_DATA, detail="no GPU")
    only = [result(f"only {seed}", *plain(Draw(seed))), failed_result("dead", failed_launch(detail="it fell"))]
    many = [result(f"many {n}", *plain(Draw(seed + 1000 * n))) for n in range(60)]
    each = [of_kind(name, seed, env={"SEED": str(seed)}) for name in KINDS]
    return run(
        *each,
        skipped,
        *only,
        *many,
        id=f"each.{seed}",
        uid=f"{seed:032x}",
        workers=None if seed % 2 else 4,
        packages={"/python": {"numpy": f"2.{seed}"}},
        notes=(Note(text="a note of the run"),),
    )


def pairs() -> Iterator[tuple[str, Run, Run]]:
    for name in KINDS:
        both = [run(of_kind(name, seed), id=f"{name}.{seed}", uid=f"{name}{seed}") for seed in (1, 2)]
        yield name, both[0], both[1]
    yield "each", one_of_each(1), one_of_each(2)
    yield "workers", one_of_each(2), one_of_each(4)
    old, new = (run(result(name, *plain(Draw(name))), id=f"{name}.1", uid=name) for name in ("old", "new"))
    yield "two names", old, new
    yield "nothing", run(id="a.1", uid="a"), run(id="b.1", uid="b")
    yield "lone surrogate", replace(old, labels={"a": "\ud800"}), replace(new, name="\ud800")


PAIRS = {name: (control, treatment) for name, control, treatment in pairs()}


def exact(comparison: Comparison) -> bytes:
    """NaN equals NaN here."""
    return msgspec.msgpack.encode(comparison)


def from_samples(control: Run, treatment: Run, all_metrics: bool) -> Comparison:
    return compare_runs(
        [control, treatment], between=None, margin=None, metrics=(), all_metrics=all_metrics, anyway=True
    )[0]


def from_store(store: SqlStore, control: Run, treatment: Run, all_metrics: bool) -> Comparison:
    kept = store.comparables([control.unique_id, treatment.unique_id])
    chosen = ChosenMetrics(kept[0], (), all_metrics)
    loaded = [run.unique_id for run in (control, treatment)]
    return compare_separate(
        kept[0], kept[1], lambda: (store.load(loaded[0]), store.load(loaded[1])), chosen, anyway=True
    )


@pytest.mark.parametrize("all_metrics", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_runs_of_every_kind_compare_the_same_from_the_store_and_from_their_samples(
    name: str, all_metrics: bool, tmp_path: Path
) -> None:
    both = PAIRS[name]
    with open_store(str(tmp_path / "store.db"), aggregate=aggregate) as store:
        for each in both:
            store.ingest(each, digest="1")
        assert exact(from_store(store, *both, all_metrics)) == exact(from_samples(*both, all_metrics))
        assert store.check() == []


def test_runs_sent_to_a_server_compare_the_same(tmp_path: Path) -> None:
    both = PAIRS["each"]
    with open_store(str(tmp_path / "store.db"), aggregate=aggregate) as store:
        for each in both:
            path = tmp_path / "body"
            path.write_bytes(b"".join(packed_entry(StoreEntry(run=each, digest="1"))))
            with path.open("rb") as file:
                store.ingest_received(received_runs(file, path.stat().st_size))
        assert exact(from_store(store, *both, False)) == exact(from_samples(*both, False))
        assert store.check() == []


def test_the_table_has_every_verdict_and_doubt_it_should() -> None:
    found = from_samples(*PAIRS["each"], True)
    assert {e.verdict for e in found.effects} >= {Verdict.INCONCLUSIVE, Verdict.SAME}
    kinds = {note.kind for e in found.effects for note in e.doubts}
    assert {"drift_within", "busy", "drift"} <= kinds
    assert any(e.basis for e in found.effects)
    assert {text.partition(":")[0] for text in found.lost} >= {"only 1", "dead"}


def test_damaged_or_missing_comparables_are_derived_again(tmp_path: Path) -> None:
    both = PAIRS["plain"]
    with open_store(str(tmp_path / "store.db"), aggregate=aggregate) as store:
        for each in both:
            store.ingest(each, digest="1")
        good = exact(from_store(store, *both, False))
        with store._writing() as connection:
            connection.exec_driver_sql("UPDATE comparables SET data = x'00' WHERE run = 1")
            connection.exec_driver_sql("DELETE FROM comparables WHERE run = 2")
        assert exact(from_store(store, *both, False)) == good
        problems = store.check()
        assert len(problems) == 2
        assert all("what comparisons read of it does not follow from its samples" in text for text in problems)
        with store._writing() as connection:
            connection.exec_driver_sql("UPDATE runs SET summarized = 1")
        store.migrate()
        assert store.check() == []


def test_a_changed_number_of_a_launch_is_found(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db"), aggregate=aggregate) as store:
        store.ingest(PAIRS["plain"][0], digest="1")
        (kept,) = store.comparables(["plain1"])
        first = kept.results[0].metrics[0]
        forged = replace(first, values=(first.values[0] + 1e-9, *first.values[1:]))
        wrong = replace(kept.results[0], metrics=(forged, *kept.results[0].metrics[1:]))
        data = pack_comparable(ComparableRun(kept.run, (wrong,)))
        with store._writing() as connection:
            connection.exec_driver_sql("UPDATE comparables SET data = ?", (data,))
        assert len(store.check()) == 1


def test_what_is_packed_is_what_is_read() -> None:
    kept = comparable(PAIRS["on_gpus"][0])
    data = pack_comparable(kept)
    assert data is not None
    assert unpack_comparable(data) == kept
    assert unpack_comparable(data[:-9]) is None
    assert unpack_comparable(b"") is None


@pytest.mark.parametrize("spread", [0.0, 1e-16, 0.01, 0.5])
def test_many_rows_together_are_tested_as_one_by_one(spread: float) -> None:
    draw = Draw(5)

    def side(count: int) -> list[float]:
        step, trend, walk = draw.choice((0, 0.05)), draw.choice((0, 0, 0.1)), draw.choice((0, 0, 0.02))
        level, found = draw.choice((1.0, 1.3)), []
        for n in range(count):
            level *= 1 + walk * draw.gauss(0, 1)
            value = level * (1 + step * (n > count // 2) + trend * n / count) * (1 + spread * draw.gauss(0, 1))
            found.append(round(abs(value), draw.choice((2, 15))) + 1e-3)
        return found

    rows = [(side(draw.choice((5, 6, 7, 12, 61))), side(draw.choice((6, 9, 20, 201)))) for _ in range(300)]
    assert unpaired_ratios(rows, 0.95) == [unpaired_ratio(*both, 0.95) for both in rows]
    sides = [each for both in rows for each in both]
    assert steadinesses(sides) == [steadiness(each) for each in sides]


def test_another_machine_is_not_comparable(tmp_path: Path) -> None:
    other = replace(PAIRS["plain"][1], machine=machine(cpu="another"))
    with open_store(str(tmp_path / "store.db"), aggregate=aggregate) as store:
        for each in (PAIRS["plain"][0], other):
            store.ingest(each, digest="1")
        found = from_store(store, PAIRS["plain"][0], other, False)
    assert [d.what for d in found.differences if d.severe] == ["machine: CPU"]
