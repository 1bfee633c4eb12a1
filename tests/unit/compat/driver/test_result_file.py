"""dlbenchmark_result.json."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import builders
import pytest
from builders import failed_result, result, run

from benchwright.agent.machine.fingerprint import machine_uptime_s
from benchwright.compat.driver.result_file import (
    driver_result,
    driver_results,
    write_driver_result,
)
from benchwright.core.aggregates import aggregate
from benchwright.core.benchmark import Benchmark, Command, Placement
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, MetricSpec
from benchwright.core.run import Launch
from benchwright.core.status import Status

MIB = 1024 * 1024


def measured(metric: str, samples: list[float], source: str, **labels: str) -> Measurement:
    return Measurement(
        metric=metric, unit=None, direction=Direction.NEITHER, samples=tuple(samples), source=source, labels=labels
    )


def task(name: str = "resnet", *, gpus: int = 0, suffix: str | None = None, prefix: str | None = "") -> Benchmark:
    return Benchmark(
        name=name,
        workload=Command(argv=("true",), cwd="/"),
        source="tasks.cfg:1",
        metrics=(
            MetricSpec(name="speed", pattern="x", aggregate="average"),
            MetricSpec(name="total_training_time", pattern="x", aggregate="total"),
        ),
        placement=Placement(needs_devices=gpus),
        result_prefix=name if prefix == "" else prefix,
        result_suffix=suffix,
    )


def launch(*more: Measurement, speeds: tuple[float, ...] = (10.0, 20.0), ok: bool = True, **fields: Any) -> Launch:
    log = (measured("speed", list(speeds), "log"), measured("total_training_time", [3.0, 4.0], "log"))
    memory = measured("memory.rss", [1 * MIB, 8 * MIB, 2 * MIB], "sampler")
    return builders.launch(*log, memory, *more, status=Status.OK if ok else Status.FAILED, **fields)


def test_a_task_has_its_metrics_its_peak_memory_in_kilobytes_and_the_uptime() -> None:
    assert driver_result(result(task(), launch()), aggregate=aggregate, uptime_s=99.5) == {
        "resnet.speed": 15.0,
        "resnet.total_training_time": 7.0,
        "resnet.cpu_memory_usage": 8192.0,
        "resnet.uptime_in_seconds": 99.5,
    }


def test_a_program_too_short_to_be_sampled_has_the_memory_the_kernel_saw() -> None:
    short = builders.launch(measured("memory.peak_rss", [3 * MIB], "process"))
    assert driver_result(result(task(), short), aggregate=aggregate) == {"resnet.cpu_memory_usage": 3072.0}


def test_framework_and_suffix_go_around_every_key_memory_and_uptime_too() -> None:
    benchmark = task(prefix="mxnet.resnet", suffix="daily")
    keys = driver_result(result(benchmark, launch()), aggregate=aggregate, uptime_s=1.0)
    assert sorted(keys) == [
        "mxnet.resnet.cpu_memory_usage.daily",
        "mxnet.resnet.speed.daily",
        "mxnet.resnet.total_training_time.daily",
        "mxnet.resnet.uptime_in_seconds.daily",
    ]


def test_workers_divide_a_total() -> None:
    assert driver_result(result(task(), launch()), aggregate=aggregate, workers=2)["resnet.total_training_time"] == 3.5


def test_several_launches_give_the_median_of_their_numbers_without_warm_up_and_failed_ones() -> None:
    launches = [
        launch(speeds=(1000.0,), warmup=True),
        launch(speeds=(10.0,)),
        launch(speeds=(30.0, 50.0)),
        launch(speeds=(20.0,)),
        launch(speeds=(0.1,), ok=False),
    ]
    assert driver_result(result(task(), *launches), aggregate=aggregate)["resnet.speed"] == 20.0


def test_a_nan_in_one_launch_is_not_hidden_by_the_others() -> None:
    launches = [launch(speeds=(math.nan,)), launch(), launch()]
    assert math.isnan(driver_result(result(task(), *launches), aggregate=aggregate)["resnet.speed"])


def test_gpu_memory_is_in_mebibytes_the_mean_over_the_gpus_of_each_ones_figure() -> None:
    gpu0 = measured("gpu.memory", [100.0 * MIB, 300.0 * MIB], "sampler", device="0")
    gpu1 = measured("gpu.memory", [400.0 * MIB], "sampler", device="1")
    other = measured("gpu.memory", [9000.0 * MIB], "sampler", device="7")
    found = driver_result(result(task(gpus=2), launch(gpu0, gpu1, other, devices=(0, 1))), aggregate=aggregate)
    assert found["resnet.gpu_memory_usage_mean"] == 300.0
    assert found["resnet.gpu_memory_usage_max"] == 350.0
    assert found["resnet.gpu_memory_usage_std"] == pytest.approx((math.sqrt(2) * 100 + 0) / 2)


def test_a_task_that_asked_for_no_gpu_has_no_gpu_keys_though_the_machine_has_one() -> None:
    gpu = measured("gpu.memory", [100.0 * MIB], "sampler", device="0")
    assert not [k for k in driver_result(result(task(), launch(gpu)), aggregate=aggregate) if "gpu" in k]


def test_a_loops_own_metric_of_the_same_name_is_not_taken_for_the_log_s() -> None:
    own = measured("speed", [1e9], "loop")
    assert driver_result(result(task(), launch(own)), aggregate=aggregate)["resnet.speed"] == 15.0


def test_only_successful_driver_tasks_are_in_the_file(tmp_path: Path) -> None:
    failed = failed_result(task("bad"), launch(ok=False))
    plain = result(task("plain", prefix=None), launch())
    written = write_driver_result(run(result(task(), launch()), failed, plain), [str(tmp_path)], aggregate=aggregate)
    assert written.paths == (str(tmp_path / "dlbenchmark_result.json"),)
    content = json.loads((tmp_path / "dlbenchmark_result.json").read_text())
    assert {key.split(".")[0] for key in content} == {"resnet"}
    assert 0 < content["resnet.uptime_in_seconds"] <= machine_uptime_s()


def test_the_file_is_written_to_each_folder_once_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    run_folder, here = tmp_path / "run", tmp_path / "here"
    run_folder.mkdir()
    here.mkdir()
    (here / "dlbenchmark_result.json").write_text("old")
    folders = [str(run_folder), str(here), str(here) + "/."]
    written = write_driver_result(run(result(task(), launch())), folders, aggregate=aggregate)
    assert len(written.paths) == 2
    for folder in (run_folder, here):
        assert os.listdir(folder) == ["dlbenchmark_result.json"]
        assert "resnet.speed" in json.loads((folder / "dlbenchmark_result.json").read_text())


def test_when_nothing_succeeded_an_earlier_result_does_not_pass_for_this_one(tmp_path: Path) -> None:
    (tmp_path / "dlbenchmark_result.json").write_text('{"resnet.speed": 1}')
    failed = failed_result(task())
    write_driver_result(run(failed), [str(tmp_path)], aggregate=aggregate)
    assert json.loads((tmp_path / "dlbenchmark_result.json").read_text()) == {}


def test_a_run_without_driver_tasks_writes_no_file(tmp_path: Path) -> None:
    assert (
        write_driver_result(run(result(task(prefix=None), launch())), [str(tmp_path)], aggregate=aggregate).paths == ()
    )
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written_to_is_a_problem_and_the_other_is_written(tmp_path: Path) -> None:
    folders = [str(tmp_path / "absent"), str(tmp_path)]
    written = write_driver_result(run(result(task(), launch())), folders, aggregate=aggregate)
    assert written.paths == (str(tmp_path / "dlbenchmark_result.json"),)
    assert len(written.problems) == 1
    assert "absent" in written.problems[0]


def test_a_task_that_cannot_be_condensed_is_left_out_and_said_so() -> None:
    broken = task("broken")
    broken = Benchmark(
        name="broken",
        workload=broken.workload,
        source="x",
        metrics=(MetricSpec(name="speed", pattern="x", aggregate="average_aggregate"),),
        result_prefix="broken",
    )
    found = driver_results([result(broken, launch()), result(task(), launch())], aggregate=aggregate)
    assert "resnet.speed" in found.values
    assert not [k for k in found.values if k.startswith("broken")]
    assert "DEEPLEARNING_WORKERS_COUNT" in found.problems[0]


def test_two_tasks_of_one_name_do_not_overwrite_each_other() -> None:
    found = driver_results([result(task(), launch()), result(task(), launch(speeds=(1.0,)))], aggregate=aggregate)
    assert found.values["resnet.speed"] == 15.0
    assert "is already there" in found.problems[0]
