"""Suites resolve as milabench resolves them, and every error points at its line."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from literal_resolution import REMOVE, literal_resolution

from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.read.suite import read_suite


class Dumper(yaml.CSafeDumper):
    """Writes REMOVE as !delete, and everything out: no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


Dumper.add_representer(type(REMOVE), lambda dumper, _: dumper.represent_scalar("!delete", ""))


def suite(folder: Path, **files: str) -> str:
    """Files below `folder`; the last one's path."""
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return str(folder / f"{name}.yaml")


def error_of(path: str, **options: Any) -> str:
    with pytest.raises(InvalidInput) as raised:
        read_suite(path, **options)
    return str(raised.value)


# --- as milabench does it -------------------------------------------------------------------------------------------

NAMES = ("_defaults", "_a", "_b", "one", "two", "three")  # each may inherit from those before it, wherever they stand
words = st.sampled_from(["x", "y", "--lr", "--flag"])
values = st.one_of(
    st.integers(0, 9), st.sampled_from(["fp16", "{gpu_count}", "auto_batch(8)"]), st.booleans(), st.none()
)
arguments = st.one_of(
    st.dictionaries(words, st.one_of(values, st.just(REMOVE)), max_size=3),
    st.lists(st.sampled_from(["-a", "-b", 7]), max_size=3),
    st.builds(lambda items: {"append": items}, st.lists(st.sampled_from(["-c", "-d"]), min_size=1, max_size=2)),
)
plans = st.one_of(
    st.just({"method": "per_gpu"}), st.builds(lambda n: {"method": "njobs", "n": n}, st.integers(1, 3)), st.just(REMOVE)
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "enabled": st.booleans(),
        "weight": st.sampled_from([0, 1, 2.5]),
        "tags": st.lists(st.sampled_from(["nlp", "rl", "vision"]), max_size=3),
        "argv": arguments,
        "plan": plans,
        "voir": st.builds(lambda stop: {"options": {"stop": stop}}, st.integers(1, 9)),
    },
)


@st.composite
def layers(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One to three files, each of which includes the one before."""
    files: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 3))):
        files.append({})
        for name in draw(st.permutations((*NAMES[1:], "*", "_defaults")))[: draw(st.integers(1, 6))]:
            files[-1][name] = draw(bodies)
            if name in NAMES[1:] and draw(st.booleans()):
                files[-1][name]["inherits"] = draw(st.sampled_from(NAMES[: NAMES.index(name)]))
    inherited = {entry.get("inherits") for file in files for entry in file.values()} - {None, "_defaults"}
    for name in sorted(inherited - {name for file in files for name in file}):
        files[-1][name] = {"weight": 1}
    return files


@pytest.mark.compat
@given(files=layers(), included_again=st.booleans())
def test_random_suites_resolve_as_milabench_does(files: list[dict[str, Any]], included_again: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, file in enumerate(files):
            below = {"include": [f"{number - 1}.yaml"] * (1 + included_again)} if number else {}
            text = yaml.dump(below | file, Dumper=Dumper, sort_keys=False)
            Path(folder, f"{number}.yaml").write_text(text)
        path = Path(folder, f"{len(files) - 1}.yaml")
        theirs = literal_resolution(path)
        ours = read_suite(str(path)).entries
    assert list(ours) == list(theirs)
    for name, entry in theirs.items():
        for key in ("argv", "plan", "tags", "weight", "enabled", "voir"):
            expected = entry.get(key)
            if isinstance(expected, dict) and list(expected) == ["append"]:
                expected = expected["append"]  # there was no list to make longer: ours is one
            assert ours[name].get(key) == expected, (name, key)


@given(
    matrix=st.dictionaries(
        st.sampled_from(["a", "b-c", "d"]),
        st.one_of(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True), st.integers()),
        min_size=1,
    )
)
def test_matrices_expand_in_milabenchs_order(matrix: dict[str, Any]) -> None:
    job = {
        "name": "job" + "".join(f"-{{{key}}}" for key in matrix),
        "argv": {f"--{key}": f"<{{{key}}}>" for key in matrix} | {"--out": "{benchwright_extra}"},
        "weight": 1,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sweep.yaml")
        path.write_text(yaml.dump({"first": {"weight": 2}, "sweep": {"matrix": matrix, "job": job}}, sort_keys=False))
        theirs, ours = literal_resolution(path), read_suite(str(path)).entries
    assert list(ours) == list(theirs)
    assert [e.get("argv") for e in ours.values()] == [e.get("argv") for e in theirs.values()]
    assert all(ours[name]["matrix"].keys() == matrix.keys() for name in ours if name != "first")


# --- what differs on purpose ----------------------------------------------------------------------------------------


def test_tags_can_be_appended(tmp_path: Path) -> None:
    path = suite(
        tmp_path,
        s="a: {tags: [x]}\nb: {inherits: a, tags: {append: [y]}}\nc: {tags: {append: [z]}}\nd: {inherits: b, tags: w}\n",
    )
    entries = read_suite(path).entries
    assert [entries[name]["tags"] for name in "abcd"] == [["x"], ["x", "y"], ["z"], ["w", "x", "y"]]


def test_a_text_is_one_value_of_a_matrix(tmp_path: Path) -> None:
    path = suite(
        tmp_path,
        s="s:\n  matrix: {p: fp16, n: [1, 2]}\n  job: {name: 'j-{p}-{n}', argv: {--p: '{p}/{benchwright_data}'}}\n",
    )
    entries = read_suite(path).entries
    assert list(entries) == ["j-fp16-1", "j-fp16-2"]
    assert entries["j-fp16-1"]["argv"]["--p"] == "fp16/{benchwright_data}"
    assert entries["j-fp16-2"]["matrix"] == {"p": "fp16", "n": 2}


def test_placeholders_of_a_matrix_may_have_a_form_and_others_stay(tmp_path: Path) -> None:
    path = suite(
        tmp_path,
        s="s:\n  matrix: {n: [7]}\n  job: {name: 'j{n:03d}', argv: ['{n}', '{{n}}', '{x}', '{\"n\": 1}', 3]}\n",
    )
    assert read_suite(path).entries["j007"]["argv"] == ["7", "{{n}}", "{x}", '{"n": 1}', 3]


def test_a_key_spelt_with_dashes_is_read_and_told(tmp_path: Path) -> None:
    path = suite(
        tmp_path, s="a:\n  install-variant: unpinned\nb:\n  matrix: {x: 1}\n  job: {name: 'b{x}', install-group: g}\n"
    )
    found = read_suite(path)
    assert found.entries["a"]["install_variant"] == "unpinned"
    assert found.entries["b1"]["install_group"] == "g"
    assert found.warnings == (
        f"{path}:2: 'install-variant' is read as 'install_variant'",
        f"{path}:5: 'install-group' is read as 'install_group'",
    )


def test_a_key_given_twice_counts_last_and_is_told(tmp_path: Path) -> None:
    path = suite(tmp_path, s="a:\n  weight: 1\n  weight: 2\na:\n  weight: 3\n")
    found = read_suite(path)
    assert found.entries["a"]["weight"] == 3
    assert found.warnings[0] == f"{path}:3: 'weight' appears twice, first in line 2; the last one counts"
    assert found.warnings[1] == f"{path}:4: 'a' appears twice, first in line 1; the last one counts"


def test_a_delete_that_removes_nothing_is_told(tmp_path: Path) -> None:
    path = suite(
        tmp_path,
        base="a: {argv: {--x: 1}}\n",
        s="include: base.yaml\na:\n  argv: {--x: !delete }\nb:\n  inherits: a\n  argv:\n    --x: !delete\n",
    )
    found = read_suite(path)
    assert found.entries["a"]["argv"] == {}
    assert found.warnings == (
        f"{path}:7: !delete removes nothing: no included file sets it for 'b'; null drops an inherited argument",
    )
    assert (
        "b"
        not in read_suite(
            suite(tmp_path, base="b: {weight: 1}\nc: {weight: 1}\n", s="include: base.yaml\nb: !delete\n")
        ).entries
    )


@pytest.mark.compat
def test_dots_are_expanded_where_it_is_asked_for(tmp_path: Path) -> None:
    path = suite(tmp_path, s="a: !expand-dot\n  voir.options.stop: 3\n  voir.options.skip: 1\n  <<<: {argv.--lr: 2}\n")
    entry = read_suite(path).entries["a"]
    assert entry["voir"] == {"options": {"stop": 3, "skip": 1}}
    assert entry["argv"] == {"--lr": 2}
    assert "s.yaml:2:24: stop is 'x'" in error_of(suite(tmp_path, s="a: !expand-dot\n  voir.options.stop:   x\n"))


# --- defaults, folders, references ----------------------------------------------------------------------------------


def test_groups_and_folders_are_filled(tmp_path: Path) -> None:
    path = suite(
        tmp_path, s="a: {inherits: _defaults, definition: ./code}\nb: {inherits: a, group: g}\nc: {definition: /abs}\n"
    )
    entries = read_suite(path).entries
    assert entries["a"] == {
        "name": "a",
        "enabled": True,
        "definition": str((tmp_path / "code").resolve()),
        "config_base": str(tmp_path),
        "config_file": path,
        "tags": [],
        "group": "a",
        "install_group": "a",
        "install_variant": "${system.arch}",
    }
    assert (entries["b"]["group"], entries["b"]["install_group"]) == ("g", "g")
    assert "enabled" not in entries["c"]
    assert entries["c"]["definition"] == "/abs"


def test_a_definition_is_relative_to_the_last_file_that_names_the_entry(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "base.yaml").write_text(
        "a: {definition: code}\nb: {definition: code}\n_p: {definition: code}\n"
    )
    path = suite(
        tmp_path, s="include: [sub/base.yaml]\na: {weight: 1}\nm:\n  matrix: {x: 1}\n  job: {name: m, inherits: _p}\n"
    )
    entries = read_suite(path).entries
    assert entries["a"]["definition"] == str(tmp_path / "code")
    assert entries["b"]["definition"] == str(tmp_path / "sub" / "code")
    assert entries["m"]["definition"] == str(tmp_path / "sub" / "code")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("${num_machines}", 2),
        ("n${num_machines}", "n2"),
        ("${stop.steps}", 5),
        ("${.--b}", "x"),
        ("${..weight}", 1.5),
        ("${tags[1]}", "u"),
        ("${system.arch}", "${system.arch}"),
        ("a-${system.arch}", "a-${system.arch}"),
        ("${dirs.data}/x", "{benchwright_data}/x"),
        ("${{HOME}}", "${{HOME}}"),
        ("\\\\${HOME}", "${{HOME}}"),
        ("${group}/${name}", "a/a"),
    ],
)
def test_references_within_an_entry(tmp_path: Path, written: str, read: Any) -> None:
    path = suite(
        tmp_path,
        s=f'a:\n  num_machines: 2\n  weight: 1.5\n  tags: [t, u]\n  stop: {{steps: 5}}\n  argv: {{--a: "{written}", --b: x}}\n',
    )
    assert read_suite(path).entries["a"]["argv"]["--a"] == read


# --- overrides ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "argv", "weight"),
    [
        ("a.weight=3", {"--lr": 1}, 3),
        ("a.argv.--lr=0.5", {"--lr": 0.5}, 1),
        ("a.argv.--x.y=[1, 2]", {"--lr": 1, "--x.y": [1, 2]}, 1),
        ("a.argv.--lr=!delete", {}, 1),
        ("a.argv={--z: true}", {"--lr": 1, "--z": True}, 1),
        ("*.weight=0", {"--lr": 1}, 0),
        ("_p.argv.--new=7", {"--lr": 1, "--new": 7}, 1),
        ("a.weight=", {"--lr": 1}, None),
        ("a.argv.--lr=6e-4", {"--lr": "6e-4"}, 1),
    ],
)
def test_overrides_come_last(tmp_path: Path, override: str, argv: Any, weight: Any) -> None:
    path = suite(tmp_path, s="_p: {argv: {}}\na: {inherits: _p, weight: 1, argv: {--lr: 1}}\n")
    entry = read_suite(path, overrides=[override]).entries["a"]
    assert (entry["argv"], entry["weight"]) == (argv, weight)


def test_overrides_reach_entries_with_dots_and_those_a_matrix_makes(tmp_path: Path) -> None:
    path = suite(tmp_path, s="v1.5: {weight: 1}\nv1: {weight: 1}\ns:\n  matrix: {n: [1, 2]}\n  job: {name: 's{n}'}\n")
    entries = read_suite(path, overrides=["v1.5.weight=2", "s2.weight=4", "v1.weight=3", "s.matrix.n=[2]"]).entries
    assert {name: e.get("weight") for name, e in entries.items()} == {"v1.5": 2, "v1": 3, "s2": 4}


@pytest.mark.parametrize(
    ("override", "says"),
    [
        (
            "b.weight=1",
            "--override: the suite has no entry 'b'; name an entry of the suite, or * for all\n    b.weight=1",
        ),
        ("reznet.weight=1", "did you mean 'resnet'?"),
        (
            "resnet.wieght=1",
            "--override: 'wieght' is not a key of an entry; did you mean 'weight'?\n    resnet.wieght=1",
        ),
        ("resnet.weight=[", "this is not YAML"),
        ("resnet.weight=-1", "weight is -1, not a weight; write 0 or more"),
        ("resnet.plan.method=per_gpus", "'per_gpus' is not a plan; did you mean 'per_gpu'?"),
        ("resnet", "'resnet' is not ENTRY.KEY=VALUE"),
        ("weight=1", "'weight=1' is not ENTRY.KEY=VALUE"),
        ("*.inherits=resnet", "'*' cannot inherit"),
        ("resnet.inherits=_x", "'resnet' inherits '_x', which is not defined"),
    ],
)
def test_wrong_overrides(tmp_path: Path, override: str, says: str) -> None:
    said = error_of(suite(tmp_path, s="resnet: {weight: 1}\n"), overrides=[override])
    assert said.startswith("--override: ")
    assert says in said
