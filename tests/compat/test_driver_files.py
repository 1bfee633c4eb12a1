"""Task files of the benchmark driver: a real one where it is at hand, and our own sample of the same ground."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchwright.core.benchmark import Benchmark, Command
from benchwright.kinds.tasks.read import TaskKind, TaskOverrides, read_tasks
from benchwright.kinds.tasks.syntax import read_task_file
from benchwright.options.table import Options

ROOT = Path(__file__).parents[2]
OURS = Path(__file__).parent / "driver" / "tasks.cfg"
REAL = ROOT.parent / "shared" / "compat" / "driver" / "task_config_template.cfg"

needs_real = pytest.mark.skipif(not REAL.is_file(), reason="the driver's own task file is not beside this checkout")


def by_name(path: Path, overrides: TaskOverrides = TaskOverrides()) -> dict[str, Benchmark]:  # noqa: B008
    return {b.name: b for b in read_tasks(str(path), overrides=overrides)}


def command(benchmark: Benchmark) -> str:
    assert isinstance(benchmark.workload, Command)
    return " ".join(benchmark.workload.argv)


@needs_real
def test_the_real_file_is_recognised_and_read_whole() -> None:
    source = TaskKind()
    assert source.recognises(str(REAL))
    benchmarks = source.read(str(REAL), Options())
    sections = read_task_file(str(REAL)).sections
    assert [b.name for b in benchmarks] == [n for n in sections if not n.startswith("metrics_")]
    assert len(benchmarks) == 18
    assert all(b.workload.cwd == str(REAL.parent) for b in benchmarks)


@needs_real
def test_every_section_of_the_real_file_agrees_with_configparser_and_literal_eval() -> None:
    import ast
    import configparser
    import warnings

    theirs = configparser.ConfigParser(interpolation=None)
    theirs.read(REAL)
    for name, benchmark in by_name(REAL).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lists = [ast.literal_eval(theirs.get(name, key)) for key in ("patterns", "metrics", "compute_method")]
        assert [(m.pattern, m.name, m.aggregate) for m in benchmark.metrics] == list(zip(*lists, strict=True))
        assert command(benchmark) == " ".join(theirs.get(name, "command_to_execute").split())
        assert benchmark.placement.needs_devices == theirs.getint(name, "num_gpus")


@needs_real
def test_the_overrides_reach_every_task_of_the_real_file_that_has_the_flag() -> None:
    plain = by_name(REAL)
    changed = by_name(REAL, TaskOverrides(num_gpus=2, epochs=1, kvstore="local", dtype="float64"))
    for name, benchmark in changed.items():
        for flag, value in (("--gpus", "2"), ("--epochs", "1"), ("--kvstore", "local"), ("--dtype", "float64")):
            has_it = f"{flag} " in command(plain[name])
            assert (f"{flag} {value}" in command(benchmark)) == has_it, (name, flag)
    assert "--kv-store device" in command(changed["lstm_ptb_symbolic"])
    assert changed["bidaf_1gpu_float32"].placement.needs_devices == 2


@needs_real
def test_every_policy_of_the_real_file_can_be_combined_with_a_command() -> None:
    policies = [n for n in read_task_file(str(REAL)).sections if n.startswith("metrics_")]
    assert len(policies) == 6
    for policy in policies:
        overrides = TaskOverrides(metrics_policy=policy, command_to_execute="python infer.py --gpus 4", num_gpus=8)
        [benchmark] = read_tasks(str(REAL), tasks=["custom.fp32"], overrides=overrides)
        assert benchmark.name == "custom.fp32"
        assert command(benchmark) == "python infer.py --gpus 4"
        assert benchmark.metrics


def test_our_sample_is_read_whole() -> None:
    tasks = by_name(OURS)
    assert list(tasks) == ["train_small", "train_device_list", "script_without_flags"]
    assert [(m.name, m.aggregate, m.unit) for m in tasks["train_device_list"].metrics] == [
        ("train_loss", "min", None),
        ("exact_match", "max", None),
        ("step_time", "p99.9", "ms"),
    ]
    assert tasks["train_device_list"].metrics[1].pattern == r"exact_match': (\d+\.\d+)"
    assert command(tasks["script_without_flags"]) == "bash scripts/run_all.sh --quick --out results"
    assert tasks["script_without_flags"].placement.needs_devices == 0
    assert tasks["train_device_list"].placement.needs_devices == 4


def test_the_same_pattern_may_have_several_names_and_methods() -> None:
    overrides = TaskOverrides(metrics_policy="metrics_speed_and_percentiles", command_to_execute="true")
    [benchmark] = read_tasks(str(OURS), overrides=overrides)
    assert [(m.name, m.aggregate) for m in benchmark.metrics] == [
        ("speed", "average"),
        ("speed-p90", "p90"),
        ("speed-p50", "p50"),
    ]
    assert len({m.pattern for m in benchmark.metrics}) == 1


def test_a_device_list_becomes_a_list_of_that_many_and_other_flags_stay() -> None:
    changed = by_name(OURS, TaskOverrides(num_gpus=8, epochs=2))["train_device_list"]
    assert command(changed) == (
        "python train.py --gpus 0,1,2,3,4,5,6,7 --num_gpus=1 --num-epochs 7 --split 90% --name two words"
    )


SPEED = "patterns = ['Speed: (\\\\d+) samples/sec']\nmetrics = ['speed']\n"


def test_a_file_with_everything_the_driver_s_own_has_loads_whole(tmp_path: Path) -> None:
    """81 sections: policies under any name, shell lines, lists of unequal length, `average_aggregate` without workers."""
    lines = []
    for n in range(40):
        lines.append(
            f"[plain{n}]\n{SPEED}compute_method = ['average']\ncommand_to_execute = train --n {n}\nnum_gpus = 0"
        )
    for n in range(15):
        lines.append(f"[piped{n}]\n{SPEED}compute_method = ['last']\ncommand_to_execute = cd $HOME/x && sh run.sh {n}")
    for n in range(2):
        lines.append(f"[uneven{n}]\n{SPEED}compute_method = ['last', 'last']\ncommand_to_execute = train")
    for n in range(12):
        lines.append(f"[metrics_{n}]\n{SPEED}compute_method = ['average_aggregate']")
    lines += [f"[serving_metric{n}]\n{SPEED}compute_method = ['p90']" for n in range(12)]
    path = tmp_path / "tasks.cfg"
    path.write_text("\n\n".join(lines) + "\n")
    assert len(read_task_file(str(path)).sections) == 81
    tasks = by_name(path)
    faulty = [name for name, task in tasks.items() if task.fault is not None]
    assert len(tasks) == 57
    assert faulty == ["uneven0", "uneven1"]  # what needs a shell gets one
