"""Commands given on the command line."""

from __future__ import annotations

import os

import pytest

from benchwright.core.benchmark import Command
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import MetricSpec
from benchwright.kinds.command.read import command_benchmark, line_benchmark, name_of, read_commands
from benchwright.kinds.names import told_apart, with_unique_names
from benchwright.options.table import Options


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


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["sleep 0.1", "sleep 0.2"], ["sleep 0.1", "sleep 0.2"]),
        (["python t.py --lr 0.1 --fast", "python t.py --lr 0.2 --fast"], ["t.py --lr 0.1", "t.py --lr 0.2"]),
        (["python t.py", "python t.py --fast"], ["t.py", "t.py --fast"]),
        (["python t.py --a 1 x --b 2", "python t.py --a 3 x --b 4"], ["t.py --a 1 --b 2", "t.py --a 3 --b 4"]),
        (["t 1 end", "t 1 2 end", "t end"], ["t 1", "t 1 2", "t"]),
        (["python3.11 t.py", "python3.12 t.py"], ["t.py python3.11", "t.py python3.12"]),
        (["t 'a b'", "t c"], ["t 'a b'", "t c"]),
        (["a x", "b x"], ["a", "b"]),
        (["python old/t.py", "python t.py"], ["old/t.py", "t.py"]),
        (["python old/t.py -a", "python t.py -b"], ["old/t.py -a", "t.py -b"]),
        (["t --password=hunter2", "t --password=hunter3"], ["t", "t-2"]),  # a name is shown everywhere
        (["t x", "t " + "y" * 100], ["t x", "t"]),
        (["t x", "t x"], ["t", "t-2"]),
    ],
)
def test_commands_of_one_program_are_called_by_the_words_in_which_they_differ(
    lines: list[str], names: list[str]
) -> None:
    assert [b.name for b in told_apart([line_benchmark(line) for line in lines])] == names


def test_lines_for_a_shell_are_told_apart_by_their_words_too() -> None:
    lines = ["cat a | wc", "cat b | wc"]
    assert [b.name for b in told_apart([line_benchmark(x, shell=True) for x in lines])] == ["cat a", "cat b"]


def filled(*lines: str, params: tuple[str, ...], shell: bool = False) -> list[tuple[str, tuple[str, ...]]]:
    found = read_commands(Options(commands=lines, shell=shell, params=params))
    return [(b.name, b.workload.words) for b in found]


def test_each_value_of_a_parameter_is_one_benchmark() -> None:
    assert filled("work --threads={n} {n}", "plain {x}", params=("n=1,2",)) == [
        ("work[n=1]", ("work", "--threads=1", "1")),
        ("work[n=2]", ("work", "--threads=2", "2")),
        ("plain", ("plain", "{x}")),  # measured once, and braces that name no parameter are left alone
    ]


def test_a_value_stays_one_word_and_is_not_filled_again() -> None:
    assert filled("echo {a} {b}", params=("a={b}", "b=x y")) == [("echo[a={b},b=x y]", ("echo", "{b}", "x y"))]
    ((_, (line,)),) = filled("echo {a} | cat", params=("a=$(touch bad)",), shell=True)
    assert line == "echo '$(touch bad)' | cat"


def test_a_parameter_that_no_command_mentions_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"no command has \{n\} in it"):
        filled("work", params=("n=1,2",))
