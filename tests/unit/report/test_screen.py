"""The plain report: fits the terminal, failures first, honest about what is not known."""

from __future__ import annotations

from typing import Any

import builders
from builders import failed_launch, measurement, result

from benchwright.core.aggregates import aggregate
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result
from benchwright.core.status import Reason, Status
from benchwright.report.base import Report
from benchwright.report.notes import callouts
from benchwright.report.run_json import run_body
from benchwright.report.screen import ScreenReporter
from benchwright.report.text.numbers import format_number, format_value
from benchwright.results.after_run import run_remarks, summaries_of


def ok_launch(position: int, speed: float, **fields: Any) -> Launch:
    measurements = (
        measurement(speed, metric="speed", unit="samples/s", source="log"),
        measurement(12.4, metric="process.duration", unit="s", source="log"),
        measurement(2_040_109_465.0, metric="memory.peak_rss", unit="B", source="log"),
    )
    return builders.launch(*measurements, job=f"t.R{position}", position=position, **fields)


def report(*results: Result, width: int = 80, **fields: Any) -> str:
    run = builders.run(*results, id="r", **fields)
    summaries = summaries_of(run)
    assert run_body(run, summaries)["results"][0]["benchmark"] == results[0].benchmark.name
    tails = {"bad.D0": ["Traceback", "ValueError: no"]}
    return ScreenReporter().render(
        Report(
            run=run, summaries=summaries, aggregate=aggregate, width=width, log_tails=tails, remarks=run_remarks(run)
        )
    )


def test_eight_launches_show_a_median_with_its_interval() -> None:
    speeds = (829.4, 830.1, 829.6, 829.9, 829.5, 830.0, 829.7, 829.8)  # in no order: a trend would widen the interval
    text = report(result("train.py", *(ok_launch(n, speed) for n, speed in enumerate(speeds))))
    assert "8 launches of 12.4 s" in text
    assert "memory 1.9 GiB" in text
    assert "829.8 samples/s" in text
    assert "(95 %)" in text
    assert "no interval" not in text
    assert text.count("with 8 launches, slow drift can go unnoticed") == 1


def test_one_launch_says_that_nothing_is_known_between_launches() -> None:
    text = report(result("train.py", ok_launch(0, 829.4)))
    assert "±" not in text
    assert "--repeat 6" in text


def test_three_launches_show_their_range_not_an_interval() -> None:
    text = report(result("train.py", *(ok_launch(n, 800.0 + n) for n in range(3))))
    assert "800 to 802" in text
    assert "no confidence interval from 3 launches" in text


def test_failures_come_first_with_reason_and_the_logs_last_lines() -> None:
    bad = failed_launch(job="bad.D0", detail="exit code 1")
    text = report(
        result("good", ok_launch(0, 1.0)),
        result("bad", bad, status=Status.FAILED, reason=Reason.CRASHED, detail="exit code 1"),
    )
    assert text.index("bad") < text.index("good")
    assert "FAILED crashed: exit code 1" in text
    assert "| ValueError: no" in text
    assert "1 failed of 2" in text


def test_nothing_is_wider_than_the_terminal() -> None:
    note = Note(text="a remark that goes on and on " * 6)
    long = result("a-benchmark-with-a-very-long-name-" * 4, ok_launch(0, 1.0, notes=(note,)))
    bad = result("bad", status=Status.FAILED, reason=Reason.NO_DATA, detail="matched no line " * 20)
    for width in (40, 80, 120):
        lines = report(long, bad, width=width, notes=(note,)).splitlines()
        assert max(len(line) for line in lines if "saved:" not in line) <= width


def test_a_note_is_shown_once_with_the_number_of_launches() -> None:
    busy = Note(text="ran while the machine was busy")
    text = report(result("t", ok_launch(0, 1.0, notes=(busy,)), ok_launch(1, 1.0, notes=(busy,)), ok_launch(2, 1.0)))
    assert text.count("busy") == 1
    assert "(2 of 3 launches)" in text


def measured(metric: str, unit: str, value: float, **labels: str) -> Measurement:
    return Measurement(
        metric=metric, unit=unit, direction=Direction.LOWER, samples=(value,), source="sampler", labels=labels
    )


def test_a_peak_that_is_only_a_bound_is_shown_as_one() -> None:
    bound = measured("memory.peak_rss", "B", 12 * 2.0**20, bound="upper")
    assert "memory ≤ 12 MiB" in report(result("t", builders.launch(bound, job="t.D0")))
    assert "≤" not in report(result("t", ok_launch(0, 1.0)))


def test_the_cpu_use_is_cpu_time_over_time_and_the_gpu_memory_that_of_the_fullest() -> None:
    measurements = (
        measured("process.duration", "s", 2.0),
        measured("process.cpu_time", "s", 3.0),
        measured("gpu.memory", "B", 2.0**30, device="0"),
        measured("gpu.memory", "B", 3 * 2.0**30, device="1"),
    )
    text = report(result("t", Launch(job="t.D0", status=Status.OK, measurements=measurements)))
    assert "CPU 150 %" in text
    assert "GPU memory 3 GiB" in text


def test_numbers_have_four_digits() -> None:
    assert [format_number(v) for v in (829.41, 1234.5, 123456.0, 0.1234567, 1.5e-5, 0.0)] == [
        "829.4",
        "1,234.5",
        "123,456",
        "0.1235",
        "1.500e-05",
        "0",
    ]


def test_a_long_name_is_cut_but_its_number_never_is() -> None:
    long = Measurement(
        metric="a-metric-with-a-very-long-name-" * 3,
        unit="samples/s",
        direction=Direction.HIGHER,
        samples=(123456.0,),
        source="log",
    )
    launch = builders.launch(long, job="t")
    for width in (40, 80):
        assert "123,456 samples/s" in report(result("t", launch), width=width)


def test_a_bound_on_memory_is_one_of_each_process() -> None:
    peak = Measurement(
        metric="memory.peak_rss",
        unit="B",
        direction=Direction.LOWER,
        samples=(2.0**23,),
        source="process",
        labels={"bound": "upper"},
    )
    assert "memory ≤ 8 MiB RSS a process" in report(result("t", builders.launch(peak, job="t")))


def test_a_warm_up_launch_that_failed_is_mentioned() -> None:
    bad = failed_launch(job="t.W0", detail="exit code 1", warmup=True)
    assert "1 of 1 warm-up launches failed: exit code 1" in report(result("t", bad, ok_launch(0, 1.0)))


def test_few_launches_beside_many_are_told_of_their_own_benchmark_once() -> None:
    many = result("many", *(ok_launch(n, 800.0 + 7 * n % 5) for n in range(20)))
    few = result("few", *(ok_launch(n, 800.0 + 7 * n % 5) for n in range(8)))
    text = report(many, few)
    assert text.count("can go unnoticed") == 1
    assert "with 8 launches, slow drift" in text
    assert "can go unnoticed" not in report(many)


def test_few_launches_of_an_interrupted_benchmark_are_told() -> None:
    launches = (ok_launch(n, 800.0 + 7 * n % 5) for n in range(8))
    assert "with 8 launches, slow drift" in report(result("t", *launches, status=Status.INTERRUPTED))


def test_bytes_are_shown_in_the_unit_that_reads_well() -> None:
    assert format_value(2.0**31, "B") == format_value(2.0**31, "B", bare=True) == "2 GiB"
    assert format_value(float("nan"), "B") == "nan B"


def test_memory_is_pss_where_every_launch_has_it_with_rss_beside_it_and_both_are_named() -> None:
    pss = measured("memory.peak_pss", "B", 310 * 2.0**20)
    rss = measured("memory.peak_rss", "B", 1552 * 2.0**20)
    both = builders.launch(rss, pss, job="t.R0")
    assert "memory 310 MiB PSS, 1.52 GiB RSS" in report(result("t", both))
    without = Launch(job="t.R1", status=Status.OK, position=1, measurements=(rss,))
    assert "memory 1.52 GiB RSS\n" in report(result("t", both, without))


BEFORE = Note(text="the machine was busy before this run began (load 12.5 on 2 cores)", kind="busy")
WHILE = Note(text="ran while the machine was busy", evidence="got 26 % of the CPU time it wanted", kind="busy")
NOISY = (700.0, 1000.0, 720.0, 990.0, 810.0, 900.0, 705.0, 1010.0)


def disturbed(*names: str) -> list[Result]:
    """Noisy launches on a busy machine."""
    return [result(name, *(ok_launch(n, speed, notes=(WHILE,)) for n, speed in enumerate(NOISY))) for name in names]


def test_what_helps_against_a_busy_machine_is_said_once_after_its_state() -> None:
    text = " ".join(report(*disturbed("a", "b", "c"), notes=(BEFORE,)).split())
    assert text.count("launches differ by ±") == 3
    assert text.count("stop other work on the machine") == 1
    assert text.count("'bw doctor' measures the noise") == 1
    state, shared, remedy = (text.index(words) for words in ("busy before this run", "[1] ran while", "→ stop other"))
    assert state < shared < remedy


def test_a_busy_machine_is_not_mentioned_where_nothing_could_be_measured() -> None:
    crashed = result("bad", failed_launch(job="bad.D0"), status=Status.FAILED, reason=Reason.CRASHED)
    assert "busy" not in report(crashed, notes=(BEFORE,))
    waited = failed_launch(job="bad.D0", notes=(Note(text="ran while the machine was busy", kind="busy"),))
    alone = result("bad", waited, status=Status.FAILED, reason=Reason.CRASHED)
    assert "stop other work" not in report(alone, notes=(BEFORE,))
    slow = result("bad", failed_launch(job="bad.D0"), status=Status.FAILED, reason=Reason.TIMED_OUT)
    assert "busy before this run" in report(slow, notes=(BEFORE,))
    run = builders.run(crashed, id="r", notes=(BEFORE,))
    cards = callouts(Report(run=run, summaries=summaries_of(run), aggregate=aggregate))
    assert [c.note.severity for c in cards] == ["error"]


def test_a_quiet_run_needs_no_remedy() -> None:
    text = report(result("a", *(ok_launch(n, 829 + n % 3 / 10) for n in range(8))))
    assert "→" not in text
    assert "⚠" not in text


def test_what_disturbs_is_one_card_with_the_machines_state_first() -> None:
    run = builders.run(*disturbed("a", "b", "c"), id="r", notes=(BEFORE,))
    made = Report(run=run, summaries=summaries_of(run), aggregate=aggregate, remarks=run_remarks(run))
    first, *others = callouts(made)
    assert first.note.text == "The machine was busy before this run began (load 12.5 on 2 cores)"
    assert first.note.remedy is not None
    assert first.note.remedy.startswith("Stop other work on the machine or pin free cores with --cores")
    assert [m.name for m in first.mentions] == ["a", "b", "c"]
    assert "got 26 % of the CPU time it wanted" in first.mentions[0].evidence
    assert "speed noisy: launches differ by ±" in first.mentions[0].evidence
    assert [c.note.severity for c in others] == ["info"]  # few launches


def test_a_failure_stays_a_card_of_its_own() -> None:
    run = builders.run(
        *disturbed("a"),
        result("bad", failed_launch(job="bad.D0"), status=Status.FAILED, reason=Reason.CRASHED),
        id="r",
        notes=(BEFORE,),
    )
    found = callouts(Report(run=run, summaries=summaries_of(run), aggregate=aggregate))
    assert [c.note.severity for c in found][:2] == ["error", "warning"]
