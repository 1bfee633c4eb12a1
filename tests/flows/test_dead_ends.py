"""Where a newcomer could get stuck: every message names the next command to type."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine

Write = Callable[[str, str], Path]
PY = sys.executable
LOOP = "from benchprobe import iterate\nfor _ in iterate('train', range(3)): pass\n"


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(autouse=True)
def wide(bw: CommandLine) -> None:
    bw.env["COLUMNS"] = "400"  # paths of tests are long


@pytest.fixture
def lean(tmp_path: Path) -> str:
    """An interpreter without any package."""
    path = tmp_path / "lean" / "python3"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {PY} -S "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_a_missing_module_names_the_interpreter_and_the_one_that_has_it(
    bw: CommandLine, script: Write, lean: str
) -> None:
    script("a.py", "import click\n" + LOOP)
    said = words(bw("run", "a.py", "--python", lean, code=1).stdout)
    assert f"{lean} has no module 'click', but benchwright's own has; run with --python {PY}" in said
    said = words(bw("run", "--", lean, "a.py", code=1).stdout)
    assert f"{lean} has no module 'click', but benchwright's own has; run with {PY}" in said
    assert "has no module 'click'" in words(bw("show", "last").stdout)


def test_a_module_that_nobody_has_is_to_be_installed_there(bw: CommandLine, script: Write, lean: str) -> None:
    script("a.py", "import nosuchmodule\n" + LOOP)
    said = words(bw("run", "a.py", "--python", lean, code=1).stdout)
    assert f"{lean} has no module 'nosuchmodule'; install it there, or run with --python PATH" in said
    body = bw.json("run", "a.py", "--python", PY, code=1)
    assert f"{PY} has no module 'nosuchmodule'" in body["results"][0]["detail"]


def test_a_missing_module_that_the_program_does_without_is_no_reason(bw: CommandLine, script: Write) -> None:
    script("a.py", "try:\n    import nosuchmodule\nexcept ImportError as e:\n    print(repr(e))\nraise SystemExit(3)\n")
    assert "no module" not in bw.json("run", "--", PY, "a.py", code=1)["results"][0]["detail"]


def test_a_program_that_asks_for_input_leads_to_the_line_that_gives_it(bw: CommandLine, script: Write) -> None:
    script("ask.py", "print(int(input('How many? ')))\n")
    script("FILE", "3\n")
    said = words(bw("run", "--", PY, "ask.py", code=1).stdout)
    assert f"to read it from a file: benchwright run --shell -c '{PY} ask.py < FILE')" in said
    bw("run", "--shell", "-c", f"{PY} ask.py < FILE")
    assert bw("logs").stdout == "How many? 3\n"


def test_find_says_it_too(bw: CommandLine, script: Write, lean: str) -> None:
    script("a.py", "import click\n")
    assert f"{lean} has no module 'click', but benchwright's own has" in words(
        bw("find", "a.py", "--python", lean, code=1).stdout
    )


FOREIGN = Path(__file__).parents[1] / "compat" / "imports"


@pytest.mark.compat
@pytest.mark.parametrize(
    ("name", "benchmark"),
    [
        ("hyperfine.json", "ls /"),
        ("google_benchmark.json", "BM_Copy/8"),
        ("pytest_benchmark.json", "test_sorting.py::test_sort[10]"),
        ("asv_v2", "benchmarks.time_broken"),
        ("driver_result.json", "small_loop"),
        ("milabench/rijubigo.2023-03-24", "benchio"),
    ],
)
def test_results_of_another_tool_can_be_shown_without_importing_them(
    bw: CommandLine, name: str, benchmark: str
) -> None:
    for command in ("show", "report"):
        assert benchmark in bw(command, str(FOREIGN / name)).stdout
    assert not bw.base.exists() or not list(bw.base.rglob("*.db"))  # nothing was kept


@pytest.mark.compat
def test_results_of_another_tool_are_compared_with_a_run(bw: CommandLine) -> None:
    bw("run", "--name", "ls /", "--", "ls", "/")
    said = bw("compare", str(FOREIGN / "hyperfine.json"), "last", "--anyway").stdout
    assert "ls / time" in said


@pytest.mark.compat
def test_several_runs_of_another_tool_are_reported_and_one_of_them_must_be_named(bw: CommandLine) -> None:
    folder = str(FOREIGN / "milabench")
    assert bw("report", folder).stdout.count("\n ─") == 2
    assert (
        f"holds 2 runs (import.milabench.39816a182debdaed, import.milabench.e02be2b9563bbd2f); import them with 'benchwright import {folder}'"
        in bw("show", folder, code=2).stderr
    )


@pytest.mark.compat
def test_what_is_no_run_is_named_as_what_it_is(bw: CommandLine, script: Write) -> None:
    script("a.py", LOOP)
    script("notes.txt", "no result")
    script("cut.json", '{"results": [')
    bw("run", "--", "true")
    for path, said in {
        "a.py": "a.py: is a script, not a run; measure it with 'benchwright run a.py'",
        str(bw.base): f"holds 1 run of benchwright; list them with 'benchwright runs --base {bw.base}'",
        str(bw.base / "runs"): f"list them with 'benchwright runs --base {bw.base}'",
        "notes.txt": "notes.txt: is neither a run nor results of aiperf, asv",
        "cut.json": "cut.json:1:14: this is not JSON",
        "nothing": "no run called 'nothing'",
    }.items():
        assert said in bw("show", path, code=2).stderr


def test_a_command_without_dashes_is_given_back_as_the_whole_line(bw: CommandLine, script: Write) -> None:
    line = ("--repeat", "3", "--name", "sh", "sh", "x.sh", "--lr", "a b")
    assert (
        "sh: is a program; put -- before it: benchwright run --repeat 3 --name sh -- sh x.sh --lr 'a b'"
        in bw("run", *line, code=2).stderr
    )
    program = script("program", "#!/bin/sh\n")
    program.chmod(0o755)
    assert "benchwright plan -- ./program" in bw("plan", "./program", code=2).stderr
    script("train.py", LOOP)
    assert "did you mean 'train.py'?" in bw("run", "trian.py", code=2).stderr
    assert "benchwright run -- python train.py" in bw("run", code=2).stderr


@pytest.mark.compat
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("train.py --epochs 1", "--epochs: applies to task files, not to scripts; if it is meant for the script, put it after --: benchwright run train.py -- --epochs 1"),
        ("train.py --lr -1 --repeat 3 -x --y=2", "no such option: --lr; if it is meant for the script, put it after --: benchwright run train.py --repeat 3 -- --lr -1 -x --y=2"),
        ("--lr 1 train.py", "put it after --: benchwright run train.py -- --lr 1"),
        ("train.py --repaet 3 -- --z", "no such option: --repaet; did you mean '--repeat'? If it is meant for the script, put it after --: benchwright run train.py -- --repaet 3 --z"),
        ("train.py --iterations 3", "no such option: --iterations; use --stop N"),
        ("train.py -- python b.py", "--: 'python b.py' would be the arguments of train.py; to measure it too, write: -c 'python b.py'"),
        ("quick train.py -- --lr 1", "quick.yaml: is no script, and takes no arguments (--lr 1); name scripts only; a command to measure beside it is given with -c '--lr 1'"),
    ],
)  # fmt: skip
def test_options_of_a_script_lead_to_the_line_that_gives_them_to_it(
    bw: CommandLine, script: Write, typed: str, said: str
) -> None:
    script("train.py", LOOP)
    assert said in words(bw("run", *typed.split(), code=2).stderr)


def test_the_exception_that_ended_a_program_stands_whole_in_the_heading(bw: CommandLine, script: Write) -> None:
    bw.env["COLUMNS"] = "80"
    text = "the loss of the seventeenth batch is not finite; set CUDA_LAUNCH_BLOCKING=1 to see where, and look there"
    script(
        "a.py",
        f"try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError({text + chr(10) + 'second line'!r})\n",
    )
    said = words(bw("run", "--", PY, "a.py", code=1).stdout)
    assert f"FAILED crashed: exit code 1: ValueError: {text} second line" in said
    assert text in words(bw("show").stdout)
    assert text in bw.json("report", "--format", "json")["results"][0]["detail"]


def test_a_program_of_this_folder_is_hinted_at_as_one_can_type_it(bw: CommandLine, script: Write) -> None:
    script("run.sh", "#!/bin/sh\n").chmod(0o755)
    said = bw("run", "--repeat", "2", "run.sh", "x", code=2).stderr
    assert "put -- before it: benchwright run --repeat 2 -- ./run.sh x" in said
    assert "to run the file of this folder, write ./run.sh" in words(bw("run", "--", "run.sh", code=3).stdout)
    script("old.py", "")
    assert "to run the file of this folder, write python old.py" in words(bw("run", "-c", "old.py", code=3).stdout)
    assert "run chmod +x on it or write python ./old.py" in words(bw("run", "-c", "./old.py", code=3).stdout)


def test_a_script_and_its_arguments_in_one_word_lead_to_the_line_that_works(bw: CommandLine, script: Write) -> None:
    script("train.py", LOOP)
    said = bw("run", "train.py --epochs 1", code=2).stderr
    assert "put a script's arguments after --: benchwright run train.py -- --epochs 1" in said


def test_scripts_are_compared_by_the_line_that_is_hinted_at_and_last_is_meant_where_no_run_is_named(
    bw: CommandLine, script: Write
) -> None:
    script("old.py", "")
    script("new.py", "")
    said = bw("compare", "old.py", "new.py", code=2).stderr
    assert "to measure and compare them: benchwright run --repeat 20 -c 'python old.py' -c 'python new.py'" in said
    bw("run", "--repeat", "2", "-c", "true 1", "-c", "true 2")
    assert "treatment: true 2" in bw("compare", "--between", "true 1", "true 2").stdout
    assert "the last run has several benchmarks: true 1, true 2; name one, such as: benchwright history 'true 1'" in (
        bw("history", code=2).stderr
    )
    bw("run", "--", "true")
    assert "true: time" in bw("history").stdout
    bw("baseline", "set", "main")
    bw("run", "--", "true")
    assert f"treatment: {bw.last_run().name}" in bw("compare", "--baseline", "main").stdout


def test_a_script_that_fails_before_a_model_shows_where_and_how_to_see_it_whole(bw: CommandLine, script: Write) -> None:
    script("model.py", "import torch\ndef load():\n    raise KeyError('weights')\nprint('begin')\nload()\n")
    (bw.cwd / "torch.py").write_text("")
    done = bw("run", "model.py", "--python", PY, code=1)
    assert "model.py, the log's last lines:" in done.stdout
    assert 'model.py", line 3, in load' in done.stdout
    assert f"all it printed: bw logs {bw.last_run().name}" in done.stdout
    assert "begin" in bw("logs", bw.last_run().name).stdout
    assert "the machine was busy" not in done.stdout


def test_a_shim_without_an_interpreter_says_what_is_wrong(bw: CommandLine, script: Write, tmp_path: Path) -> None:
    shim = tmp_path / "shims" / "python3.9"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.9: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    script("a.py", LOOP)
    said = bw("run", "a.py", "--python", str(shim), code=2).stderr
    assert f"{shim} starts no Python: pyenv: python3.9: command not found; give the path of an interpreter" in said


def test_a_run_in_which_nothing_was_measured_is_no_baseline(bw: CommandLine) -> None:
    bw("run", "--", "false", code=1)
    name = bw.last_run().name
    said = bw("baseline", "set", "main", code=2).stderr
    assert f"{name}: nothing was measured in it; name another run; why: benchwright show {name}" in said
    bw("run", "--", "true")
    assert bw("baseline", "set", "main").stdout.startswith("main: true")


def test_a_script_without_anything_of_torch_is_measured_as_a_command(bw: CommandLine, script: Write) -> None:
    script("main.py", "import sys\nprint('hello', *sys.argv[1:])\n")
    said = words(bw("run", "main.py", "--python", PY, "--", "you").stdout)
    assert "measured as a command: it imports nothing that could hold a model" in said
    assert bw("logs").stdout == "hello you\n"


def test_a_run_is_listed_resumed_and_explained_by_the_words_one_would_try(bw: CommandLine) -> None:
    bw("--", "true")
    name = bw.last_run().name
    assert name in bw("list").stdout
    assert "there is no unfinished run" in bw("resume", code=2).stderr
    assert bw("resume", name, "-q").stdout.count("1 launch") == 1
    assert "runs delete [OPTIONS]" in bw("help", "runs", "delete").stdout


def test_deleting_without_a_terminal_says_what_it_needs(bw: CommandLine) -> None:
    bw("run", "--", "true")
    bw.is_process = True
    assert (
        "nothing was deleted: there is no terminal to ask on; add --yes" in bw("runs", "delete", "last", code=2).stderr
    )
    assert bw.last_run().exists()
    bw("runs", "delete", "last", "--yes")
    assert not list((bw.base / "runs").iterdir())


def test_a_script_whose_loop_never_ran_is_no_success(bw: CommandLine, script: Write) -> None:
    script("a.py", "def main():\n    from benchprobe import iterate\n    for _ in iterate('train', range(3)): pass\n")
    said = bw("run", "a.py", code=1).stdout
    assert (
        "FAILED no data: nothing was measured: benchprobe.iterate was never called, or its only step was warm-up; time all of the script with --as command"
        in said
    )
    bw("run", "a.py", "--as", "command")
    script("b.py", "from benchprobe import give, iterate\ngive(speed=3.0)\n")
    bw("run", "b.py")
