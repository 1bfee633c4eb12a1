"""Command lines as words, checked against a real shell."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchwright.kinds.command_words import read_line

plain_text = st.text(alphabet="ab=1-_./:,%+@^ \t'\"\\{}!", max_size=30)


def words_of_a_shell(line: str) -> list[str]:
    done = subprocess.run(["sh", "-c", f"printf '%s\\0' x {line}"], capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[1:-1]


@given(plain_text)
def test_words_are_those_a_shell_makes(line: str) -> None:
    read = read_line(line)
    if read.unclosed is None:
        assert [word.text for word in read.words] == words_of_a_shell(line)


@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8), max_size=6
    )
)
def test_whatever_is_quoted_comes_back_and_needs_no_shell(words: list[str]) -> None:
    assume(not words or not re.match(r"[A-Za-z_]\w*=", words[0], re.ASCII))  # which shlex does not put in quotes
    read = read_line(shlex.join(words))
    assert [word.text for word in read.words] == words
    assert read.needs_shell is None


@given(plain_text)
def test_every_word_knows_where_it_stands(line: str) -> None:
    read = read_line(line)
    if read.unclosed is None:
        for word in read.words:
            assert shlex.split(line[word.start : word.end]) == [word.text] or "\\" in line


@pytest.mark.parametrize(
    ("line", "position"),
    [
        ("a | b", 2),
        ("a && b", 2),
        ("a; b", 1),
        ("a > out", 2),
        ("a 2>&1", 3),
        ("a < in", 2),
        ("(a)", 0),
        ("a &", 2),
        ("a $HOME", 2),
        ("a ${HOME}", 2),
        ("a $(b)", 2),
        ('a "$HOME/x"', 3),
        ('a "`b`"', 3),
        ("a `b`", 2),
        ("a *.py", 2),
        ("a x?.py", 3),
        ("a img[0-9].jpg", 5),
        ("a ~/data", 2),
        ("a # why", 2),
        ("A=1 a", 0),
        ("a\nb", 1),
    ],
)
def test_what_only_a_shell_understands_is_found_where_it_stands(line: str, position: int) -> None:
    need = read_line(line).needs_shell
    assert need is not None
    assert need.position == position


@pytest.mark.parametrize(
    "line",
    [
        "python a.py --lr 0.1",
        "a '|' \"&&\" \\;",
        "a '$HOME' \"\\$HOME\" \\$HOME",
        "a 100% cost$ x=1 --flag=value a~b a#b",
        "a '*.py' \"x?\" \\*",
        "a [ ]",
        "a \\\n  b",
        "",
    ],
)
def test_a_plain_command_needs_no_shell(line: str) -> None:
    assert read_line(line).needs_shell is None


@pytest.mark.parametrize(("line", "position"), [("a 'b", 2), ('a "b', 2), ("a b\\", 3), ("""a "it's""", 2)])
def test_a_quote_that_never_closes_is_found(line: str, position: int) -> None:
    assert read_line(line).unclosed == position


@given(st.text())
def test_any_text_can_be_read(line: str) -> None:
    read = read_line(line)
    assert all(0 <= w.start < w.end <= len(line) for w in read.words)
