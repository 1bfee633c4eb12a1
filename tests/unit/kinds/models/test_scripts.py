"""Scripts of folders, search folders and corpora: which are run, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.kinds.models.corpora import corpora_folder
from benchwright.kinds.models.script_notes import faults_of
from benchwright.options.table import Options
from benchwright.options.values import arguments, shard
from benchwright.runner.requests import options_of
from benchwright.runner.resolve import resolve
from benchwright.runner.run import RunOrder, plan
from benchwright.runs.base_folder import BaseFolder

SCRIPT = '"""A model of ours."""\nimport torch\n'


def folder_of(place: Path, *names: str) -> Path:
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(SCRIPT)
    return place


def names(options: Options) -> list[str]:
    return [benchmark.name for benchmark in resolve(options).benchmarks]


def asked(base: Path, *targets: str, **values: object) -> Options:
    return options_of({"all_scripts": True, "base": str(base), **values}, targets=targets)


def test_all_alone_means_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder_of(tmp_path / "here", "a.py", "b.py"))
    assert names(asked(tmp_path)) == ["a.py", "b.py"]


def test_a_module_is_named_as_python_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(
        folder_of(tmp_path / "here", "pkg/__init__.py", "pkg/__main__.py", "pkg/train.py", "no/helper.py")
    )
    (Path("pkg") / "__init__.py").write_text("")
    assert names(asked(tmp_path, all_scripts=False, modules=("pkg", "pkg.train"))) == ["pkg", "train.py"]
    assert names(asked(tmp_path, "pkg", all_scripts=False)) == ["pkg"], "a folder that python can run is run"
    for wrong in ("nothing", "no", "pkg.nothing", "os.path.nothing", "math"):
        with pytest.raises(InvalidInput, match=f"-m {wrong}: "):
            asked(tmp_path, modules=(wrong,))


def test_a_shipped_corpus_is_found_by_its_name_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert names(asked(tmp_path, search_dirs=("selftest",))) == ["linear.py", "twolayer.py"]
    assert names(asked(tmp_path, "selftest", all_scripts=False)) == ["linear.py", "twolayer.py"]
    assert resolve(asked(tmp_path, search_dirs=("selftest",))).name == "selftest"
    assert names(asked(tmp_path, "linear.py", all_scripts=False, search_dirs=("selftest",))) == ["linear.py"]
    folder_of(tmp_path, "selftest/own.py")
    assert names(asked(tmp_path, search_dirs=("selftest",))) == ["own.py"]  # a folder here comes first


def test_shards_are_disjoint_and_together_everything_shuffled_or_not(tmp_path: Path) -> None:
    folder = str(folder_of(tmp_path / "many", *(f"m{n:02}.py" for n in range(11))))
    whole = names(asked(tmp_path, folder))
    for shuffle in (False, True):
        parts = [names(asked(tmp_path, folder, shard=f"{n}/4", shuffle=shuffle, seed=7)) for n in range(1, 5)]
        assert sorted(name for part in parts for name in part) == whole
        assert {len(part) for part in parts} == {2, 3}


def test_a_shuffle_depends_on_the_seed_alone(tmp_path: Path) -> None:
    one = str(folder_of(tmp_path / "z", *(f"m{n:02}.py" for n in range(11))))
    other = str(folder_of(tmp_path / "a" / "deep", *(f"m{n:02}.py" for n in range(11))))
    first = names(asked(tmp_path, one, shuffle=True, seed=3))
    assert first == names(asked(tmp_path, other, shuffle=True, seed=3))
    assert first != sorted(first)
    assert first != names(asked(tmp_path, one, shuffle=True, seed=4))


def test_the_plan_launches_scripts_in_their_shuffled_order(tmp_path: Path) -> None:
    folder = str(folder_of(tmp_path / "many", *(f"m{n:02}.py" for n in range(6))))
    options = asked(tmp_path, folder, shuffle=True, seed=3)
    planned = plan(RunOrder(options=options, base=BaseFolder(tmp_path)))
    launched = [job.benchmark for together in planned.launches for job in together]
    assert launched == names(options)
    assert launched != sorted(launched)


def test_a_script_named_by_itself_is_in_every_shard(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "own.py", "many/a.py", "many/b.py")
    both = str(folder / "own.py"), str(folder / "many")
    assert names(asked(tmp_path, *both, shard="2/2")) == ["own.py", "b.py"]


@pytest.mark.parametrize("text", ["0/8", "9/8", "3", "a/b", "3/8/1", ""])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="third of eight"):
        shard(text)


def test_an_empty_shard_and_a_shard_of_nothing_are_refused(tmp_path: Path) -> None:
    folder = str(folder_of(tmp_path / "few", "a.py"))
    with pytest.raises(InvalidInput, match="nothing is left for 2/2: there are 1 script"):
        names(asked(tmp_path, folder, shard="2/2"))
    with pytest.raises(InvalidInput, match="no scripts of folders"):
        names(asked(tmp_path, f"{folder}/a.py", all_scripts=False, shard="1/2"))


def test_scripts_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    folder = str(folder_of(tmp_path, "bert/main.py", "gpt2/main.py", "other.py"))
    assert names(asked(tmp_path, folder)) == ["bert/main.py", "gpt2/main.py", "other.py"]


def test_arguments_may_be_separated_by_commas_as_mlagilitys_users_write_them() -> None:
    expected = ("--batch_size", "8", "--height", "64")
    assert arguments("--batch_size 8,--height 64") == arguments("--batch_size 8 --height 64") == expected
    assert arguments("--sizes 1,2,3 --text a,b") == ("--sizes", "1,2,3", "--text", "a,b")
    assert arguments("--text 'a,--b'") == ("--text", "a,--b")


def test_devices_have_the_names_of_mlagility_too(tmp_path: Path) -> None:
    assert asked(tmp_path, devices=("x86,nvidia,cpu",)).devices == ("cpu", "cuda")


def test_a_scripts_missing_docstring_and_broken_labels_are_told(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("# labels: author:google task::a,,b name::x\nimport torch\n")
    first, second, third = faults_of(path)
    assert "'author:google' is no label" in first
    assert "'task::a,,b' is no label" in second
    assert "no docstring" in third
    path.write_text("# labels: author::google task::a,b\n" + SCRIPT)
    assert faults_of(path) == []


def test_the_shipped_scripts_have_no_faults() -> None:
    scripts = sorted(Path(corpora_folder()).rglob("*.py"))
    assert {"linear.py", "twolayer.py"} <= {script.name for script in scripts}
    assert [fault for script in scripts for fault in faults_of(script)] == []
