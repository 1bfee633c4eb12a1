from __future__ import annotations

import signal
import threading
import tracemalloc
from typing import Any

import pytest

from benchwright.agent.extractors.base import Block, MetricValues
from benchwright.agent.extractors.regex import understand
from benchwright.agent.extractors.scanner import LogScanner
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import JSON_LINES, KEY_VALUE, MetricSpec

SPEED = MetricSpec(name="speed", pattern=r"Speed: (\d+\.\d+|\d+) samples/sec")
CATASTROPHE = MetricSpec(name="bad", pattern=r"x=(\d+)(a+)+$")
HOPELESS_LINE = b"x=1" + b"a" * 60 + b"b\n"


def scan(log: bytes, *metrics: MetricSpec, **options: float) -> tuple[dict[str, list[float]], dict[str, Any]]:
    scanner = LogScanner(metrics, **options)  # type: ignore[arg-type]
    values: dict[str, list[float]] = {}
    for found in scanner.feed(log) + scanner.close():
        values.setdefault(found.name, []).extend(found.values)
    return values, scanner.summary()["metrics"]


def test_a_value_is_given_as_soon_as_its_line_is_complete() -> None:
    scanner = LogScanner([SPEED])
    assert scanner.feed(b"start\nSpeed: 12.5 sam") == []
    assert scanner.feed(b"ples/sec") == []
    assert scanner.feed(b"\nSpeed: 7 samples/sec") == [MetricValues(name="speed", values=[12.5], lines=[2])]
    assert scanner.close() == [MetricValues(name="speed", values=[7.0], lines=[3])]
    summary = scanner.summary()
    assert (summary["lines"], summary["bytes"], summary["long_lines"]) == (3, 50, 0)


def test_a_progress_bar_gives_its_values_while_the_line_is_still_open() -> None:
    scanner = LogScanner([SPEED])
    found = scanner.feed(b"Speed: 1 samples/sec\rSpeed: 2 samples/sec\rSpeed: 3")
    assert found == [MetricValues(name="speed", values=[1.0, 2.0], lines=[1, 1])]


def test_one_pattern_under_several_names_is_given_under_each() -> None:
    p90 = MetricSpec(name="speed-p90", pattern=SPEED.pattern, aggregate="p90")
    values, summary = scan(b"Speed: 3 samples/sec\n", SPEED, p90)
    assert values == {"speed": [3.0], "speed-p90": [3.0]}
    assert list(summary) == ["speed", "speed-p90"]


def test_the_same_metric_twice_does_not_double_its_values() -> None:
    values, _ = scan(b"Speed: 3 samples/sec\n", SPEED, SPEED)
    assert values == {"speed": [3.0]}


def test_two_patterns_under_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="two metrics are named 'speed'"):
        LogScanner([SPEED, MetricSpec(name="speed", pattern=r"speed=(\d+)")])


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"Speed: ([\d.]+ samples", r"metric 'm':8: .*unterminated subpattern at position 7; close the group"),
        (r"[0-9", r"metric 'm':1: .*character set.*; close the set"),
        (r"*.loss", r"nothing to repeat at position 0; write"),
        (r"\y", r"bad escape"),
        ("", "metric 'm': the pattern is empty"),
    ],
)
def test_a_pattern_that_does_not_compile_is_told_with_metric_place_and_remedy(pattern: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        LogScanner([MetricSpec(name="m", pattern=pattern)])
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-0.5", -0.5),
        ("+3", 3.0),
        ("1e-4", 1e-4),
        ("inf", float("inf")),
        ("1,234.5", 1234.5),
        ("12,345,678", 12345678.0),
        ("-1,234.5e2", -123450.0),
        ("1,234", None),
        ("0,500.1", None),
        ("12,34.5", None),
        ("93%", None),
        ("n/a", None),
        ("1.2.3", None),
    ],
)
def test_numbers_are_read_where_there_is_one_reading(text: str, value: float | None) -> None:
    metric = MetricSpec(name="m", pattern=r"m (\S+)")
    values, summary = scan(f"m {text}\n".encode(), metric)
    assert values.get("m", []) == ([] if value is None else [value])
    assert summary["m"]["unparsed"] == (value is None)
    assert summary["m"]["matches"] == (value is not None)


def test_a_match_that_is_no_number_among_many_is_counted_and_shown() -> None:
    log = b"".join(b"m %d\n" % i for i in range(500)) + b"m 12%\n"
    values, summary = scan(log, MetricSpec(name="m", pattern=r"m (\S+)"))
    assert len(values["m"]) == 500
    assert summary["m"]["unparsed"] == 1
    assert summary["m"]["unparsed_examples"] == [{"line": 501, "text": "12%"}]


def test_a_pattern_that_never_ends_loses_only_the_line_it_hangs_on() -> None:
    good = b"x=5aaa\n" * 3
    values, summary = scan(good + HOPELESS_LINE + good, CATASTROPHE, SPEED, match_limit_s=0.1)
    assert values == {"bad": [5.0] * 6}
    assert (summary["bad"]["cut_off"], summary["bad"]["cut_off_lines"]) == (1, [4])
    assert summary["bad"]["given_up"] is False
    assert summary["speed"]["cut_off"] == 0


def test_a_pattern_that_was_cut_off_three_times_is_given_up_and_the_others_go_on() -> None:
    log = HOPELESS_LINE * 50 + b"x=5a\nSpeed: 3 samples/sec\n"
    values, summary = scan(log, CATASTROPHE, SPEED, match_limit_s=0.05)
    assert values == {"speed": [3.0]}
    assert (summary["bad"]["cut_off"], summary["bad"]["given_up"]) == (3, True)


def test_the_signal_handler_and_timer_of_others_are_put_back() -> None:
    def handler(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGVTALRM, handler)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1000.0)
    try:
        scan(HOPELESS_LINE, CATASTROPHE, match_limit_s=0.05)
        assert signal.getsignal(signal.SIGVTALRM) is handler
        assert 900 < signal.getitimer(signal.ITIMER_VIRTUAL)[0] <= 1001
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_no_pattern_runs_in_a_thread_where_it_could_not_be_stopped() -> None:
    scanner = LogScanner([SPEED])
    errors: list[str] = []

    def feed() -> None:
        try:
            scanner.feed(b"Speed: 3 samples/sec\n")
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=feed)
    thread.start()
    thread.join()
    assert len(errors) == 1
    assert "main thread" in errors[0]


def test_a_block_taken_apart_gives_each_line_and_each_part_of_a_progress_bar_once() -> None:
    parts = [(part.raw, part.first_line) for part in Block(b"a\r\n\nb\rc\n\rd", first_line=5).single_lines()]
    assert parts == [(b"a", 5), (b"", 6), (b"b", 7), (b"c", 7), (b"", 8), (b"d", 8)]


def test_a_line_without_an_end_needs_no_more_memory_than_the_limit() -> None:
    scanner = LogScanner([SPEED], line_limit_bytes=1 << 16)
    block = b"x" * 10_000
    tracemalloc.start()
    found = [f for i in range(1000) for f in scanner.feed(b"Speed: 8 samples/sec" + block if i % 100 == 0 else block)]
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    found += scanner.feed(b"\nSpeed: 9 samples/sec\n")
    assert peak_bytes < 2_000_000  # of 10 MB fed
    assert [value for f in found for value in f.values].count(8.0) >= 9  # one may lie across a cut
    assert found[-1].lines[-1] == 2
    assert scanner.summary()["long_lines"] == 1
    assert scanner.summary()["lines"] == 2


def test_a_long_line_is_cut_at_the_same_places_however_it_is_fed() -> None:
    metric = MetricSpec(name="m", pattern=r"(\d)")
    log = ("é1" * 40 + "\n" + "2" * 64 + "\r\n" + "3" * 65 + "\n4\n" + "5" * 200 + "\r").encode() + b"\x80" * 99 + b"6"
    results = []
    for step in (1, 3, 16, 64, 65, 100, 1000):
        scanner = LogScanner([metric], line_limit_bytes=64)
        found = [f for i in range(0, len(log), step) for f in scanner.feed(log[i : i + step])] + scanner.close()
        values = [value for f in found for value in f.values]
        lines = [line for f in found for line in f.lines]
        results.append((values, lines, scanner.summary()["long_lines"]))
    assert results.count(results[0]) == len(results)
    assert results[0][0] == [1] * 40 + [2] * 64 + [3] * 65 + [4] + [5] * 200 + [6]
    assert results[0][2] == 4


def test_a_pattern_that_never_matched_shows_the_nearest_lines() -> None:
    noise = b"".join(b"INFO worker %d fetched a shard\n" % i for i in range(20_000))
    near = b"INFO speed=12.5 samples per second\n"
    _, summary = scan(noise + near + noise, SPEED)
    nearest = summary["speed"]["nearest"]
    assert nearest[0] == {"line": 20_001, "text": "INFO speed=12.5 samples per second"}
    assert len(nearest) <= 3


def test_a_nearest_line_is_cut_around_what_it_has_in_common() -> None:
    _, summary = scan(b"x" * 5000 + b" Speed is 3 samples " + b"y" * 5000, SPEED)
    text = summary["speed"]["nearest"][0]["text"]
    assert "Speed is 3 samples" in text
    assert len(text) == 200


def test_a_metric_that_matched_needs_no_evidence() -> None:
    _, summary = scan(b"Speed 3\nSpeed: 3 samples/sec\n", SPEED)
    assert summary["speed"]["nearest"] == []


@pytest.mark.parametrize(
    ("key", "line", "values"),
    [
        ("loss", "loss=0.5 val_loss=2 loss: 3", [0.5, 3.0]),
        ("loss", "{'loss': 1.5, 'train/loss': 7}", [1.5]),
        ("loss", 'x.loss=1 loss = "2e-3", my-loss=4', [2e-3]),
        ("loss", "loss=nan loss=-inf nanoloss=1", [float("nan"), float("-inf")]),
        ("acc", "acc=93.5% accuracy=1", [93.5]),
        ("a.b", "a.b=1 axb=2", [1.0]),
        ("step", "step=1,loss=2", [1.0]),
        ("loss", "loss=high loss", []),
    ],
)
def test_key_value_reads_the_key_and_no_other(key: str, line: str, values: list[float]) -> None:
    found, _ = scan(line.encode(), MetricSpec(name="m", pattern=key, kind=KEY_VALUE))
    assert repr(found.get("m", [])) == repr(values)


@pytest.mark.parametrize(
    ("key", "line", "values"),
    [
        ("loss", '{"loss": 0.5}', [0.5]),
        ("a.b.c", '{"a": {"b": {"c": 3}}}', [3.0]),
        ("a.b.c", '{"a.b.c": 3}', [3.0]),
        ("a.b.c", '{"a.b": {"c": 3}, "a": {"b": 1}}', [3.0]),
        ("losses.1", '{"losses": [1, 2.5]}', [2.5]),
        ("a.0.b", '{"a": [{"b": 4}]}', [4.0]),
        ("loss", '12:00 {worker} {"loss": 2} done', [2.0]),
        ("loss", '{"loss": "2.5"}', [2.5]),
        ("loss", '{"loss": true}', []),
        ("loss", '{"loss": null}', []),
        ("loss", '{"train": {"loss": 1}}', []),
        ("loss", '{"loss": 1', []),
        ("größe", '{"gr\\u00f6\\u00dfe": 2}', [2.0]),
        ("loss", '{"loss": NaN, "x": 1}', [float("nan")]),
        ("loss", '{"loss": %s}' % ("9" * 400), [float("inf")]),
        ("loss", '{"loss": ' + "[" * 5000, []),
    ],
)
def test_json_lines_reach_the_key(key: str, line: str, values: list[float]) -> None:
    found, _ = scan(line.encode(), MetricSpec(name="m", pattern=key, kind=JSON_LINES))
    assert repr(found.get("m", [])) == repr(values)


def test_json_that_is_no_number_is_counted() -> None:
    _, summary = scan(b'{"loss": null}\n{"loss": {"a": 1}}\n', MetricSpec(name="m", pattern="loss", kind=JSON_LINES))
    assert summary["m"]["unparsed"] == 2


def test_a_cut_off_never_strikes_inside_code_that_is_not_ours() -> None:
    """An exception out of a foreign lock's critical section would leave that lock held for ever."""
    import time

    from benchwright.agent.extractors.scanner import CutOff, TimeLimit

    reached = []
    scope = {"__name__": "somebody.else", "time": time, "reached": reached}
    code = "def work():\n    until = time.process_time() + 0.3\n    while time.process_time() < until: pass\n    reached.append(1)\n"
    exec(code, scope)
    limit = TimeLimit(0.05)
    with limit:
        try:
            limit.run(scope["work"])
        except CutOff:
            reached.append("cut off")
    assert reached[0] == 1


def test_the_time_limit_of_a_match_can_be_set_and_switched_off(monkeypatch):
    monkeypatch.setenv("BENCHWRIGHT_MATCH_LIMIT", "0.01")
    log = b"a" * 24 + b"\n"
    slow = MetricSpec(name="m", pattern="(a+)+b")
    scanner = LogScanner([slow])
    scanner.feed(log)
    assert scanner.summary()["metrics"]["m"]["cut_off"] == 1
    monkeypatch.setenv("BENCHWRIGHT_MATCH_LIMIT", "off")
    scanner = LogScanner([slow])
    scanner.feed(log[-20:])
    assert scanner.summary()["metrics"]["m"]["cut_off"] == 0


def test_without_the_parse_tree_the_same_is_found(monkeypatch):
    log = b"loss is 1.5\nnothing\nloss is 2.5\n" * 50
    found = [LogScanner([MetricSpec(name="m", pattern=r"loss is (\S+)")]).feed(log)]
    monkeypatch.setenv("BENCHWRIGHT_PATTERN_TREE", "off")
    assert understand("loss").literal == ""
    found.append(LogScanner([MetricSpec(name="m", pattern=r"loss is (\S+)")]).feed(log))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("pattern", "line", "value", "whole"),
    [
        (r"speed: ([\d.]+)", "speed: 1,234.5", 1.0, "1,234.5"),
        (r"speed: ([\d.]+)", "speed: 1.5e3", 1.5, "1.5e3"),
        (r"speed: ([\d.]+)", "speed: 1.5k", 1.5, "1.5k"),
        (r"speed: ([\d.]+)", "speed: 1 234.5", 1.0, "1 234.5"),
        (r"speed: ([\d.]+)", "speed: 1,5 items/s", 1.0, "1,5"),
        (r"speed: ([\d.]+)", "speed: 1.234,5", 1.234, "1.234,5"),
        (r"speed: ([\d.]+).*items", "speed: 1'234.5 items", 1.0, "1'234.5"),
        (r"speed: (\d+)", "speed: 12.5", 12.0, "12.5"),
        (r"([\d.]+) items/s", "speed: 1,234.5 items/s", 234.5, "1,234.5"),
        (r"speed:.*([\d.]+)", "speed: 1234.5", 5.0, "1234.5"),
        (r"speed:.*?([\d.]+)", "speed: -2.5", 2.5, "-2.5"),
        (r"\d+\.\d", "speed: 12.55", 12.5, "12.55"),
    ],
)
def test_a_number_that_is_cut_in_the_middle_is_told_with_its_line(
    pattern: str, line: str, value: float, whole: str
) -> None:
    log = b"speed: x\n" + f"{line}\n".encode()
    values, summary = scan(log, MetricSpec(name="m", pattern=pattern))
    assert values["m"][0] == value
    assert summary["m"]["partial"] == 1
    assert summary["m"]["partial_examples"][0]["line"] == 2
    assert summary["m"]["partial_examples"][0]["text"].startswith(f"{whole} read as ")


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"speed: ([\d.]+)", "speed: 12.5"),
        (r"speed: ([\d.]+)", "speed: 12. Next"),
        (r"speed: ([\d.]+)", "speed: 12.5, then"),
        (r"speed: ([\d.]+)", "speed: 12.5kB"),
        (r"speed: ([\d.]+)", "speed: 12.5 items/s 100 ms"),
        (r"speed: (\d+)", "speed: 3,100,0.5"),
        (r"speed: (\d+)", "speed: 12/100"),
        (r"speed: (\d+)\.", "speed: 12.5"),
        (r"([\d.]+) items/s", "step 5 123.4 items/s"),
        (r"speed: -([\d.]+)", "speed: -12.5"),
        (r"resnet(\d+)", "resnet50 12"),
        (r"([\d.]+) items", "2 to 3 items"),
    ],
)
def test_a_number_that_is_whole_or_cut_on_purpose_is_not(pattern: str, line: str) -> None:
    values, summary = scan(f"{line}\n".encode() * 3, MetricSpec(name="m", pattern=pattern))
    assert len(values["m"]) == 3
    assert summary["m"]["partial"] == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.5", 1234.5),
        ("1.5e3", 1500.0),
        ("1.5k", 1500.0),
        ("-2M", -2e6),
        ("3G/s", 3e9),
        ("1'234'567", 1234567.0),
        ("1\u202f234.5", 1234.5),
        ("12.", 12.0),
        (".5", 0.5),
        ("93%", 93.0),
        ("12.5kB", 12.5),
        ("nan", float("nan")),
        ("1,234", None),
    ],
)
def test_number_in_a_pattern_and_a_key_read_numbers_as_people_write_them(text: str, value: float | None) -> None:
    for metric in (MetricSpec(name="m", pattern="m: {number}"), MetricSpec(name="m", pattern="m", kind=KEY_VALUE)):
        values, summary = scan(f"m: {text}\n".encode(), metric)
        assert values.get("m", []) == ([] if value is None else [pytest.approx(value, nan_ok=True)])
        assert summary["m"]["unparsed"] == (value is None)
        assert summary["m"]["partial"] == 0


def test_number_reads_spaces_between_thousands_where_text_follows_in_the_pattern() -> None:
    values, _ = scan(b"m: 1 234.5 items/s\n", MetricSpec(name="m", pattern="m: {number} items/s"))
    assert values == {"m": [1234.5]}
    values, summary = scan(b"m: 1 234.5 items/s\n", MetricSpec(name="m", pattern="m: {number}"))
    assert (values, summary["m"]["partial"]) == ({"m": [1.0]}, 1)


def test_number_beside_a_group_is_refused_and_in_one_is_itself() -> None:
    with pytest.raises(InvalidInput, match="another group"):
        LogScanner([MetricSpec(name="m", pattern=r"step (\d+): {number}")])
    assert scan(b"m: 1.5k\n", MetricSpec(name="m", pattern="(?:m|n): ({number})"))[0] == {"m": [1500.0]}


def test_a_cut_among_thousands_of_whole_numbers_is_found_however_the_log_is_scanned() -> None:
    log = b"".join(b"speed: %d.5\n" % i for i in range(5000)) + b"speed: 5,001.5\n"
    values, summary = scan(log, MetricSpec(name="m", pattern=r"speed: ([\d.]+)"))
    assert len(values["m"]) == 5001
    assert summary["m"]["partial_examples"] == [{"line": 5001, "text": "5,001.5 read as 5"}]
