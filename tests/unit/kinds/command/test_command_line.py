"""Commands given on the command line."""

from __future__ import annotations

import os

import pytest

from benchwright.core.benchmark import Command
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import MetricSpec
from benchwright.kinds.command.read import command_benchmark, line_benchmark, name_of
from benchwright.kinds.naming import with_unique_names


def test_words_after_the_dashes_are_the_argv_whatever_they_hold() -> None:
    metric = MetricSpec(name="x", pattern="x")
    benchmark = command_benchmark(["python", "train.py", "a | b", "$HOME", "*"], metrics=[metric])
    assert benchmark.workload == Command(argv=("python", "train.py", "a | b", "$HOME", "*"), cwd=os.getcwd())
    assert (benchmark.name, benchmark.source, benchmark.metrics) == ("train.py", "command line", (metric,))
    assert benchmark.result_prefix is None


def test_a_line_is_split_or_kept_for_a_shell() -> None:
    assert line_benchmark("python train.py 'a b'", cwd="/x").workload == Command(
        argv=("python", "train.py", "a b"), cwd="/x"
    )
    kept = line_benchmark("cd y && python train.py | tee log", cwd="/x", shell=True, name="n")
    assert kept.workload == Command(argv=("cd y && python train.py | tee log",), cwd="/x", shell=True)
    assert kept.name == "n"


@pytest.mark.parametrize("line", ["a | b", "", "a 'b", "a \\"])
def test_a_line_that_cannot_be_run_is_refused_with_a_remedy(line: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        line_benchmark(line)
    assert caught.value.where == "-c"
    assert caught.value.remedy


@pytest.mark.parametrize("argv", [[], [""], ["a", "\0"]])
def test_no_command_is_the_users_error(argv: list[str]) -> None:
    with pytest.raises(InvalidInput):
        command_benchmark(argv)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("python train.py --epochs 2", "train.py"),
        ("/usr/bin/python3.11 -u -X dev -W error x/train.py", "train.py"),
        ("python -m torch.distributed.run t.py", "torch.distributed.run"),
        ("python -c pass", "python"),
        ("python", "python"),
        ("bash scripts/run.sh", "run.sh"),
        ("./bin/bench --fast", "bench"),
        ("true", "true"),
    ],
)
def test_a_command_is_called_by_its_script_or_program(line: str, name: str) -> None:
    assert name_of(line.split()) == name


def test_commands_of_the_same_name_are_told_apart() -> None:
    same = [command_benchmark(["a"]), command_benchmark(["a"]), command_benchmark(["b"]), command_benchmark(["a"])]
    assert [b.name for b in with_unique_names(same)] == ["a", "a-2", "b", "a-3"]
    taken = [command_benchmark(["a-2"]), command_benchmark(["a"]), command_benchmark(["a"])]
    assert len({b.name for b in with_unique_names(taken)}) == 3


def test_a_variable_set_before_a_command_is_not_its_name() -> None:
    assert line_benchmark("X=1 Y=2 python train.py | cat", shell=True).name == "train.py"


def test_a_launcher_is_called_after_the_script_it_launches() -> None:
    assert name_of(["torchrun", "--nproc-per-node", "2", "train.py", "--lr", "1"]) == "train.py"
    assert name_of(["accelerate", "launch", "--num_processes", "4", "/x/fit.py"]) == "fit.py"
    assert name_of(["mpirun", "-n", "2", "./solver"]) == "mpirun"
