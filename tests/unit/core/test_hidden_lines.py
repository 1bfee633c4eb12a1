"""Lines that voir hides in a program's output."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from voir.smuggle import encode_as_escape_sequence

from benchwright.core.hidden_lines import HiddenLines

lines = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1, max_size=20)
shown = st.binary(max_size=10).filter(lambda raw: b"\x1b" not in raw)


def hide_line(line: str) -> bytes:
    """As voir itself writes it."""
    hidden: str = encode_as_escape_sequence(line + "\n")
    return hidden.encode()


@given(parts=st.lists(st.tuples(shown, lines), max_size=5), cuts=st.lists(st.integers(0, 300), max_size=6))
def test_wherever_the_output_is_cut_both_parts_come_out_whole(parts: list[tuple[bytes, str]], cuts: list[int]) -> None:
    output = b"".join(text + hide_line(line) for text, line in parts)
    places = sorted({0, len(output), *(min(cut, len(output)) for cut in cuts)})
    reader = HiddenLines()
    seen, hidden = b"", []
    for begin, end in itertools.pairwise(places):
        text, found = reader.feed(output[begin:end])
        seen += text
        hidden += found
    assert seen + reader.close() == b"".join(text for text, _ in parts)
    assert hidden == [line.encode() for _, line in parts]


@given(output=st.binary(max_size=60), cut=st.integers(0, 60))
def test_output_without_hidden_lines_comes_out_as_it_was(output: bytes, cut: int) -> None:
    if b"z" in output:
        output = output.replace(b"z", b"y")
    reader = HiddenLines()
    first, second = reader.feed(output[:cut]), reader.feed(output[cut:])
    assert first[0] + second[0] + reader.close() == output
    assert first[1] == second[1] == []


@pytest.mark.parametrize("output", [b"\x1b[31mred\x1b[0m", b"\x1b[2K\rprogress", b"\x1b]0;title\x07", b"50% \x1b"])
def test_colours_and_cursors_stay(output: bytes) -> None:
    reader = HiddenLines()
    assert (reader.feed(output)[0] + reader.close(), reader.feed(b"")[1]) == (output, [])


def test_a_torn_line_is_one_that_cannot_be_read() -> None:
    assert HiddenLines().feed(b"\x1b[7;2z")[1] == [b"?"]


def test_what_never_ends_is_shown_and_not_kept_for_ever() -> None:
    reader = HiddenLines()
    seen = b""
    for _ in range(40):
        seen += reader.feed(b"\x1b[" * (not seen) + b"1" * 65536)[0]
    assert len(seen + reader.close()) >= 40 * 65536
