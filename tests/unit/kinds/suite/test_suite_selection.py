"""Which entries of a suite are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.kind import SuiteKind
from benchwright.kinds.suite.read.suite import read_suite
from benchwright.options.table import Options

TEXT = """
resnet: {definition: ./vision, tags: [cnn, fast], group: images}
vit: {definition: ./vision, tags: [attention], group: images, install_group: torch}
bert: {definition: ./text, tags: [attention], enabled: false}
gpt: {definition: ./text, tags: [attention, llm]}
nowhere: {tags: [llm]}
_private: {tags: [llm]}
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "s.yaml").write_text(TEXT)
    return str(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    ("select", "exclude", "run", "disabled"),
    [
        ([], [], "resnet vit gpt", ""),
        (["*"], [], "resnet vit gpt", "bert"),
        (["resnet"], [], "resnet", ""),
        (["images"], [], "resnet vit", ""),
        (["torch"], [], "vit", ""),
        (["attention"], [], "vit gpt", "bert"),
        (["cnn,llm"], [], "resnet gpt", ""),
        (["cnn", "llm"], [], "resnet gpt", ""),
        (["text"], [], "gpt", "bert"),
        (["vision"], ["fast"], "vit", ""),
        ([], ["images"], "gpt", ""),
        (["*t"], ["bert"], "resnet vit gpt", ""),
        (["bert"], [], "bert", ""),
        (["bert", "attention"], [], "vit bert gpt", ""),
    ],
)
def test_words_fit_names_groups_tags_and_folders(
    path: str, select: list[str], exclude: list[str], run: str, disabled: str
) -> None:
    found = SuiteKind().read(path, Options(select=tuple(select), exclude=tuple(exclude)))
    assert [b.name for b in found if b.enabled] == run.split()
    assert [b.name for b in found if not b.enabled] == disabled.split()


def test_a_disabled_entry_that_is_named_runs_and_says_so(path: str) -> None:
    suite = read_suite(path, select=["bert"])
    assert (suite.selected, suite.forced) == (("bert",), ("bert",))
    assert suite.warnings == ("bert is disabled in the suite; it runs because --select names it",)
    (found,) = SuiteKind().read(path, Options(tasks=("bert",)))
    assert found.enabled
    assert found.notes[0] == "disabled in the suite; runs because --select names it"


@pytest.mark.parametrize(
    ("select", "exclude", "says"),
    [
        (["resnett"], [], "--select: no benchmark, tag or group is called 'resnett'; did you mean 'resnet'?"),
        (["resnet,zzz"], [], "--select: no benchmark, tag or group is called 'zzz'; see the names with:"),
        (["x*"], [], "--select: no benchmark, tag or group is called 'x*'"),
        ([], ["_private"], "--exclude: no benchmark, tag or group is called '_private'"),
        (["cnn"], ["fast"], "s.yaml: the selection leaves nothing to run; check --select and --exclude"),
        (["nowhere"], [], "s.yaml:6:1: 'nowhere' has no definition; name the folder of its main.py"),
    ],
)  # fmt: skip
def test_words_that_fit_nothing(path: str, select: list[str], exclude: list[str], says: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        SuiteKind().read(path, Options(select=tuple(select), exclude=tuple(exclude)))
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("text", "suite"),
    [
        ("a: {definition: .}\n", True),
        ("include: x.yaml\n", True),
        ("{a: {weight: 1}}", True),
        ("# empty\n", True),
        ("a: [", True),
        ("system: {arch: cuda}\n", False),
        ("arch: cuda\nnodes: []\n", False),
        ("multirun: {runs: []}\n", False),
        ("version: 2\na: {observations: []}\n", False),
        ("a: {model: {1: 2 MiB}, arg: x}\n", False),
        ("[1, 2]", False),
        ("x: 1\ny: 2\n", False),
        ("a: {weight: 1}\n" + "# filling\n" * 5000 + "b:\n  [", True),
    ],
)
def test_suites_are_told_from_other_yaml(tmp_path: Path, text: str, suite: bool) -> None:
    (tmp_path / "f.yml").write_text(text)
    assert SuiteKind().recognises(str(tmp_path / "f.yml")) is suite
