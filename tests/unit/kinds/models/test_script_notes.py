"""Labels and docstrings of model scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.kinds.models.script_notes import matches_label, parse_labels, read_notes

WORD = st.from_regex(r"[A-Za-z0-9_./-]{1,10}", fullmatch=True)


def test_labels_of_the_first_line() -> None:
    labels = parse_labels("# labels: author::google test_group::daily,monthly name::a::b odd")
    assert labels == {"author": "google", "test_group": "daily,monthly", "name": "a::b"}
    assert parse_labels("#labels:author::x") == {"author": "x"}
    assert parse_labels("import torch") == {} == parse_labels("")


@given(st.dictionaries(WORD, st.lists(WORD, min_size=1, max_size=3), max_size=4))
def test_labels_come_back_as_they_were_written(labels: dict[str, list[str]]) -> None:
    line = "# labels: " + " ".join(f"{key}::{','.join(values)}" for key, values in labels.items())
    assert parse_labels(line) == {key: ",".join(values) for key, values in labels.items()}


def test_one_of_several_values_matches() -> None:
    labels = {"test_group": "daily,monthly"}
    assert matches_label(labels, "test_group", "daily")
    assert matches_label(labels, "test_group", "monthly")
    assert not matches_label(labels, "test_group", "day")
    assert not matches_label(labels, "author", "daily")


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("from mlagility.parser import parse\n", True),
        ("def f():\n    import turnkeyml.parser as p\n", True),
        ("from .mlagility import parse\nfrom benchprobe import parse\n", False),
    ],
)
def test_a_script_of_a_foreign_corpus_is_known_by_its_imports(tmp_path: Path, text: str, foreign: bool) -> None:
    (tmp_path / "a.py").write_text(text)
    assert read_notes(tmp_path / "a.py").foreign is foreign


@pytest.mark.parametrize(
    ("text", "loop"),
    [
        ("import torch\n", False),
        ("from benchprobe import parse\n", False),
        ("from benchprobe import iterate, give\n", True),
        ("import benchprobe\nbenchprobe.parse(['k'])\n", False),
        ("import benchprobe as bp\nfor x in bp.iterate('train', []):\n    pass\n", True),
        ("import other\nother.iterate('train', [])\n", False),
    ],
)
def test_only_a_script_that_iterates_has_a_loop(tmp_path: Path, text: str, loop: bool) -> None:
    script = tmp_path / "a.py"
    script.write_text('# labels: author::me\n"""From there."""\n' + text)
    notes = read_notes(script)
    assert notes.uses_loop is loop
    assert notes.docstring == "From there."
    assert notes.labels == {"author": "me"}
