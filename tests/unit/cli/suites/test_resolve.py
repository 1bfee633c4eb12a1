"""`benchwright resolve` and `benchwright validate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from benchwright.cli.suites.resolve import command as resolve
from benchwright.cli.validate import command as validate
from benchwright.core.errors import InvalidInput

TEXT = """
_base: &base
  definition: ./code
  tags: [x]
a:
  inherits: _base
  argv: {--lr: "auto_batch(8)", --x: .inf}
b:
  inherits: _base
  enabled: false
  enabled: false
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "s.yaml").write_text(TEXT)
    return str(tmp_path / "s.yaml")


def test_the_resolved_suite_is_yaml_that_resolves_to_the_same(path: str, tmp_path: Path) -> None:
    first = CliRunner().invoke(resolve, [path])
    assert first.exit_code == 0
    assert "appears twice" in first.stderr
    (tmp_path / "t.yaml").write_text(first.stdout)
    second = CliRunner().invoke(resolve, [str(tmp_path / "t.yaml")])
    assert second.stdout == first.stdout
    assert yaml.safe_load(first.stdout)["a"]["argv"]["--lr"] == "auto_batch(8)"
    assert "&" not in first.stdout


def test_json_is_a_map_of_entries(path: str) -> None:
    done = CliRunner().invoke(resolve, [path, "--json", "--override", "a.weight=3", "--system", "ignored.yaml"])
    entries = json.loads(done.stdout)
    assert list(entries) == ["a", "b"]
    assert (entries["a"]["weight"], entries["a"]["argv"]["--x"], entries["b"]["enabled"]) == (3, "inf", False)


@pytest.mark.parametrize(
    ("options", "names"), [(["--select", "x"], ["a", "b"]), (["--exclude", "b"], ["a"]), (["--select", "a"], ["a"])]
)
def test_a_selection_leaves_others_out(path: str, options: list[str], names: list[str]) -> None:
    assert list(json.loads(CliRunner().invoke(resolve, [path, "--json", *options]).stdout)) == names


@pytest.mark.compat
def test_the_suite_may_be_named_by_the_environment(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BENCHWRIGHT_CONFIG", "MILABENCH_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    assert isinstance(CliRunner().invoke(resolve, []).exception, InvalidInput)
    assert CliRunner().invoke(resolve, ["--config", path]).exit_code == 0
    monkeypatch.setenv("MILABENCH_CONFIG", path)
    assert CliRunner().invoke(resolve, []).exit_code == 0


def test_files_are_checked_and_every_wrong_one_is_told(path: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.cfg").write_text(
        "[one]\npatterns = ['x (.*)']\nmetrics = ['x']\ncompute_method = ['last']\ncommand_to_execute = true\nnum_gpus = 0\n"
    )
    (tmp_path / "wrong.yaml").write_text("a:\n  wieght: 1\n")
    (tmp_path / "notes.txt").write_text("hello\n")
    good = CliRunner().invoke(validate, [path, str(tmp_path / "tasks.cfg")])
    assert good.exit_code == 0
    assert good.stdout.splitlines()[0] == f"{path}: ok, 2 benchmarks"
    assert good.stdout.splitlines()[-1] == f"{tmp_path / 'tasks.cfg'}: ok, 1 benchmark"
    (tmp_path / "system.yaml").write_text("system: {arch: cuda}\n")
    (tmp_path / "scaling.yaml").write_text("a: {model: {8: 100 MiB}}\n")
    others = CliRunner().invoke(validate, [str(tmp_path / "system.yaml"), str(tmp_path / "scaling.yaml")])
    assert others.stdout == f"{tmp_path}/system.yaml: ok, a system file\n{tmp_path}/scaling.yaml: ok, a scaling file\n"
    names = ["wrong.yaml", "notes.txt", "gone.yaml", "s.yaml"]
    bad = CliRunner().invoke(validate, [str(tmp_path / name) for name in names])
    assert bad.exit_code == 2
    assert (
        f"{tmp_path / 'wrong.yaml'}:2:3: 'wieght' is not a key of an entry; did you mean 'weight'?\n      wieght: 1\n      ^\n"
        in bad.stdout
    )
    assert (
        "notes.txt: is neither a suite, a system file, a task file, a specification nor a Python script" in bad.stdout
    )
    assert "gone.yaml: no such file" in bad.stdout
    assert "s.yaml: ok" in bad.stdout
    body = json.loads(CliRunner().invoke(validate, [str(tmp_path / name) for name in names] + ["--json"]).stdout)
    assert [one["ok"] for one in body] == [False, False, False, True]
    assert body[0]["errors"][0]["line"] == 2
    assert body[3]["benchmarks"] == ["a", "b"]


TASKS = """
[DEFAULT]
num_gpus = 8
[metrics_speed]
patterns = ['Speed: (\\\\d+)']
metrics = ['speed']
compute_method = ['average']
[train]
patterns = ['Speed: (\\\\d+)', 'loss=(\\\\S+)']
metrics = ['speed', 'loss']
compute_method = ['average', 'last']
command_to_execute = python train.py --gpus 8
[piped]
command_to_execute = python eval.py | tail -1
num_gpus = 0
[broken]
num_gpus = many
command_to_execute = true
"""


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    (tmp_path / "task_config_template.cfg").write_text(TASKS)
    return str(tmp_path / "task_config_template.cfg")


def test_tasks_are_resolved_whatever_gpus_there_are(tasks: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(resolve, [tasks, "--json"])
    assert done.exit_code == 0
    entries = json.loads(done.stdout)
    assert list(entries) == ["train", "piped"]
    assert entries["train"] == {
        "patterns": ["Speed: (\\d+)", "loss=(\\S+)"],
        "metrics": ["speed", "loss"],
        "compute_method": ["average", "last"],
        "command_to_execute": "python train.py --gpus 8",
        "num_gpus": 8,
        "cwd": str(tmp_path),
        "shell": False,
        "definition": f"{tasks}:8 [train]",
    }
    assert entries["piped"]["shell"] is True
    assert "runs in a shell" in done.stderr
    assert "num_gpus is 'many'" in done.stderr
    assert yaml.safe_load(CliRunner().invoke(resolve, [tasks]).stdout) == entries


def test_the_drivers_task_file_is_found_where_it_lies(tasks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(tasks).parent)
    monkeypatch.delenv("BENCHWRIGHT_CONFIG", raising=False)
    monkeypatch.delenv("MILABENCH_CONFIG", raising=False)
    assert list(json.loads(CliRunner().invoke(resolve, ["--json"]).stdout)) == ["train", "piped"]


@pytest.mark.parametrize(("options", "names"), [(["--select", "tr*"], ["train"]), (["--exclude", "train"], ["piped"])])
def test_tasks_are_selected_by_name_or_pattern(tasks: str, options: list[str], names: list[str]) -> None:
    assert list(json.loads(CliRunner().invoke(resolve, [tasks, "--json", *options]).stdout)) == names


@pytest.mark.parametrize(
    ("options", "message"), [(["--select", "trian"], "train"), (["--override", "train.num_gpus=0"], "is a task file")]
)
def test_a_wrong_selection_of_tasks_or_an_override_is_refused(tasks: str, options: list[str], message: str) -> None:
    error = CliRunner().invoke(resolve, [tasks, *options]).exception
    assert isinstance(error, InvalidInput)
    assert message in str(error)
