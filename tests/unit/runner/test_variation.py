"""What each side of an A/B changes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from specifications import spec_of

from benchwright.core.benchmark import Benchmark, Script
from benchwright.core.errors import InvalidInput
from benchwright.core.revision import parse_revision
from benchwright.kinds.suite.read.suite import suite_file
from benchwright.options.table import Options
from benchwright.runner.run import RunOrder, resolve_order
from benchwright.runner.variation import Variation, shown, simple_variation
from benchwright.runs.base_folder import BaseFolder

SIDES = ("control", "treatment")


def order(options: Options, *variations: Variation) -> RunOrder:
    return RunOrder(options=options, base=BaseFolder(Path("/nowhere")), variations=variations)


def sides(control: str, treatment: str) -> tuple[Variation, Variation]:
    return (
        simple_variation("control", parse_revision(control, "--control"), "--control"),
        simple_variation("treatment", parse_revision(treatment, "--treatment"), "--treatment"),
    )


def resolved(options: Options, control: str, treatment: str) -> tuple[Benchmark, ...]:
    return resolve_order(order(options, *sides(control, treatment))).benchmarks


def worktrees(tmp_path: Path, **files: tuple[str, str]) -> tuple[Path, Variation, Variation]:
    """A repository with two worktrees; of each file, what it is in the one and in the other."""
    root = tmp_path / "repository"
    made = [tmp_path / side for side in ("control", "treatment")]
    for place, folder in enumerate((*made, root)):
        for name, texts in files.items():
            path = folder / name.replace("__", "/").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            if texts[min(place, 1)]:
                path.write_text(texts[min(place, 1)])
    both = [Variation(side=f.name, revision=f.name, folder=(str(root), str(f))) for f in made]
    return root, both[0], both[1]


def test_each_benchmark_stands_twice_and_the_two_are_a_pair() -> None:
    found = resolve_order(order(Options(command=("app",)), *sides("env:N=1", "env:N=2")))
    assert [(b.name, b.pair, b.side) for b in found.benchmarks] == [
        ("app control", "app", "control"),
        ("app treatment", "app", "treatment"),
    ]
    assert [b.labels["revision"] for b in found.benchmarks] == ["env:N=1", "env:N=2"]
    assert found.options.interleave is True
    assert found.name == "app"


def test_variables_of_a_side_win_over_those_of_both() -> None:
    both = Options(command=("app",), env={"N": "0", "M": "7"})
    before, after = resolved(both, "env:N=1", "env:")
    assert before.env == {"N": "1", "M": "7"}
    assert after.env == {"N": "0", "M": "7"}


def test_arguments_are_added_as_words_to_a_command_and_to_a_shells_line() -> None:
    before, after = resolved(Options(command=("app", "x")), "args:", "args:--name 'two words'")
    assert (before.workload.words, after.workload.words) == (("app", "x"), ("app", "x", "--name", "two words"))
    _, line = resolved(Options(commands=("app | cat",), shell=True), "args:", "args:'two words'")
    assert line.workload.words == ("app | cat 'two words'",)


def test_a_program_replaces_that_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "new"
    program.write_text("#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"cannot be executed; chmod \+x"):
        sides("bin:./new", "bin:sh")
    program.chmod(0o755)
    before, after = resolved(Options(command=("app", "--size", "3")), "bin:./new", "bin:sh")
    assert before.workload.words == (str(program), "--size", "3")
    assert os.path.isabs(after.workload.words[0])
    with pytest.raises(InvalidInput, match=r"--control: there is no program './gone'"):
        sides("bin:./gone", "bin:sh")
    with pytest.raises(InvalidInput, match="no program that could be replaced"):
        resolved(Options(commands=("app | cat",), shell=True), "bin:./new", "bin:sh")


def test_a_script_gets_another_interpreter_and_more_arguments(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text("from benchprobe import iterate\n")
    before, after = resolved(Options(targets=(str(script),), script_args=("a",)), "bin:sh", "args:b")
    assert isinstance(before.workload, Script)
    assert os.path.basename(before.workload.python) == "sh"
    assert after.workload.words[-2:] == ("a", "b")


def test_two_commands_are_one_benchmark_called_after_both() -> None:
    before, after = resolved(Options(), "cmd:python old.py", "cmd:python new.py")
    assert (before.name, after.name) == ("new.py vs old.py control", "new.py vs old.py treatment")
    assert before.pair == after.pair
    assert (before.workload.words, after.workload.words) == (("python", "old.py"), ("python", "new.py"))
    same = resolved(Options(), "cmd:python a.py 1", "cmd:python a.py 2")
    assert {b.pair for b in same} == {"a.py"}


def test_a_side_stands_in_its_own_worktree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, before, after = worktrees(tmp_path, sub__loop_py=("from benchprobe import iterate\n",) * 2)
    monkeypatch.chdir(root / "sub")
    monkeypatch.setenv("PYTHONPATH", f"{root}/sub:{root}/gone:/elsewhere")
    scripts = resolve_order(order(Options(targets=("loop.py",)), before, after)).benchmarks
    for side, script in zip(("control", "treatment"), scripts, strict=True):
        assert isinstance(script.workload, Script)
        assert script.workload.path == f"{tmp_path}/{side}/sub/loop.py"
        assert script.workload.cwd == f"{tmp_path}/{side}/sub"
        # What the worktree has is taken from it; the rest stays.
        assert script.env["PYTHONPATH"] == f"{tmp_path}/{side}/sub:{root}/gone:/elsewhere"
    assert Path.cwd() == root / "sub"


def test_paths_into_the_repository_are_those_of_the_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, before, after = worktrees(tmp_path, a_py=("1", "2"))
    monkeypatch.chdir(tmp_path)
    words = ("python", f"{root}/a.py", f"--out={root}/x", f"{root}-other/y")
    commands = resolve_order(order(Options(command=words, cwd=str(root)), before, after)).benchmarks
    for side, command in zip(("control", "treatment"), commands, strict=True):
        here = f"{tmp_path}/{side}"
        assert command.workload.words == ("python", f"{here}/a.py", f"--out={here}/x", f"{root}-other/y")
        assert command.workload.cwd == here


def test_relative_paths_of_options_lead_into_the_worktree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = "from benchprobe import iterate\n"
    root, before, after = worktrees(tmp_path, loops__a_py=(loop, loop), app=("", "#!/bin/sh\n"))
    monkeypatch.chdir(root)
    for asked in (
        Options(targets=("a.py",), search_dirs=("loops",)),
        Options(targets=("loops/*.py",), cwd="loops"),
        Options(targets=("loops",)),
        Options(all_scripts=True),
    ):
        scripts = resolve_order(order(asked, before, after)).benchmarks
        assert [b.source for b in scripts] == [f"{tmp_path}/{side}/loops/a.py" for side in SIDES]
        assert [b.workload.cwd.removesuffix("/loops") for b in scripts] == [f"{tmp_path}/{side}" for side in SIDES]
    (tmp_path / "control" / "loops" / "a.py").unlink()
    with pytest.raises(InvalidInput, match=f"{tmp_path}/control/loops/a.py: no such file"):
        resolve_order(order(Options(targets=("loops/a.py",)), before, after))


def test_the_program_of_a_specification_is_that_of_the_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {
        "model": {"category": "c", "name": "m", "format": "x"},
        "tests": [{"identifier": "t", "iterations": 1, "commands": ["{program} --in x"], "metric": "delay"}],
    }
    text = json.dumps(spec)
    root, before, after = worktrees(tmp_path, **{"spec.json": (text, text), "app": ("#!/bin/sh\n",) * 2})
    monkeypatch.chdir(root)
    for program, more in (("./app", ""), ("app=./app", ""), ("./app --fast", " --fast")):
        sides = resolve_order(order(Options(targets=("spec.json",), programs=(program,)), before, after)).benchmarks
        found = [spec_of(side).programs["app" if "=" in program else "program"] for side in sides]
        assert found == [f"{tmp_path}/{side}/app{more}" for side in SIDES]


def test_the_usual_task_file_is_that_of_the_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = "[a]\ncommand_to_execute = true\n"
    root, before, after = worktrees(tmp_path, **{"task_config_template.cfg": (task, task)})
    monkeypatch.chdir(root)
    for asked in (Options(tasks=("a",)), Options(tasks=("a",), command_to_execute="pwd")):
        found = resolve_order(order(asked, before, after)).benchmarks
        assert [b.workload.cwd for b in found] == [f"{tmp_path}/{side}" for side in SIDES]


def test_what_only_one_side_has_is_listed_and_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = ("[a]\ncommand_to_execute = true\n", "[b]\ncommand_to_execute = true\n")
    root, before, after = worktrees(tmp_path, **{"tasks.cfg": (one, f"{one}{two}")})
    monkeypatch.chdir(root)
    found = resolve_order(order(Options(targets=("tasks.cfg",)), before, after)).benchmarks
    assert [(b.name, b.withheld) for b in found] == [
        ("a control", None),
        ("a treatment", None),
        ("b treatment", "the control has no such benchmark"),
    ]


def test_environments_of_a_suite_are_told_apart_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one/main.py").write_text("from benchprobe import iterate\n")
    (tmp_path / "suite.yaml").write_text("one:\n  definition: ./one\n  install_group: group\n")
    before, after = (Variation(side=s, revision=s, python=f"/{s}/bin/python") for s in ("control", "treatment"))
    options = Options(targets=(str(tmp_path / "suite.yaml"),), base=str(tmp_path / "base"))
    found = resolve_order(order(options, before, after))
    paths = found.options.suite_paths
    assert paths is not None
    environments = [b.environment for b in found.benchmarks]
    assert [paths.python_of(e.name) for e in environments if e] == ["/control/bin/python", "/treatment/bin/python"]


def test_a_side_with_other_requirements_has_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = "one:\n  definition: ./one\n  install_group: g\ntwo:\n  definition: ./two\n"
    same = {"one__main_py": ("1", "1"), "two__main_py": ("1", "1"), "two__requirements.in": ("a", "a")}
    root, before, after = worktrees(
        tmp_path, **same, **{"suite.yaml": (suite,) * 2, "one__requirements.in": ("b==1", "b==2")}
    )
    monkeypatch.chdir(root)
    found = resolve_order(order(Options(targets=("suite.yaml",), base=str(tmp_path / "base")), before, after))
    assert [(b.name, b.environment and b.environment.name) for b in found.benchmarks] == [
        ("one control", "g-control"),
        ("one treatment", "g-treatment"),
        ("two control", "two"),
        ("two treatment", "two"),
    ]
    assert [suite_file(b) for b in found.benchmarks[:2]] == [f"{tmp_path}/{side}/suite.yaml" for side in SIDES]


def test_a_suite_has_no_program_to_replace(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one/main.py").write_text("")
    (tmp_path / "suite.yaml").write_text("one:\n  definition: ./one\n")
    options = Options(targets=(str(tmp_path / "suite.yaml"),), base=str(tmp_path / "base"))
    with pytest.raises(InvalidInput, match="environments of their own"):
        resolved(options, "bin:sh", "args:")


def test_secrets_are_no_part_of_a_label() -> None:
    for text in (
        "env:API_TOKEN=hunter2-hunter2",
        "args:--password hunter2-hunter2",
        "cmd:app --password=hunter2-hunter2",
    ):
        assert "hunter2" not in shown(parse_revision(text, "--control"), "--control")


def test_each_model_of_a_script_is_a_pair_of_its_own(tmp_path: Path) -> None:
    from benchwright.core.model import FoundModel, ScriptDiscovery
    from benchwright.kinds.models.discovery.search import _models_of

    script = tmp_path / "nets.py"
    script.write_text("import torch\n")
    scripts = resolved(Options(targets=(str(script),), params=("k=1",)), "args:", "args:--fast")
    found = ScriptDiscovery(script=str(script), models=tuple(FoundModel(identity=c * 8, class_=c) for c in "AB"))
    models = [model for each in scripts for model in _models_of(each, found, Options())]
    assert [(m.name, m.pair) for m in models] == [
        (f"nets.py::{c}[k=1]@torch-eager {side}", f"nets.py::{c}[k=1]@torch-eager")
        for side in ("control", "treatment")
        for c in "AB"
    ]
    assert [m.labels["revision"] for m in models] == ["args:"] * 2 + ["args:--fast"] * 2


def test_sides_of_a_specification_have_files_and_programs_of_their_own(tmp_path: Path) -> None:
    spec = {
        "model": {"category": "c", "name": "m", "format": "x"},
        "tests": [{"identifier": "t", "iterations": 1, "commands": ["{program} --in x"], "metric": "delay"}],
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    before, after = resolved(Options(targets=(str(tmp_path / "spec.json"),)), "bin:sh", "args:--more 'a b'")
    first, second = spec_of(before), spec_of(after)
    assert (first.side, second.side) == ("control", "treatment")
    assert first.programs["program"].endswith("/sh")
    assert second.arguments == ("--more 'a b'",)
    assert before.env["AIBENCH_TREATMENT_GROUP"] == "0"
