"""Runs written as milabench's folders, and read back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import builders
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.compat.milabench.export import export_milabench
from benchwright.compat.milabench.score import milabench_score
from benchwright.core.benchmark import BenchmarkFolder, Placement
from benchwright.core.errors import InvalidInput
from benchwright.core.machine import Accelerator
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Run
from benchwright.core.status import Reason, Status
from benchwright.runs.importers import import_results

MIB = 2**20
SERIES = (("rate", "loop"), ("loss", "give"))
MACHINE = builders.machine(
    *(Accelerator(index=i, name="H100", memory_bytes=80 * 1024 * MIB, driver="535") for i in (0, 1)),
    hostname="n1",
    cpu="EPYC",
)


def measured(
    metric: str, *samples: float, unit: str | None = None, warm: tuple[float, ...] = (), **fields: Any
) -> Measurement:
    base: dict[str, Any] = {"direction": Direction.HIGHER, "warmup_samples": warm}
    return builders.measurement(*samples, metric=metric, unit=unit, **(base | fields))


def process(device: int, **fields: Any) -> Launch:
    gpu = {"labels": {"device": str(device), "job": str(device)}, "source": "sampler"}
    measurements = (
        measured("rate", 10.0 + device, 0.1 + 0.2, unit="items/s", warm=(1.5,), labels={"loop": "train"}),
        measured("eval.rate", 3.0, unit="items/s"),
        measured("loss", 0.5, 0.25, source="give"),
        measured("accuracy", 0.75, source="give"),
        measured("gpu.memory", 2048.0 * MIB, 4096.0 * MIB, unit="B", **gpu),
        measured("gpu.load", 25.0, 50.0, unit="%", **gpu),
        measured("gpu.power", 300.0, unit="W", **gpu),
        measured("process.duration", 9.0, unit="s", source="process"),
    )
    base: dict[str, Any] = {"status": Status.OK, "exit_code": 0, "devices": (device,), "duration_s": 9.0}
    return Launch(job=f"bert.R0.D{device}", launch=0, **({"measurements": measurements} | base | fields))


def run_of(*launches: Launch, **fields: Any) -> Run:
    placement = Placement(per_device=True)
    bert = builders.benchmark("bert", "python", "main.py", placement=placement, weight=2.0, tags=("nlp",), **fields)
    when = {"id": "suite.2026-01-01_10:00:00", "started": "2026-01-01T10:00:00+00:00"}
    return builders.run(builders.result(bert, *launches), machine=MACHINE, **when)


def round_trip(run: Run, folder: Path) -> Run:
    export_milabench([run], folder)
    (again,) = import_results(folder).runs
    return again


def all_samples(launch: Launch, metric: str) -> tuple[float, ...]:
    found = launch.measurement(metric)
    assert found is not None, metric
    return (*found.warmup_samples, *found.samples)


def test_what_was_measured_comes_back(tmp_path: Path) -> None:
    run = run_of(process(0), process(1))
    again = round_trip(run, tmp_path / "out")
    (result,) = again.results
    assert (result.benchmark.name, result.benchmark.weight, result.benchmark.tags) == ("bert", 2.0, ("nlp",))
    assert (again.machine.cpu, again.machine.accelerators) == (MACHINE.cpu, MACHINE.accelerators)
    assert again.started == run.started
    for before, after in zip(run.results[0].launches, result.launches, strict=True):
        assert (after.job, after.devices, after.exit_code, after.duration_s) == (before.job, before.devices, 0, 9.0)
        for metric in ("rate", "eval.rate", "loss", "accuracy", "gpu.memory", "gpu.load", "gpu.power"):
            assert all_samples(after, metric) == pytest.approx(all_samples(before, metric))


def test_the_score_is_the_same_as_that_of_the_run_itself(tmp_path: Path) -> None:
    run = run_of(process(0), process(1))
    before, after = milabench_score(run), milabench_score(round_trip(run, tmp_path / "out"))
    assert after.value == pytest.approx(before.value)
    assert after.rows[0].per_device == before.rows[0].per_device


def test_every_line_is_an_object_of_event_data_and_pipe(tmp_path: Path) -> None:
    export_milabench([run_of(process(0))], tmp_path)
    (path,) = tmp_path.glob("*/*.data")
    assert path.name == "bert.R0.D0.data"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(set(line) == {"event", "data", "pipe"} for line in lines)
    kinds = [line["event"] for line in lines]
    assert kinds[:3] == ["config", "meta", "start"]
    assert kinds[-1] == "end"
    assert lines[0]["data"]["tag"] == ["bert", "R0", "D0"]
    assert lines[0]["data"]["device"] == 0


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        (
            {"status": Status.FAILED, "reason": Reason.CRASHED, "exit_code": 3, "detail": "no"},
            Status.FAILED,
            Reason.CRASHED,
        ),
        ({"status": Status.FAILED, "reason": Reason.TIMED_OUT, "exit_code": None}, Status.FAILED, Reason.CRASHED),
        ({"status": Status.FAILED, "reason": Reason.AGENT_LOST, "exit_code": None}, Status.FAILED, Reason.AGENT_LOST),
        ({"status": Status.FAILED, "reason": Reason.NO_DATA, "measurements": ()}, Status.FAILED, Reason.NO_DATA),
        ({"status": Status.OK, "exit_code": None}, Status.OK, None),  # ended by us, at its own early stop
    ],
)
def test_how_it_ended_comes_back(tmp_path: Path, fields: dict[str, Any], status: Status, reason: Reason | None) -> None:
    (launch,) = round_trip(run_of(process(0, **fields)), tmp_path / "out").results[0].launches
    assert (launch.status, launch.reason) == (status, reason)


def test_a_loss_that_is_not_a_number_comes_back_as_that(tmp_path: Path) -> None:
    diverged = (measured("rate", 1.0), measured("loss", math.nan, source="give"))
    (launch,) = round_trip(run_of(process(0, measurements=diverged)), tmp_path / "out").results[0].launches
    assert math.isnan(all_samples(launch, "loss")[0])
    assert launch.reason is Reason.INVALID


def test_secrets_of_the_entry_do_not_leave(tmp_path: Path) -> None:
    config = {"argv": {"--lr": 1}, "env": {"HF_TOKEN": "abc", "N": 3}}
    folder = BenchmarkFolder(path="/b", group="hf", config=config)
    export_milabench([run_of(process(0), folder=folder)], tmp_path)
    (path,) = tmp_path.glob("*/*.data")
    first = json.loads(path.read_text().splitlines()[0])["data"]
    assert "abc" not in path.read_text()
    assert (first["argv"], first["env"]["N"]) == ({"--lr": 1}, 3)


def test_warm_up_launches_are_left_out(tmp_path: Path) -> None:
    export_milabench([run_of(process(0, warmup=True), process(1))], tmp_path)
    assert [path.name for path in tmp_path.glob("*/*.data")] == ["bert.R0.D1.data"]


def test_a_name_that_is_no_file_name_is_written_nevertheless(tmp_path: Path) -> None:
    launch = msgspec.structs.replace(process(0), job="../a b.R0")
    export_milabench([run_of(launch)], tmp_path / "out")
    assert [path.parent.parent for path in tmp_path.rglob("*.data")] == [tmp_path / "out"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(InvalidInput, match="not a folder"):
        export_milabench([run_of(process(0))], tmp_path / "x")


numbers = st.floats(min_value=1e-300, max_value=1e300)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    warm=st.lists(numbers, max_size=4), rates=st.lists(numbers, min_size=1, max_size=6), losses=st.lists(st.floats())
)
def test_any_samples_come_back_exactly(
    tmp_path: Path, warm: list[float], rates: list[float], losses: list[float]
) -> None:
    measurements = [measured("rate", *rates, warm=tuple(warm))]
    if losses:
        measurements.append(measured("loss", *losses, source="give"))
    (launch,) = round_trip(run_of(process(0, measurements=tuple(measurements))), tmp_path / "out").results[0].launches
    assert all_samples(launch, "rate") == (*warm, *rates)
    if losses:
        assert [str(v) for v in all_samples(launch, "loss")] == [str(v) for v in losses]


def test_their_report_of_what_we_wrote_is_ours_of_it(tmp_path: Path) -> None:
    """Whatever ended a launch: also one that was measured enough and then diverged, or that we ended as it had asked."""
    diverged = process(0, facts={"loops": [{"stop": {"rule": "steps", "by": "rule"}}]}, status=Status.FAILED)
    lost = measured("loss", math.nan, source="give")
    diverged = msgspec.structs.replace(diverged, measurements=(*diverged.measurements[:2], lost))
    asked = process(1, exit_code=None, facts={"reported": {"early_stop": True}})
    cut_off = process(
        2, exit_code=1, facts={"loops": [{"stop": {"rule": "steps", "by": "loop"}}]}, status=Status.FAILED
    )
    ours = run_of(diverged, asked, cut_off)
    export_milabench([ours], tmp_path)
    (theirs,) = import_results(tmp_path).runs
    before, after = milabench_score(ours), milabench_score(theirs)
    assert (before.rows[0].n, before.rows[0].fail) == (after.rows[0].n, after.rows[0].fail) == (3, 1)
    assert before.value == pytest.approx(after.value)


def test_of_ranks_what_they_did_together_is_written_and_the_first_ones_loss(tmp_path: Path) -> None:
    ranks = [measured(name, 1.0 + n, source=how, labels={"rank": str(n)}) for n in (0, 1) for name, how in SERIES]
    whole = measured("rate", 3.0, unit="items/s", labels={"ranks": "2"})
    export_milabench([run_of(process(0, measurements=(*ranks, whole)))], tmp_path)
    (theirs,) = import_results(tmp_path).runs
    (launch,) = theirs.results[0].launches
    assert {m.metric: m.samples for m in launch.measurements} == {"rate": (3.0,), "loss": (1.0,)}
