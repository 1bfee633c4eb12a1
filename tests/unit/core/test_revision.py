"""Revisions as users write them."""

from __future__ import annotations

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.core.revision import Revision, RevisionKind, parse_revision


@pytest.mark.parametrize(
    ("text", "kind", "rest"),
    [
        ("main", "git", "main"),
        ("git:HEAD~3", "git", "HEAD~3"),
        ("origin/main", "git", "origin/main"),
        (":/fix the cache", "git", ":/fix the cache"),
        ("pip:onnxruntime==1.19 numpy<2", "pip", "onnxruntime==1.19 numpy<2"),
        ("args:--threads 4", "args", "--threads 4"),
        ("args:", "args", ""),
        ("env:A=1 B='x y'", "env", "A=1 B='x y'"),
        ("bin:/opt/program", "bin", "/opt/program"),
        ("cmd:python a.py", "cmd", "python a.py"),
    ],
)
def test_a_prefix_tells_the_kind_and_git_needs_none(text: str, kind: str, rest: str) -> None:
    revision = parse_revision(text, "--control")
    assert revision == Revision(RevisionKind(kind), rest)
    assert parse_revision(str(revision), "--control") == revision


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pipp:numpy", "did you mean 'pip'"),
        ("docker:image", "use one of git:"),
        ("", "names no revision"),
        ("pip:", "names no revision"),
        ("--all", "is no revision"),
        ("git:-x", "is no revision"),
        ("cmd:python 'a", "no closing quotation"),
    ],
)
def test_what_means_nothing_is_refused_with_the_option_named(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        parse_revision(text, "--control")
    assert str(caught.value).startswith("--control: ")


def test_variables_are_pairs() -> None:
    assert parse_revision("env:A=1 B='x y' C=", "x").variables("x") == {"A": "1", "B": "x y", "C": ""}
    with pytest.raises(InvalidInput, match="'lonely' sets no variable"):
        parse_revision("env:lonely", "x").variables("x")
