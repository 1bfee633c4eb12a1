"""What benchmark programs print becomes samples: every one, in order, and never a wrong one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.errors import InvalidInput
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.kinds.spec.observers.converters import check_converter, patterns_of, reader_of
from benchwright.kinds.spec.observers.records import Observed, PrintedLine
from benchwright.kinds.spec.observers.series import series_of
from benchwright.kinds.spec.results.statistics import printed_summary


def read(text: str, converter: str | None = None, *, cut: bool = False, **args: str) -> Observed:
    """What is read from a log; `cut`: its last line has no end."""
    reader = reader_of(converter, args, None, None)
    assert reader is not None
    texts = text.splitlines()
    lines = [PrintedLine(n, line, cut and n == len(texts)) for n, line in enumerate(texts, start=1)]
    return reader.read([line for line in lines if reader.wanted in line.text])


def measured(observed: Observed, model: str = "") -> dict[str, Measurement]:
    """By metric and operator."""
    made = [series.measurement for series in series_of(observed.records, model)]
    return {" ".join([m.metric, *m.labels.values()]): m for m in made}


def record(**fields: object) -> str:
    return json.dumps({"type": "NET", "metric": "latency", "unit": "us", "value": 1} | fields)


def test_every_sample_is_kept_in_order_and_in_seconds() -> None:
    log = "".join(f"I/native: Caffe2Observer {record(value=str(v))}\nnoise\n" for v in (120.5, 99, 101.25))
    found = measured(read(log))["latency"]
    assert found.samples == (120.5e-6, 99e-6, 101.25e-6)
    assert (found.unit, found.direction) == ("s", Direction.LOWER)


def test_operators_have_a_label_and_do_not_take_samples_from_the_net() -> None:
    """FAI-PEP kept the last `iter` records of all, and so 1 of 5 of the net."""
    rounds = "".join(
        f"Caffe2Observer {record(value=v)}\n"
        + "".join(f"Caffe2Observer {record(type=f'ID_{k}_Conv', value=v / 10)}\n" for k in range(3))
        + f"Caffe2Observer {record(type='ID_0_Conv', metric='flops', unit='FLOP', value=7)}\n"
        for v in (10, 20, 30, 40, 50)
    )
    found = measured(read(rounds))
    assert found["latency"].samples == (10e-6, 20e-6, 30e-6, 40e-6, 50e-6)
    assert found["op.time ID_2_Conv"].samples == (1e-6, 2e-6, 3e-6, 4e-6, 5e-6)
    assert found["op.time ID_2_Conv"].labels == {"op": "ID_2_Conv"}
    assert found["op.flops ID_0_Conv"].samples == (7.0,) * 5


def test_the_older_json_form() -> None:
    log = 'PyTorchObserver {"NET": {"latency": {"value": "1.5", "unit": "ms"}}, "Relu": {"latency": {"values": [1, 2], "unit": "ns"}}}'
    found = measured(read(log))
    assert found["latency"].samples == (1.5e-3,)
    assert found["op.time Relu"].samples == (1e-9, 2e-9)


def test_several_records_on_one_line_and_text_around_them() -> None:
    log = (
        f"x Caffe2Observer: {record(value=1)}Caffe2Observer {record(value=2, info_string='not Caffe2Observer {')} tail"
    )
    observed = read(log)
    assert measured(observed)["latency"].samples == (1e-6, 2e-6)
    assert not observed.unread
    assert series_of(observed.records)[0].about == {"info_string": "not Caffe2Observer {"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('Caffe2Observer {"type": "NET", "metric": "latency", "unit": "us", "value": 12', "is not JSON"),
        ('Caffe2Observer {"type": "NET", "met[W net.cc:1] warning', "is not JSON"),
        ("Caffe2Observer " + record(value="fast"), "'NET latency' is not a number"),
        ("Caffe2Observer " + record(value=True), "'NET latency' is not a number"),
        ("Caffe2Observer " + record(value=None), "'NET latency' is not a number"),
        ("Caffe2Observer " + record(value="1,234"), "'NET latency' is not a number"),
        ("Caffe2Observer " + record(metric=" "), "has an empty type or metric"),
        ('Caffe2Observer {"type": "NET", "metric": "latency", "unit": "us"}', "has no value"),
        ('Caffe2Observer {"a": 1}', "has no type and metric"),
        ("Caffe2Observer NET_DELAY - fast (us)", "holds no number"),
        ("Caffe2Observer " + "[" * 100_000, "is not JSON"),
    ],
)
def test_what_cannot_be_read_is_listed_and_no_number(line: str, why: str) -> None:
    observed = read(f"Caffe2Observer {record(value=5)}\n{line}\n")
    assert measured(observed)["latency"].samples == (5e-6,)
    assert [(each.line, each.why) for each in observed.unread] == [(2, why)]


def test_one_bad_value_in_a_list_costs_only_itself() -> None:
    observed = read("Caffe2Observer " + record(values=[1, "x", 3]))
    assert measured(observed)["latency"].samples == (1e-6, 3e-6)
    assert len(observed.unread) == 1


def test_nan_stays_a_sample_by_which_the_launch_is_judged() -> None:
    found = measured(read('Caffe2Observer {"type": "NET", "metric": "latency", "unit": "us", "value": NaN}'))
    assert math.isnan(found["latency"].samples[0])


def test_a_program_that_prints_only_statistics_gives_its_median() -> None:
    observed = read(
        "PyTorchObserver "
        + json.dumps({"type": "NET", "metric": "latency", "unit": "ms", "summary": {"p50": 4, "mean": 5}})
    )
    assert measured(observed)["latency"].samples == (4e-3,)


def test_a_share_of_corrects_is_the_programs_percentage_not_a_median_of_zeros_and_ones() -> None:
    log = "Caffe2Observer " + record(
        type="squeezenet", metric="percent_of_top1_corrects", unit="percent", values=[1, 0, 1, 1], summary={"p50": 75.0}
    )
    found = measured(read(log), model="squeezenet")["percent_of_top1_corrects"]
    assert (found.value, found.unit, found.direction) == (75.0, "%", Direction.HIGHER)
    assert found.samples == (1, 0, 1, 1)
    twice = measured(read(log + "\n" + log.replace("75.0", "25.0")), model="squeezenet")["percent_of_top1_corrects"]
    assert (twice.samples, twice.value) == ((75.0, 25.0), None)


def test_a_rounded_summary_does_not_replace_measured_times() -> None:
    found = measured(read("Caffe2Observer " + record(values=[0.85, 0.95, 0.9], summary={"p50": 0})))["latency"]
    assert found.value is None
    assert found.samples == pytest.approx((0.85e-6, 0.95e-6, 0.9e-6))


# -- the text form of 2018 --------------------------------------------------------------------------------------------

PLAIN = "Caffe2Observer Delay Start\nCaffe2Observer NET_DELAY - {0} (us)\nCaffe2Observer Delay End\n"
WITH_OPERATORS = (
    "Caffe2Observer Delay Start\nCaffe2Observer NET_DELAY - {0} (us)\nCaffe2Observer ID_0_Conv - in - 1.5 (us)\n"
    "Caffe2Observer ID_1_Relu - 2 (ms)\nCaffe2Observer Delay End\n"
)


def test_a_block_with_operators_does_not_count_as_the_nets_latency() -> None:
    found = measured(read(PLAIN.format(10) + "stderr\n" + PLAIN.format(12) + WITH_OPERATORS.format(99)))
    assert found["latency"].samples == (10e-6, 12e-6)
    assert found["latency.profiled"].samples == (99e-6,)
    assert found["op.time ID_0_Conv - in"].samples == (1.5e-6,)
    assert found["op.time ID_1_Relu"].samples == (2e-3,)


def test_a_block_without_its_end_may_have_had_operators() -> None:
    found = measured(read(PLAIN.format(10) + "".join(PLAIN.format(77).splitlines(keepends=True)[:2])))
    assert found["latency"].samples == (10e-6,)
    assert found["latency.profiled"].samples == (77e-6,)


def test_a_row_that_was_cut_off_is_no_number() -> None:
    observed = read("Caffe2Observer NET_DELAY - 12.", cut=True)
    assert not observed.records
    assert observed.unread[0].why == "is cut off"


def test_operators_only() -> None:
    found = measured(read("Caffe2Observer Delay Start\nCaffe2Observer A - 1 (us)\nCaffe2Observer Delay End\n"))
    assert list(found) == ["op.time A"]


# -- other converters -------------------------------------------------------------------------------------------------


def test_tflite_counts_the_last_line_and_keeps_the_warm_up_apart() -> None:
    log = "INFO: Running benchmark\ncount=1 curr=5000\nINFO: count=50 first=120 curr=91 min=90 max=120 avg=98.4 std=7\n"
    found = measured(read(log, "tflite"))
    assert found["latency"].samples == pytest.approx((98.4e-6,))
    assert found["latency"].warmup_samples == (5e-3,)
    assert found["latency.max"].samples == (120e-6,)
    assert found["latency.std"].samples == (7e-6,)


def test_the_own_statistics_of_several_launches_are_those_of_all_their_runs() -> None:
    """Checked with numpy on runs that have these statistics."""
    runs = [np.array([1.0, 3.0, 5.0, 7.0]), np.array([2.0, 10.0])]
    told = [
        {"num_runs": len(r), "summary": {"mean": r.mean(), "p0": r.min(), "p100": r.max(), "stdev": r.std(), "p50": 1}}
        for r in runs
    ]
    both = np.concatenate(runs)
    assert printed_summary(told) == {
        "mean": pytest.approx(both.mean()),
        "p0": 1.0,
        "p100": 10.0,
        "stdev": pytest.approx(both.std()),
    }
    assert printed_summary(told[:1]) == told[0]["summary"]
    assert printed_summary([*told, {}]) == printed_summary([]) == {}


@pytest.mark.parametrize("tail", ["count=50 first=120 avg=98", "count=50 first=", "count=50 avg=nope"])
def test_half_a_line_of_tflite_is_no_number_and_its_warm_up_is_none_either(tail: str) -> None:
    observed = read(f"count=10 avg=50\n{tail}", "tflite", cut=True)
    assert measured(observed)["latency"].samples == ()
    assert measured(observed)["latency"].warmup_samples == (50e-6,)
    assert [each.line for each in observed.unread] == [2]


def test_any_identifier_and_plain_json() -> None:
    assert measured(read(f"MyBench {record(value=3)}", "json_with_identifier_converter", identifier="MyBench"))
    assert not read(f"Caffe2Observer {record(value=3)}", "json_with_identifier_converter", identifier="MyBench").records
    observed = read(f"[INFO] {{}}\n{record(value=3)}\n{{half", "json_converter")
    assert measured(observed)["latency"].samples == (3e-6,)
    assert [each.line for each in observed.unread] == [3]


@pytest.mark.parametrize(
    ("framework", "values"), [("caffe2", [1]), ("pytorch", [2]), ("generic", [2]), ("glow", [1, 2]), (None, [1, 2])]
)
def test_the_framework_names_the_observer(framework: str | None, values: list[float]) -> None:
    reader = reader_of(None, {}, None, framework)
    assert reader is not None
    lines = [
        PrintedLine(n, f"{name}Observer {record(value=n)}") for n, name in enumerate(("Caffe2", "PyTorch"), start=1)
    ]
    found = reader.read([line for line in lines if reader.wanted in line.text])
    assert [value for each in found.records for value in each.values] == values
    for line in lines:  # a program that prints only the other one is read, too
        assert len(reader.read([line]).records) == 1


@pytest.mark.compat
def test_documents_of_other_tools() -> None:
    rows = [
        {
            "name": "BM/2",
            "run_name": "BM/2",
            "run_type": "iteration",
            "real_time": t,
            "cpu_time": 1,
            "time_unit": "ms",
            "items_per_second": 9.0,
        }
        for t in (2.0, 4.0)
    ]
    mean = {"name": "BM/2_mean", "run_type": "aggregate", "real_time": 3.0, "time_unit": "ms"}
    google = json.dumps({"context": {}, "benchmarks": [*rows, mean]}, indent=1)
    found = measured(read(f"Run on (2 X 48 MHz CPU s)\n{google}\ndone", "google-benchmark"))
    assert found["latency"].samples == (2e-3, 4e-3)
    assert found["items_per_second"].samples == (9.0, 9.0)
    pytest_json = json.dumps(
        {"machine_info": {}, "benchmarks": [{"fullname": n, "stats": {"data": [1.0, 2.0], "mean": 9}} for n in "ab"]}
    )
    assert measured(read(pytest_json, "pytest-benchmark"))["op.time b"].samples == (1.0, 2.0)
    fine = json.dumps({"results": [{"command": "true", "mean": 1, "times": [0.5, 0.25]}]}, indent=2)
    assert measured(read(f"Benchmark 1\n{fine}", "hyperfine"))["latency"].samples == (0.5, 0.25)


@pytest.mark.compat
def test_half_a_document_is_no_result() -> None:
    text = json.dumps({"results": [{"command": "true", "mean": 1, "times": [0.5, 0.25]}]})[:-4]
    observed = read(text, "hyperfine")
    assert not observed.records
    assert "no result of hyperfine" in observed.unread[0].why


def test_regular_expressions_are_metrics_of_the_log() -> None:
    [metric] = patterns_of("regex", {"latency": r"took ([\d.]+) ms"})
    assert (metric.name, metric.unit, metric.kind) == ("latency", "ms", "regex")
    assert reader_of("regex", {"latency": "x"}, None, None) is None


@pytest.mark.parametrize(("name", "args"), [("json_convertor", {}), ("regex", {}), ("regex", {"a": 1})])
def test_an_unknown_or_empty_converter_is_refused(name: str, args: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        check_converter(name, args)


# -- properties -------------------------------------------------------------------------------------------------------

finite = st.floats(1e-3, 1e9)
noise = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=20).filter(
    lambda text: "Observer" not in text and len(text.splitlines()) <= 1
)


@given(
    st.lists(st.tuples(st.sampled_from(["NET", "Conv_0", "Relu"]), finite, st.sampled_from(["ns", "us", "ms", "s"]))),
    st.data(),
)
def test_all_values_come_back_in_order_whatever_is_around_them(
    records: list[tuple[str, float, str]], data: st.DataObject
) -> None:
    lines: list[str] = []
    for kind, value, unit in records:
        lines += data.draw(st.lists(noise, max_size=2))
        shown = data.draw(st.sampled_from([value, repr(value)]))
        lines.append(f"{data.draw(noise)}Caffe2Observer {record(type=kind, value=shown, unit=unit)}")
    found = measured(read("\n".join(lines)))
    divisor = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
    for kind, name in (("NET", "latency"), ("Conv_0", "op.time Conv_0"), ("Relu", "op.time Relu")):
        wanted = [value / divisor[unit] for k, value, unit in records if k == kind]
        assert list(found[name].samples if name in found else ()) == wanted


@given(st.lists(finite, min_size=1, max_size=8), st.data())
def test_a_log_that_ends_anywhere_gives_a_beginning_of_its_samples(values: list[float], data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(["json", "text"]))
    row = {
        "json": lambda v: f"Caffe2Observer {record(value=v)}\n",
        "text": lambda v: f"Caffe2Observer NET_DELAY - {v!r} (us)\n",
    }
    log = "".join(map(row[form], values))
    end = data.draw(st.integers(0, len(log)))
    found = measured(read(log[:end], cut=True))
    samples: Sequence[float] = found["latency"].samples if "latency" in found else ()
    assert list(samples) == [value / 1e6 for value in values][: len(samples)]
    assert len(samples) >= log[:end].count("\n")


@pytest.mark.compat
@given(
    st.text(max_size=200),
    st.sampled_from([None, "tflite", "json_converter", "google-benchmark", "pytest-benchmark", "hyperfine"]),
)
def test_no_output_breaks_a_reader(text: str, converter: str | None) -> None:
    for line in (text, f"Caffe2Observer {text}", f"count={text}", "{" + text, '{"benchmarks": [' + text):
        records = read(line, converter).records
        found = series_of(records)
        assert {(series.type, series.metric) for series in found} == {(r.type, r.metric) for r in records}
