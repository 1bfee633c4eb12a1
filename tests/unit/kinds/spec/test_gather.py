"""What one launch of a test reported, and whether that is a result."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from benchwright.core.artifact import Artifact
from benchwright.core.status import Reason, Status
from benchwright.kinds.spec.gather import SpecGatherer
from benchwright.kinds.spec.spec_test import SpecConverter, SpecOutput, SpecPower, SpecTest


def spec_test(**fields: Any) -> SpecTest:
    return SpecTest(**({"path": "/s.json", "line": 1, "model": "net", "identifier": "0"} | fields))


def gathered(test: SpecTest, *lines: str, cut: bool = False) -> SpecGatherer:
    gatherer = SpecGatherer(test)
    gatherer.add({"event": "printed", "lines": list(enumerate(lines, start=1)), "cut": cut})
    return gatherer


def record(value: object, **fields: object) -> str:
    return "Caffe2Observer " + json.dumps({"type": "NET", "metric": "latency", "unit": "us", "value": value} | fields)


def verdict(gatherer: SpecGatherer) -> tuple[Status, Reason | None, str] | None:
    found = gatherer.judge(gatherer.measurements())
    return None if found is None else (found.status, found.reason, found.detail or "")


def test_records_of_the_net_are_a_result() -> None:
    gatherer = gathered(
        spec_test(), record(3), "\x1b[32mCaffe2Observer " + record(4).removeprefix("Caffe2Observer ") + "\x1b[0m"
    )
    [latency] = gatherer.measurements()
    assert (latency.metric, latency.samples, latency.source) == ("latency", (3e-6, 4e-6), "log")
    assert verdict(gatherer) is None
    assert gatherer.facts() == {"records": [{"type": "NET", "metric": "latency", "unit": "us", "as": "latency"}]}


def test_no_record_is_no_data_and_says_what_is_missing() -> None:
    status, reason, detail = verdict(gathered(spec_test(framework="pytorch"), "hello")) or (None, None, "")
    assert (status, reason) == (Status.FAILED, Reason.NO_DATA)
    assert "'PyTorchObserver {…}' is missing" in detail or "PyTorchObserver" in detail


def test_half_a_record_is_no_data_and_shown() -> None:
    gatherer = gathered(spec_test(), record(3)[:-5], cut=True)
    _, reason, detail = verdict(gatherer) or (None, None, "")
    assert reason is Reason.NO_DATA
    assert "line 1 is cut off" in detail
    assert gatherer.notes()[0].text == "1 record could not be read and did not count"


@pytest.mark.parametrize("value", [math.nan, math.inf, 0, -1])
def test_an_impossible_latency_is_invalid(value: float) -> None:
    gatherer = gathered(spec_test(), record(2), record(value))
    _, reason, detail = verdict(gatherer) or (None, None, "")
    assert reason is Reason.INVALID
    assert "in record 2 of 2" in detail


def test_operators_only_is_noted_and_gives_no_latency() -> None:
    gatherer = gathered(spec_test(), record(2, type="Conv_0"), record(3, type="Relu_1"))
    assert [m.metric for m in gatherer.measurements()] == ["op.time", "op.time"]
    assert verdict(gatherer) is None
    assert "operators only" in gatherer.notes()[0].text


def test_fewer_records_than_iterations_are_noted() -> None:
    assert gathered(spec_test(iterations=5), record(1), record(2)).notes()[0].evidence == "2 of 5"
    assert not gathered(spec_test(iterations=5), record(1)).notes()  # one record may stand for all


def test_tflite_by_its_framework_and_a_converter_before_it() -> None:
    line = "INFO: count=5 first=9 curr=8 min=7 max=9 avg=8.5 std=1"
    assert gathered(spec_test(framework="tflite"), line).measurements()[0].samples == (8.5e-6,)
    converter = SpecConverter(name="json_with_identifier_converter", args={"identifier": "X"})
    test = spec_test(framework="tflite", converter=converter)
    assert gathered(test, line, record(1).replace("Caffe2Observer", "X")).measurements()[0].samples == (1e-6,)


# -- golden outputs ---------------------------------------------------------------------------------------------------

GOLDEN = Artifact(key="softmax", filename="softmax.txt", location="softmax.txt")
COMPARED: dict[str, Any] = {"event": "compared", "output": "softmax", "figures": {"max_abs": 0.5, "cosine": 0.9}}


def test_a_passed_comparison_is_a_result_of_its_own() -> None:
    gatherer = SpecGatherer(spec_test(metric="error", goldens=(GOLDEN,)))
    gatherer.add(COMPARED)
    assert verdict(gatherer) is None
    assert {m.metric: (m.samples, m.direction.value, m.labels) for m in gatherer.measurements()} == {
        "error.max_abs": ((0.5,), "lower", {"output": "softmax"}),
        "error.cosine": ((0.9,), "higher", {"output": "softmax"}),
    }


def test_a_failed_tolerance_is_invalid() -> None:
    gatherer = SpecGatherer(spec_test(metric="error", goldens=(GOLDEN,)))
    gatherer.add(COMPARED | {"wrong": "max_abs 0.5 is above 0.1; furthest off at [3]: 1 expected, 1.5 found"})
    _, reason, detail = verdict(gatherer) or (None, None, "")
    assert reason is Reason.INVALID
    assert detail.startswith("output softmax: max_abs 0.5 is above 0.1")


def test_a_golden_that_was_never_compared_is_no_success() -> None:
    gatherer = gathered(spec_test(metric="error", goldens=(GOLDEN,)), record(3))
    assert (verdict(gatherer) or ())[1] is Reason.NO_DATA


# -- power ------------------------------------------------------------------------------------------------------------


def reading(
    seconds: float, joules: float, sampler: str = "rapl", name: str = "package_j", device: int | None = None
) -> dict[str, Any]:
    return {"event": "sample", "t": int(seconds * 1e9), "sampler": sampler, "values": {name: joules}, "device": device}


def power(test: SpecTest, *events: dict[str, Any]) -> dict[str, float]:
    gatherer = SpecGatherer(test)
    for event in events:
        gatherer.sampled(event)
    return {m.metric: m.samples[0] for m in gatherer.measurements()}


def test_power_is_the_sum_over_counters() -> None:
    gpu = [reading(t, j, "nvidia", "energy_j", 0) for t, j in ((1.0, 1000.0), (3.0, 1600.0))]
    found = power(spec_test(metric="power"), reading(0, 5), *gpu, reading(2, 25), reading(4, 45))
    assert found == {"power": 40 / 4 + 600 / 2, "energy": 640.0}


def test_collection_time_limits_what_counts() -> None:
    test = spec_test(metric="power", power=SpecPower(collection_time_s=2))
    assert power(test, reading(0, 0), reading(1, 10), reading(2, 20), reading(3, 1000)) == {
        "power": 10.0,
        "energy": 20.0,
    }


@pytest.mark.parametrize(
    "events", [[], [reading(0, 5)], [reading(0, 5, "nvidia", "power_w", 0), reading(1, 6, "nvidia", "power_w", 0)]]
)
def test_without_a_counter_a_power_test_is_skipped_with_the_reason(events: list[dict[str, Any]]) -> None:
    gatherer = SpecGatherer(spec_test(metric="power"))
    for event in events:
        gatherer.sampled(event)
    status, reason, detail = verdict(gatherer) or (None, None, "")
    assert (status, reason) == (Status.SKIPPED, Reason.LACKS_CAPABILITY)
    assert "RAPL" in detail


def test_on_a_phone_its_battery_counts_and_not_this_machines_counters() -> None:
    def state(uptime: int, charge: int) -> tuple[str, ...]:
        return (
            f"BenchwrightBattery {uptime}.00 9.9",
            "  USB powered: false",
            "  voltage: 4000",
            f"  Charge counter: {charge}",
        )

    gatherer = gathered(spec_test(metric="power"), *state(10, 2_000_000), record(3), *state(46, 1_990_000))
    for event in (reading(0, 0), reading(36, 9999)):
        gatherer.sampled(event)
    assert {m.metric: m.samples[0] for m in gatherer.measurements() if m.source == "sampler"} == pytest.approx(
        {"power": 0.010 * 3600 * 4 / 36, "energy": 144.0}
    )
    still = gathered(spec_test(metric="power"), *state(10, 2_000_000), *state(46, 2_000_000))
    status, _, detail = verdict(still) or (None, None, "")
    assert status is Status.SKIPPED
    assert "did not move" in detail


OUTPUT = SpecOutput(key="o", filename="o", location="{TGTDIR}/o", converter=SpecConverter(name="json_converter"))


def test_results_in_an_output_file_join_those_that_are_printed() -> None:
    gatherer = gathered(spec_test(output_files=(OUTPUT,)), record(3))
    lines = ["", json.dumps({"type": "NET", "metric": "rate", "unit": "items/s", "value": 7})]
    gatherer.add({"event": "written", "output": "o", "lines": lines})
    assert [(m.metric, m.samples) for m in gatherer.measurements()] == [("latency", (3e-6,)), ("rate", (7.0,))]
    assert verdict(gatherer) is None


def test_an_output_file_that_is_not_there_is_told() -> None:
    gatherer = gathered(spec_test(output_files=(OUTPUT,)), record(3))
    gatherer.add({"event": "written", "output": "o", "wrong": "/t/o: No such file or directory"})
    assert [m.metric for m in gatherer.measurements()] == ["latency"]
    assert "/t/o: No such file" in (gatherer.notes()[0].evidence or "")
