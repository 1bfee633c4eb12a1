"""What else differs between two runs, and how much it matters."""

from __future__ import annotations

import builders
import msgspec
import pytest
from builders import MACHINE, launch, measurement, run
from comparable_runs import benchmark, result

from benchwright.analysis.comparison.differences import differences
from benchwright.core.benchmark import Placement
from benchwright.core.machine import Accelerator, Machine
from benchwright.core.run import Run
from benchwright.core.stop_rule import StopRule


def found(**changes: object) -> list[tuple[str, bool]]:
    other = msgspec.structs.replace(MACHINE, **changes)
    before, after = (run(result(benchmark(), [1.0]), machine=m) for m in (MACHINE, other))
    return [(d.what, d.severe) for d in differences(before, after)]


def test_a_run_does_not_differ_from_itself() -> None:
    assert differences(run(result(benchmark(), [1.0])), run(result(benchmark(), [1.0]))) == ()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"cpu": "Another"}, "machine: CPU"),
        ({"cores": 1}, "machine: cores"),
        ({"memory_bytes": 16 << 30}, "machine: memory"),
        ({"accelerators": (Accelerator(index=0, name="GPU", memory_bytes=1),)}, "machine: accelerators"),
    ],
)
def test_another_machine_is_severe(change: dict[str, object], what: str) -> None:
    assert (what, True) in found(**change)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"hostname": "b"}, "host"),
        ({"kernel": "6.2"}, "kernel"),
        ({"cpu_governor": "powersave"}, "governor"),
        ({"python": "3.12"}, "python"),
    ],
)
def test_another_kernel_host_or_python_is_marked(change: dict[str, object], what: str) -> None:
    assert found(**change) == [(what, False)]


def between(before: object, after: object) -> list[tuple[str, str, str, bool]]:
    runs = (run(result(b, [1.0])) for b in (before, after))  # type: ignore[arg-type]
    return [(d.what, d.control, d.treatment, d.severe) for d in differences(*runs)]


def test_the_same_name_with_another_command_is_severe() -> None:
    assert between(benchmark("a", "sort", "x"), benchmark("a", "sort", "y")) == [
        ("a: command", "sort x", "sort y", True)
    ]


def test_another_interpreter_of_the_same_script_is_marked_only() -> None:
    old, new = benchmark("a", "/v1/bin/python", "s.py"), benchmark("a", "/v2/bin/python3.12", "s.py")
    assert [d[3] for d in between(old, new)] == [False]


def test_two_commands_put_side_by_side_on_purpose_are_marked_only() -> None:
    assert between(benchmark("a", "sort", "x"), benchmark("b", "sort", "y")) == [
        ("a → b: command", "sort x", "sort y", False)
    ]


def test_environment_stop_rule_and_placement_are_told() -> None:
    old = benchmark("a", env={"THREADS": "1"})
    new = benchmark("a", env={"THREADS": "2", "EXTRA": None}, stop=StopRule(steps=5), placement=Placement(jobs=2))
    told = between(old, new)
    assert told[0][0] == "a: placement"
    assert told[0][3]
    assert told[0][1:3] == ("jobs 1", "jobs 2")
    assert {d[0] for d in told[1:]} == {"a: stop rule", "a: environment THREADS", "a: environment EXTRA"}
    assert next(d[1:3] for d in told if d[0] == "a: stop rule") == ("not set", "steps 5")
    assert not any(d[3] for d in told[1:])


def test_packages_that_changed_came_or_went_are_marked() -> None:
    before = run(result(benchmark(), [1.0]), packages={"/v1/bin/python": {"torch": "2.12", "six": "1"}})
    after = run(result(benchmark(), [1.0]), packages={"/v2/bin/python": {"torch": "2.13", "seven": "2"}})
    assert [(d.what, d.control, d.treatment) for d in differences(before, after)] == [
        ("package seven", "none", "2"),
        ("package six", "1", "none"),
        ("package torch", "2.12", "2.13"),
    ]


def test_severe_differences_come_first() -> None:
    other: Machine = msgspec.structs.replace(MACHINE, kernel="7", cpu="Another")
    told = differences(run(result(benchmark(), [1.0])), run(result(benchmark(), [1.0]), machine=other))
    assert [d.severe for d in told] == [True, False]


def test_other_work_in_an_item_is_a_difference_between_runs() -> None:
    def telling(flops: float) -> Run:
        fact = measurement(flops, metric="flops_per_item.bf16", unit="FLOP", source="give")
        return run(builders.result(benchmark(), launch(measurement(1.0), fact)))

    (one,) = differences(telling(2e9), telling(3e9))
    assert (one.what, one.control, one.treatment, one.severe) == ("sort: flops_per_item.bf16", "2e+09", "3e+09", False)
    assert differences(telling(2e9), telling(2e9)) == ()
