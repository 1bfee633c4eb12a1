"""From what a user names to benchmarks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchwright.core.benchmark import Command, Script
from benchwright.core.decision import Decision
from benchwright.core.errors import InvalidInput, TooManyScripts
from benchwright.core.model import ModelScript
from benchwright.core.stop_rule import StopRule
from benchwright.options.table import Options
from benchwright.runner.resolve import resolve


def test_a_command_is_measured_where_the_user_is() -> None:
    resolved = resolve(Options(command=("python", "train.py", "--epochs", "2")))
    (benchmark,) = resolved.benchmarks
    assert benchmark.name == "train.py"
    assert benchmark.workload == Command(argv=("python", "train.py", "--epochs", "2"), cwd=str(Path.cwd()))
    assert resolved.name == "train"
    assert resolved.options.interleave is False


def test_several_commands_are_interleaved_and_told_apart() -> None:
    resolved = resolve(Options(commands=("python a.py --fast", "python a.py")))
    assert [b.name for b in resolved.benchmarks] == ["a.py --fast", "a.py"]
    assert resolved.name == "a"
    assert resolved.options.interleave is True


def test_interleaving_can_be_refused() -> None:
    assert resolve(Options(commands=("true", "false"), interleave=False)).options.interleave is False


def test_a_script_that_uses_the_probe_is_a_script(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text("from benchprobe import iterate\n")
    (benchmark,) = resolve(Options(targets=(str(script),), script_args=("-x",), python="/usr/bin/py")).benchmarks
    assert benchmark.workload == Script(path=str(script), args=("-x",), cwd=str(Path.cwd()), python="/usr/bin/py")


def test_a_script_without_a_loop_is_looked_through_for_models(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text("# labels: author::me\nprint(1)\n")
    options = Options(targets=(f"{script}::Net,Bert",), params=("k=1,2",))
    first, second = resolve(options).benchmarks
    assert isinstance(first.workload, ModelScript)
    assert first.workload.select == ("Net", "Bert")
    assert (first.workload.args, second.workload.args) == (("--k", "1"), ("--k", "2"))  # type: ignore[union-attr]
    assert (first.name, second.name) == ("plain.py[k=1]", "plain.py[k=2]")
    assert first.labels == {"author": "me"}


def test_a_folder_is_all_its_scripts_and_a_broken_one_is_a_result_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("b.py", "more/a.py", "__init__.py", ".hidden/c.py", "notes.txt"):
        (tmp_path / name).write_text("print(1)\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    found = resolve(Options(targets=(str(tmp_path),))).benchmarks
    assert [b.name for b in found] == ["b.py", "broken.py", "a.py"]
    assert isinstance(found[1].workload, Command)
    again = resolve(Options(all_scripts=True, search_dirs=(str(tmp_path),))).benchmarks
    assert [b.name for b in again] == [b.name for b in found]
    (one,) = resolve(Options(targets=("a.py::Net",), search_dirs=(str(tmp_path / "more"),))).benchmarks
    assert isinstance(one.workload, ModelScript)
    assert one.workload.select == ("Net",)


def test_scripts_of_a_folder_are_selected_by_label(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("# labels: group::daily,monthly\n")
    (tmp_path / "b.py").write_text("# labels: group::weekly\n")
    (found,) = resolve(Options(targets=(str(tmp_path),), select=("group=daily",))).benchmarks
    assert found.name == "a.py"
    with pytest.raises(InvalidInput, match="no script there has these labels"):
        resolve(Options(targets=(str(tmp_path),), select=("group=never",)))


def same_named(folder: Path) -> None:
    for name, author in (("bert/main.py", "google"), ("gpt/main.py", "openai"), ("gpt/other.py", "openai")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"# labels: author::{author}\n")


def test_a_script_is_called_the_same_whichever_part_of_its_folder_is_measured(tmp_path: Path) -> None:
    """Else results of two shards, or two selections, would have one name for two models, and be compared as one."""
    same_named(tmp_path)
    whole = [b.name for b in resolve(Options(all_scripts=True, search_dirs=(str(tmp_path),))).benchmarks]
    assert whole == ["bert/main.py", "gpt/main.py", "other.py"]
    shards = [
        resolve(Options(all_scripts=True, search_dirs=(str(tmp_path),), shard=(number, 3))).benchmarks[0].name
        for number in (1, 2, 3)
    ]
    assert shards == whole
    (one,) = resolve(Options(targets=(str(tmp_path),), select=("author=google",))).benchmarks
    assert one.name == "bert/main.py"


def test_a_search_folder_is_searched_to_its_bottom_and_two_of_a_name_are_refused(tmp_path: Path) -> None:
    same_named(tmp_path)
    (one,) = resolve(Options(targets=("other.py",), search_dirs=(str(tmp_path),))).benchmarks
    assert one.source == str(tmp_path / "gpt/other.py")
    with pytest.raises(InvalidInput, match=r"name one, such as bert/main.py"):
        resolve(Options(targets=("main.py",), search_dirs=(str(tmp_path),)))
    with pytest.raises(InvalidInput, match=r"no such file here or in .*did you mean 'other.py'"):
        resolve(Options(targets=("othr.py",), search_dirs=(str(tmp_path),)))


def test_a_script_that_is_no_python_is_placed(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("x = 1\ndef f(:\n")
    with pytest.raises(InvalidInput) as caught:
        resolve(Options(targets=(str(script),)))
    assert str(caught.value).startswith(f"{script}:2:")


@pytest.mark.parametrize(
    ("target", "says"),
    [("absent.cfg", "no such file"), ("train", "benchwright run -- train"), (".", "no Python script in it")],
)
def test_a_target_that_is_nothing_is_refused(
    target: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=says):
        resolve(Options(targets=(target,)))


def test_nothing_at_all_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing to measure"):
        resolve(Options())


def test_options_are_laid_over_every_benchmark() -> None:
    options = Options(
        command=("true",),
        stop=StopRule(steps=5),
        timeout=3.0,
        env={"A": "1", "B": None},
        labels={"k": "v"},
        cores=(0,),
    )
    (benchmark,) = resolve(options).benchmarks
    assert benchmark.stop == StopRule(steps=5)
    assert benchmark.timeout_s == 3.0
    assert benchmark.env == {"A": "1", "B": None}
    assert benchmark.placement.cores == (0,)


def test_one_name_for_two_commands_is_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot name 2 benchmarks"):
        resolve(Options(commands=("true", "false"), name="x"))


@pytest.mark.parametrize(
    "request_",
    [
        Options(command=("echo", "\udcff")),
        Options(command=("true",), name="\udcff"),
        Options(command=("true",), env={"A": "\udcff"}),
    ],
)
def test_bytes_that_are_no_text_are_refused_before_anything_is_made(request_: Options) -> None:
    with pytest.raises(InvalidInput, match="is not UTF-8 text"):
        resolve(request_)


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the name is empty"):
        resolve(Options(command=("true",), name=" "))


def test_a_run_of_no_launches_is_refused() -> None:
    with pytest.raises(InvalidInput, match="repeat: 0 is too few"):
        resolve(Options(command=("true",), repeat=0))


def test_a_folder_of_more_than_a_handful_of_scripts_needs_consent(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"s{number}.py").write_text("x = 1\n")
    with pytest.raises(TooManyScripts) as refused:
        resolve(Options(targets=(str(tmp_path),)))
    assert "holds 6 scripts (s0.py, s1.py, s2.py…), and each would be run" in str(refused.value)
    assert "--all" in str(refused.value)
    with pytest.raises(TooManyScripts):
        resolve(Options(targets=(f"{tmp_path}/*.py",)))
    assert len(resolve(Options(targets=(str(tmp_path),), all_scripts=True)).benchmarks) == 6
    (tmp_path / "s5.py").rename(tmp_path / "benchfile.py")
    names = [b.name for b in resolve(Options(targets=(str(tmp_path),))).benchmarks]
    assert names == [f"s{number}.py" for number in range(5)], "five are a handful, and a benchfile is no script"


@pytest.mark.parametrize("folder", ["/", "/usr", "/usr/lib", "/etc", "~", "/tmp"])
def test_folders_of_the_system_and_the_home_are_never_run(folder: str, tmp_path: Path) -> None:
    place = os.path.expanduser(folder)
    with pytest.raises(InvalidInput, match="its scripts are not run"):
        resolve(Options(targets=(place,), all_scripts=True))
    link = tmp_path / "link"
    link.symlink_to(place)
    with pytest.raises(InvalidInput, match="its scripts are not run"):
        resolve(Options(targets=(str(link),), all_scripts=True))


def test_a_home_below_it_makes_a_folder_no_folder_of_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "me" / "work").mkdir(parents=True)
    (tmp_path / "me" / "work" / "a.py").write_text("x = 1\n")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    for folder in (tmp_path, tmp_path / "me"):
        with pytest.raises(InvalidInput, match="its scripts are not run"):
            resolve(Options(targets=(str(folder),)))
    assert [b.name for b in resolve(Options(targets=(str(tmp_path / "me" / "work"),))).benchmarks] == ["a.py"]


def test_a_folder_with_a_suite_is_that_suite_and_of_several_the_usual_one(tmp_path: Path) -> None:
    entry = "one:\n  definition: ./one\n"
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "main.py").write_text("x = 1\n")
    (tmp_path / "a.yaml").write_text(entry)
    (tmp_path / "notes.yaml").write_text("just: text\n")
    base = str(tmp_path / "base")
    assert [b.name for b in resolve(Options(targets=(str(tmp_path),), base=base)).benchmarks] == ["one"]
    (tmp_path / "b.yaml").write_text(entry)
    with pytest.raises(InvalidInput, match=r"holds 2 suites: a.yaml, b.yaml"):
        resolve(Options(targets=(str(tmp_path),), base=base))
    (tmp_path / "dev.yaml").write_text(entry)
    assert (
        resolve(Options(targets=(str(tmp_path),), base=base))
        .benchmarks[0]
        .source.startswith(str(tmp_path / "dev.yaml"))
    )


def test_a_verdict_is_kept_in_the_settings_with_room_to_replace_disturbed_pairs() -> None:
    decision = Decision(alpha=0.05, budget_s=60, most_blocks=10)
    options = resolve(Options(commands=("true", "false")).until(decision)).options
    assert options.decision == decision
    assert (options.repeat, options.interleave, options.up_to) == (30, True, True)
    without = resolve(Options(commands=("true", "false")).until(Decision(most_blocks=10))).options
    assert without.repeat == 15


def test_a_verdict_needs_benchmarks_that_alternate() -> None:
    with pytest.raises(InvalidInput, match="a verdict needs benchmarks that alternate"):
        resolve(Options(command=("true",), decision=Decision()))


def test_json_that_is_cut_off_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text('{"model":\n')
    with pytest.raises(InvalidInput, match=r"spec.json:2:1: this is not JSON"):
        resolve(Options(targets=(str(tmp_path / "spec.json"),)))
