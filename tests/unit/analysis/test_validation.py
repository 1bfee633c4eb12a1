"""Validation layers: each verdict says why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import builders
import msgspec
import pytest
from builders import MACHINE, job
from hypothesis import given
from hypothesis import strategies as st
from suite_runs import benchmark, failed, launch, measured, on_devices, result
from suites import entry, jobs_of

from benchwright.analysis.checks.validation import ALWAYS, NAMED, Circumstances, check, validation_names
from benchwright.core.benchmark import Benchmark, Command, Placement
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Job
from benchwright.core.machine import Accelerator
from benchwright.core.measurement import Measurement
from benchwright.core.metric import MetricSpec
from benchwright.core.run import Check, CheckStatus, Launch, Result
from benchwright.core.status import Status
from benchwright.core.stop_rule import StopRule

PASSED, FAILED, WARNED, NEITHER = (
    CheckStatus.PASSED,
    CheckStatus.FAILED,
    CheckStatus.WARNED,
    CheckStatus.NOT_APPLICABLE,
)


def layer(name: str, of: Result, **known: Any) -> Check:
    (found,) = (c for c in check(of, [name], Circumstances(**known)) if c.layer == name)
    return found


def test_only_error_rate_and_loss_run_unless_more_is_named() -> None:
    good = result("b", launch(1.0))
    assert [c.layer for c in check(good, [])] == list(ALWAYS)
    assert [c.layer for c in check(good, ["version", "usage"])] == [*ALWAYS, "usage", "version"]
    assert [c.layer for c in check(good, validation_names("all"))] == [*ALWAYS, *NAMED]


def test_an_unknown_layer_is_refused_with_the_nearest_one() -> None:
    assert validation_names("planning, usage") == ("usage", "planning")
    with pytest.raises(InvalidInput, match="'usge' is not a validation layer; did you mean 'usage'"):
        validation_names("usge")


def test_what_was_not_measured_to_its_end_is_not_judged() -> None:
    assert check(result("b", status=Status.SKIPPED), validation_names("all")) == ()
    assert check(result("b", launch(1.0), status=Status.INTERRUPTED), ()) == ()


def test_error_names_the_launch_and_its_end() -> None:
    assert layer("error", result("b", launch(1.0))).explanation == "the one launch ended with exit code 0"
    ended_by_us = launch(1.0, exit_code=None)  # it had asked for that
    assert layer("error", result("b", ended_by_us)).explanation == "the one launch succeeded"
    bad = layer("error", failed("b", "exit code 3"))
    assert bad.status is FAILED
    assert bad.explanation == "1 of 1 launches failed; b.D0 crashed: exit code 3"


def test_a_suites_benchmark_without_a_rate_fails_and_a_plain_command_does_not() -> None:
    nothing = builders.launch(job="b")
    assert layer("ensure_rate", result("b", nothing)).status is FAILED
    plain = Benchmark(name="b", workload=Command(argv=("true",), cwd="/"), source="command line")
    (found,) = (c for c in check(result("b", nothing, of=plain), ()) if c.layer == "ensure_rate")
    assert found.status is NEITHER
    assert layer("ensure_rate", result("b", nothing, of=plain)).status is FAILED  # it was named
    asked = benchmark("b", metrics=(MetricSpec(name="latency", pattern="x"),))
    assert layer("ensure_rate", result("b", nothing, of=asked)).status is PASSED
    assert "rate 5 in the one launch" in layer("ensure_rate", result("b", launch(5.0))).explanation


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_must_be_a_number_above_0(rate: float) -> None:
    assert layer("ensure_rate", result("b", launch(rate))).status is FAILED


def losses(*values: float) -> Result:
    return result("b", launch(1.0, more=(measured("loss", *values, unit=None, source="give"),)))


def test_loss_must_be_finite() -> None:
    assert layer("loss", result("b", launch(1.0))).status is NEITHER
    assert layer("loss", losses(0.5, 0.25)).explanation == "all 2 values of loss are finite"
    assert layer("loss", losses(0.5, math.nan)).explanation == "loss became nan at its value 2 of 2 in b.R0.0"


GPUS = msgspec.structs.replace(
    MACHINE, accelerators=tuple(Accelerator(index=n, name="GPU", memory_bytes=100 << 30) for n in range(2))
)


def used(load: float, memory: float, **validation: float) -> Result:
    def sampled(metric: str, value: float, unit: str) -> Measurement:
        return measured(metric, value, unit=unit, source="sampler", labels={"device": "1"})

    more = (sampled("gpu.load", load * 100, "%"), sampled("gpu.memory", memory * (100 << 30), "B"))
    return result("b", launch(1.0, devices=(1,), more=more), of=benchmark("b", validation={"usage": validation}))


def test_usage_holds_load_and_memory_against_the_suites_thresholds() -> None:
    assert layer("usage", used(0.9, 0.6), machine=GPUS).status is PASSED
    idle = layer("usage", used(0.2, 0.6), machine=GPUS)
    assert (idle.status, idle.explanation) == (FAILED, "GPU 1 was busy 20 % of the time, less than 50 %")
    small = layer("usage", used(0.9, 0.1), machine=GPUS)
    assert small.explanation == "GPU 1 used 10 % of its memory, less than 50 %"
    assert layer("usage", used(0.2, 0.1, gpu_load_threshold=0.1, gpu_mem_threshold=0.1), machine=GPUS).status is PASSED
    assert "unknown" in layer("usage", used(0.9, 0.1)).explanation


def test_usage_takes_the_size_of_memory_from_the_program_where_the_machine_does_not_tell() -> None:
    (one,) = used(0.9, 0.1).launches
    told = msgspec.structs.replace(one, facts={"reported": {"gpu_memory_bytes": {"1": float(100 << 30)}}})
    assert layer("usage", result("b", told)).explanation == "GPU 1 used 10 % of its memory, less than 50 %"


def test_usage_does_not_mix_up_the_devices_of_two_nodes() -> None:
    (one,) = used(0.9, 0.6).launches
    on_nodes = [
        msgspec.structs.replace(
            one,
            measurements=tuple(
                msgspec.structs.replace(
                    m, labels=m.labels | {"node": node}, samples=tuple(v * share for v in m.samples)
                )
                for m in one.measurements
            ),
        )
        for node, share in (("first", 1.0), ("second", 0.2))
    ]
    said = layer("usage", result("b", *on_nodes), machine=GPUS).explanation
    assert said.startswith("GPU 1 of second was busy 18 % of the time")
    assert "first" not in said


def test_usage_does_not_apply_without_a_gpu() -> None:
    assert layer("usage", result("b", launch(1.0))).explanation == "it ran on no GPU"
    assert layer("usage", result("b", launch(1.0, devices=(0,)))).explanation == "its devices reported no load"


def planned(*devices: int) -> tuple[tuple[Job, ...], ...]:
    return (tuple(job(id=str(d), benchmark="b", devices=(d,)) for d in devices),)


def test_planning_wants_every_process_on_a_device_of_its_own() -> None:
    two = on_devices("b", (1.0, 2.0))
    good = layer("planning", two, planned=planned(0, 1))
    assert good.explanation == "2 processes a launch, one for each device, measured together 99.7 % of the time"
    assert layer("planning", two, planned=planned(0, 1, 2)).explanation == ("2 processes were launched together, not 3")
    same = msgspec.structs.replace(two, launches=(two.launches[0], two.launches[0]))
    assert "the same device: 0, 0" in layer("planning", same).explanation


def test_planning_wants_njobs_and_that_they_were_measured_together() -> None:
    jobs = benchmark("b", placement=Placement(jobs=2))
    pair = (launch(1.0), launch(1.0, seat=1))
    assert layer("planning", result("b", *pair, of=jobs, overlap=0.99)).status is PASSED
    assert layer("planning", result("b", pair[0], of=jobs)).status is FAILED
    apart = layer("planning", result("b", *pair, of=jobs, overlap=0.28))
    assert apart.status is FAILED
    assert "28.0 %" in apart.explanation


def with_python(*pythons: dict[str, str]) -> Result:
    return result("b", *(launch(1.0, position=n, facts={"python": p}) for n, p in enumerate(pythons)))


def test_version_wants_the_same_python_and_packages_in_all_launches() -> None:
    old, new = {"python": "3.11.1", "executable": "/a"}, {"python": "3.12.0", "executable": "/b"}
    assert layer("version", with_python(old, new)).explanation.endswith("versions of Python: 3.11.1, 3.12.0")
    twin = old | {"executable": "/b"}
    packages = {"/a": {"torch": "2.1", "numpy": "1"}, "/b": {"torch": "2.2", "numpy": "1"}}
    assert layer("version", with_python(old, twin), packages=packages).explanation.endswith("torch: 2.1, 2.2")
    same = layer("version", with_python(old, old), packages=packages)
    assert (same.status, same.explanation) == (PASSED, "all 2 launches used Python 3.11.1 and the same 2 packages")
    assert layer("version", result("b", launch(1.0))).status is NEITHER


def test_version_says_no_more_than_is_known() -> None:
    a, b = {"python": "3.11.1", "executable": "/a"}, {"python": "3.11.1", "executable": "/b"}
    empty = layer("version", with_python(a, a))
    assert empty.explanation == "all 2 launches used Python 3.11.1; no packages found"
    half = layer("version", with_python(a, b), packages={"/a": {"torch": "2.1"}})
    assert half.explanation.endswith("; packages were found in 1 of 2 environments")
    silent = result("b", *with_python(a).launches, launch(1.0, position=1))
    one = layer("version", silent, packages={"/a": {"torch": "2.1"}})
    assert one.explanation == "1 of 2 launches used Python 3.11.1 and the same 1 package; the others did not report it"


def test_version_of_a_script_that_voir_runs_tells_what_it_was_started_with() -> None:
    found = result("b", launch(1.0, facts={"reported": {"dialect": "voir"}}))
    jobs = jobs_of(entry("b"), gpus=1)
    said = layer("version", found, planned=(jobs,), packages={"/base/venv/torch/bin/python": {"torch": "2.1"}})
    assert said.status is NEITHER
    assert said.explanation == (
        "voir does not report which Python it ran in; it was started with /base/venv/torch/bin/python, which has 1 package"
    )
    assert layer("version", found).explanation == "voir does not report which Python it ran in"


def loop(
    steps: Sequence[float],
    items: float,
    window_s: float,
    outside_s: tuple[float, float, float] | None = None,
    on_device: bool = False,
    **fields: Any,
) -> Launch:
    """A loop of `items` a step, whose steps are said to take `steps` seconds, and took `window_s` by the host's clock.

    `outside_s`: by the program's clock, and the least and the most by the supervisor's.
    """
    rates = [items / s for s in steps]
    more = (measured("step_time", *steps, unit="s", labels={"job": "0"}),)
    timed = {"on_device": on_device, "seconds": math.fsum(steps), "host_s": window_s, "outside_s": outside_s}
    return launch(*rates, more=more, **({"duration_s": window_s + 1.0, "facts": {"loops": [timed]}} | fields))


def test_a_time_that_the_supervisors_clock_confirms_is_plausible() -> None:
    found = layer("plausibility", result("b", loop([0.1] * 20, 32, 2.0, outside_s=(1.9, 1.5, 2.6))))
    assert found.status is PASSED
    assert found.explanation.endswith("took 1.9 s by its own clock, and 1.5 to 2.6 s by the supervisor's")


@pytest.mark.parametrize(("claimed", "status"), [(0.5, FAILED), (1.9, PASSED), (2.5, PASSED), (4.0, FAILED)])
def test_a_program_whose_clock_is_not_the_supervisors_is_found_out(claimed: float, status: CheckStatus) -> None:
    """The claim is 0.5 s, or 4 s, of a time that was between 1.9 and 2.3 s: no number of the program's own can help it."""
    found = layer("plausibility", result("b", loop([0.1] * 20, 32, 2.0, outside_s=(claimed, 1.9, 2.3))))
    assert found.status is status


def test_asynchronous_timing_is_found_out() -> None:
    found = layer("plausibility", result("b", loop([2e-9] * 20, 32, 2.0, on_device=True)))
    assert found.status is FAILED
    assert "but 2 s by the host" in found.explanation


def test_what_no_other_clock_has_seen_is_not_called_plausible() -> None:
    assert layer("plausibility", result("b", loop([0.1] * 20, 32, 2.0))).status is NEITHER
    loose = loop([0.1] * 2, 32, 0.2, outside_s=(0.2, 0.0, 1.2))
    assert layer("plausibility", result("b", loose)).status is NEITHER


def test_more_steps_than_the_process_had_time_for_are_found_out() -> None:
    found = layer("plausibility", result("b", loop([0.1] * 50, 32, 5.0, duration_s=3.0)))
    assert found.status is FAILED
    assert found.explanation.endswith("50 steps of b.R0.0 claim to have taken 5 s, but the process ran for 3 s")


def test_more_observations_than_the_process_had_time_for_are_found_out() -> None:
    observing = benchmark("b", stop=StopRule(observations=60, interval_s=1.0))
    quick = result("b", launch(*[100.0] * 60, duration_s=7.0), of=observing)
    assert "60 rates, each over 1 s" in layer("plausibility", quick).explanation
    slow = result("b", launch(*[100.0] * 60, duration_s=70.0), of=observing)
    assert layer("plausibility", slow).status is NEITHER


def test_what_is_merely_odd_is_a_warning() -> None:
    assert layer("plausibility", result("b", launch(*[10.0] * 9, 1e9))).status is WARNED
    on_host = loop([0.1] * 20, 32, 2.0, devices=(0,), facts={"loops": [{"on_device": False}]})
    assert "host's clock" in layer("plausibility", result("b", on_host)).explanation


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=6), st.floats(0, 1e3) | st.none())
def test_no_rates_make_a_layer_break(rates: list[float], duration_s: float | None) -> None:
    odd = result("b", launch(*rates, duration_s=duration_s))
    assert [c.layer for c in check(odd, validation_names("all"))] == [*ALWAYS, *NAMED]
