"""Task files become benchmarks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import Direction, MetricSpec
from benchwright.kinds.base import Kind
from benchwright.kinds.tasks.read import TaskKind, TaskOverrides, parse_flag_option, read_tasks
from benchwright.options.table import Options

TASKS = r"""
[metrics_policy]
patterns = ['Speed: (\d+) samples/sec']
metrics = ['speed']
compute_method = ['average']

[small]
patterns = ['Speed: (\d+) samples/sec', 'loss=(.*)']
metrics = ['speed', 'loss']
compute_method = ['average', 'last']
command_to_execute = python train.py --gpus 4 --epochs 20 --kvstore device --dtype float32
num_gpus = 4

[large]
command_to_execute = ./train --size large
"""


@pytest.fixture
def tasks_file(tmp_path: Path) -> str:
    path = tmp_path / "tasks.cfg"
    path.write_text(TASKS)
    return str(path)


def read_one(path: str, name: str, **overrides: object) -> Benchmark:
    [benchmark] = read_tasks(path, tasks=[name], overrides=TaskOverrides(**overrides))  # type: ignore[arg-type]
    return benchmark


def argv(benchmark: Benchmark) -> tuple[str, ...]:
    assert isinstance(benchmark.workload, Command)
    return benchmark.workload.argv


def test_the_task_source_is_a_source() -> None:
    source: Kind = TaskKind()
    assert source.name == "tasks"


def test_all_tasks_with_a_command_are_read_in_order_and_policies_are_not_tasks(tasks_file: str) -> None:
    assert [b.name for b in read_tasks(tasks_file)] == ["small", "large"]


def test_named_tasks_come_in_the_order_they_are_named_and_once(tasks_file: str) -> None:
    assert [b.name for b in read_tasks(tasks_file, tasks=["large", "small", "large"])] == ["large", "small"]


def test_a_task_is_fully_resolved(tasks_file: str) -> None:
    small = read_one(tasks_file, "small")
    assert argv(small)[:3] == ("python", "train.py", "--gpus")
    assert small.workload.cwd == os.path.dirname(tasks_file)
    assert small.source == f"{tasks_file}:7 [small]"
    assert small.placement.needs_devices == 4
    assert small.metrics == (
        MetricSpec(
            name="speed",
            pattern=r"Speed: (\d+) samples/sec",
            unit="samples/s",
            direction=Direction.HIGHER,
            aggregate="average",
        ),
        MetricSpec(name="loss", pattern="loss=(.*)", direction=Direction.LOWER, aggregate="last"),
    )
    assert (small.result_prefix, small.result_suffix) == ("small", None)


def test_a_task_without_patterns_is_measured_by_time_and_memory_alone(tasks_file: str) -> None:
    assert read_one(tasks_file, "large").metrics == ()


def test_framework_and_suffix_decorate_the_keys_of_the_result(tasks_file: str) -> None:
    small = read_one(tasks_file, "small", framework="mxnet", metrics_suffix="daily")
    assert (small.result_prefix, small.result_suffix) == ("mxnet.small", "daily")
    assert small.labels == {"framework": "mxnet"}


def test_overrides_are_written_over_and_recorded(tasks_file: str) -> None:
    small = read_one(
        tasks_file,
        "small",
        num_gpus=2,
        epochs=1,
        kvstore="local",
        dtype="float16",
        flags={"batch-size": "64", "--lr": "0.1"},
    )
    assert " ".join(argv(small)) == (
        "python train.py --gpus 2 --epochs 1 --kvstore local --dtype float16 --batch-size 64 --lr 0.1"
    )
    assert small.placement.needs_devices == 2
    assert small.parameters == {
        "num_gpus": "2", "epochs": "1", "kvstore": "local", "dtype": "float16", "batch-size": "64", "lr": "0.1",
    }  # fmt: skip
    assert small.notes == ()


def test_no_gpus_removes_the_flag_and_the_need(tasks_file: str) -> None:
    small = read_one(tasks_file, "small", num_gpus=0)
    assert "--gpus" not in argv(small)
    assert small.placement.needs_devices == 0


def test_a_flag_can_be_removed(tasks_file: str) -> None:
    assert "--kvstore" not in argv(read_one(tasks_file, "small", flags={"kvstore": None}))


def test_an_override_that_found_no_flag_leaves_the_command_and_says_so(tasks_file: str) -> None:
    large = read_one(tasks_file, "large", epochs=3, num_gpus=1)
    assert argv(large) == ("./train", "--size", "large")
    assert large.placement.needs_devices == 1
    assert any("has no --epochs" in note and "--set-flag epochs=3" in note for note in large.notes)
    assert any("--num-gpus 1" in note for note in large.notes)


def test_a_shell_line_is_kept_whole_when_a_shell_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "tasks.cfg"
    path.write_text('[a]\ncommand_to_execute = cd x && python t.py --gpus 4 | tee "$LOG"\n')
    benchmark = read_one(str(path), "a", shell=True, num_gpus=2)
    assert benchmark.workload == Command(
        argv=('cd x && python t.py --gpus 2 | tee "$LOG"',), cwd=str(tmp_path), shell=True
    )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("cd x && python t.py", "'&&'"),
        ("python t.py --out $HOME", "'$' (a variable)"),
        ("OMP_NUM_THREADS=2 python t.py", "a variable set before the command"),
        ("python t.py *.rec", "'*' (file names)"),
        ("mkdir -p x\n  python t.py", "a second line"),
    ],
)
def test_a_command_that_needs_a_shell_runs_in_one_and_says_so(tmp_path: Path, line: str, what: str) -> None:
    path = tmp_path / "tasks.cfg"
    path.write_text(f"[a]\ncommand_to_execute = {line}\n[metrics_x]\npatterns = ['x']\nmetrics = ['x']\n"
                    "compute_method = ['last']\n")  # fmt: skip
    expected = line.replace("\n  ", "\n")
    typed = TaskOverrides(metrics_policy="metrics_x", command_to_execute=expected)
    for benchmark in (
        read_one(str(path), "a"),
        read_one(str(path), "a", command_to_execute=expected),
        *read_tasks(str(path), tasks=["a"], overrides=typed),
    ):
        assert benchmark.fault is None
        assert benchmark.workload.words == (expected,)
        assert benchmark.workload.shell
        assert benchmark.notes == (f"a runs in a shell: {what} needs one",)
    assert not read_one(str(path), "a", shell=True).notes


def test_a_command_that_needs_no_shell_gets_none(tasks_file: str) -> None:
    small = read_one(tasks_file, "small")
    assert not small.workload.shell
    assert not small.notes


def test_a_flag_cannot_be_added_to_a_line_of_several_commands(tmp_path: Path) -> None:
    path = tmp_path / "tasks.cfg"
    path.write_text("[a]\ncommand_to_execute = a | b\n")
    with pytest.raises(InvalidInput, match=r"tasks.cfg:2:22: --x cannot be added .* write it in the command"):
        read_one(str(path), "a", shell=True, flags={"x": "1"})


def test_a_policy_is_combined_with_a_command_run_where_the_user_is(tasks_file: str) -> None:
    overrides = TaskOverrides(
        metrics_policy="metrics_policy",
        command_to_execute="python infer.py --gpus 8",
        num_gpus=4,
        framework="tf",
        data_set="imagenet",
    )
    [benchmark] = read_tasks(tasks_file, tasks=["custom.fp32"], overrides=overrides)
    assert benchmark.name == "custom.fp32"
    assert benchmark.result_prefix == "tf.custom.fp32"
    assert benchmark.workload == Command(argv=("python", "infer.py", "--gpus", "8"), cwd=os.getcwd())
    assert benchmark.placement.needs_devices == 4
    assert [m.name for m in benchmark.metrics] == ["speed"]
    assert benchmark.labels == {"framework": "tf", "data_set": "imagenet"}


def test_a_policy_may_come_from_another_file_and_needs_no_task_file(tasks_file: str, tmp_path: Path) -> None:
    overrides = TaskOverrides(metrics_policy="metrics_policy", command_to_execute="true", metrics_template=tasks_file)
    [benchmark] = read_tasks(str(tmp_path / "absent.cfg"), overrides=overrides)
    assert benchmark.name == "metrics_policy"


def test_a_given_command_replaces_that_of_one_task(tasks_file: str) -> None:
    benchmark = read_one(tasks_file, "small", command_to_execute="python other.py --gpus 4", num_gpus=1)
    assert argv(benchmark) == ("python", "other.py", "--gpus", "4")
    assert benchmark.workload.cwd == os.getcwd()
    assert benchmark.placement.needs_devices == 1


@pytest.mark.parametrize(
    ("overrides", "names", "message"),
    [
        ({"metrics_policy": "metrics_policy"}, None, "--metrics-policy: .*needs a command.*--command-to-execute"),
        ({"metrics_policy": "metrics_polcy", "command_to_execute": "true"}, None, "no policy 'metrics_polcy'; did you mean 'metrics_policy'"),
        ({"metrics_policy": "metrics_policy", "command_to_execute": "true"}, ["a", "b"], "--task: .*one name"),
        ({"metrics_policy": "large", "command_to_execute": "true"}, None, r"policy \[large\] has no patterns"),
        ({"metrics_template": "x.cfg"}, None, "--metrics-template: .*--metrics-policy"),
        ({"command_to_execute": "true"}, None, "--command-to-execute: .*one task, not of 2"),
        ({"command_to_execute": "true", "epochs": 2}, ["small"], "--epochs: .*as it is typed"),
        ({"num_gpus": -1}, None, "--num-gpus: -1 is not a number of GPUs"),
        ({"epochs": 0}, None, "--epochs: 0 is not a number of epochs"),
        ({"framework": " "}, None, "--framework: the name is empty"),
        ({}, ["smal"], "--task: .*no task 'smal'; did you mean 'small'"),
        ({}, ["zzz"], "--task: .*no task 'zzz'; it has small, large"),
        ({}, ["metrics_policy"], r"tasks.cfg:2: \[metrics_policy\] is a metrics policy and has no command; give one: --metrics-policy"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_meant_are_refused_with_a_remedy(
    tasks_file: str, overrides: dict[str, object], names: list[str] | None, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_tasks(tasks_file, tasks=names, overrides=TaskOverrides(**overrides))  # type: ignore[arg-type]


def test_metrics_of_the_command_line_join_those_of_the_task(tasks_file: str) -> None:
    small = TaskKind().read(tasks_file, Options(tasks=("small",), metrics=(r"memory=mem (\d+)",)))[0]
    assert [m.name for m in small.metrics] == ["speed", "loss", "memory"]
    with pytest.raises(InvalidInput, match="'loss' is given twice"):
        TaskKind().read(tasks_file, Options(tasks=("small",), metrics=("loss=x",)))


def test_task_files_are_recognised_by_name_or_content(tmp_path: Path, tasks_file: str) -> None:
    source = TaskKind()
    bare = tmp_path / "tasks"
    bare.write_text(TASKS)
    script = tmp_path / "train.py"
    script.write_text("[x]\npatterns = 1\n")
    other = tmp_path / "notes"
    other.write_text("[hello]\nworld = 1\n")
    assert source.recognises(tasks_file)
    assert source.recognises(str(bare))
    assert not any(source.recognises(str(p)) for p in (script, other, tmp_path, tmp_path / "absent"))


def test_average_aggregate_is_refused_before_hours_are_spent_if_the_workers_are_not_known(tmp_path: Path) -> None:
    path = tmp_path / "tasks.cfg"
    path.write_text(
        "[a]\npatterns=['x(.)']\nmetrics=['m']\ncompute_method=['average_aggregate']\ncommand_to_execute=true\n"
    )
    with pytest.raises(InvalidInput, match=r"tasks.cfg:4:17: .*set DEEPLEARNING_WORKERS_COUNT"):
        read_tasks(str(path))
    assert read_tasks(str(path), overrides=TaskOverrides(workers=4))[0].metrics[0].aggregate == "average_aggregate"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("lr=0.1", ("lr", "0.1")), ("-b=64", ("-b", "64")), ("x=", ("x", "")), ("a=b=c", ("a", "b=c"))],
)
def test_a_flag_option_is_a_name_and_a_value(text: str, expected: tuple[str, str]) -> None:
    assert parse_flag_option(text) == expected


@pytest.mark.parametrize("text", ["lr", "=3", "a b=3", "---x=1"])
def test_a_flag_option_that_is_neither_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--set-flag"):
        parse_flag_option(text)


bits = st.sampled_from(
    ["[a]", "[metrics_b]", "[DEFAULT]", "\n", "\n  ", "patterns", "metrics", "compute_method", "command_to_execute", "num_gpus",
     " = ", ":", "['x']", "['(.)', 'y']", "[", "]", "'", '"', "\\", "average", "p90", "#", ";", "|", "$X", "4", "\t", "\r", "%", "é", "\x00", "(", "(((((", "-"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(bits | st.text(max_size=4), max_size=40).map("".join).map(lambda s: s.encode("utf-8", "surrogatepass")) | st.binary(max_size=60),
       st.booleans(), st.sampled_from([None, 0, 8]))  # fmt: skip
def test_any_file_gives_benchmarks_or_says_what_is_wrong(
    tmp_path: Path, content: bytes, shell: bool, num_gpus: int | None
) -> None:
    path = tmp_path / "any.cfg"
    path.write_bytes(content)
    try:
        found = read_tasks(str(path), overrides=TaskOverrides(shell=shell, num_gpus=num_gpus, flags={"f": "1"}))
    except InvalidInput as error:
        found, complaint = [], str(error)
    else:
        complaint = ""
    assert found or "any.cfg" in complaint
    assert all(isinstance(b, Benchmark) for b in found)
