"""JSON with the places of its values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.errors import InvalidInput
from benchwright.kinds.spec.read.document import parse_json
from benchwright.kinds.text_file import Remark, TextPlace

TEXT = '{\n  "a": {"b": [1, {"c": "x"}]},\n\t"d": "gpu_0\\/data"\n}\n'


def test_values_and_their_places() -> None:
    file = parse_json(TEXT, "a.json")
    assert file.value == {"a": {"b": [1, {"c": "x"}]}, "d": "gpu_0/data"}
    assert file.place(("a", "b", 1, "c")) == TextPlace(2, 24)
    assert file.place(("a", "b", 1, "c"), key=True) == TextPlace(2, 19)
    assert file.place(("d",), key=True) == TextPlace(3, 2)


def test_what_is_not_there_is_placed_at_what_is_around_it() -> None:
    file = parse_json(TEXT, "a.json")
    assert file.place(("a", "b", 7)) == file.place(("a", "b"))
    assert file.place(("a", "nothing", "here")) == file.place(("a",))


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ('{"a": 1,}', "a.json:1:9", "remove the comma"),
        ('{"a": 1\n "b": 2}', "a.json:2:2", "put a comma"),
        ('{"a": "x', "a.json:1:7", "close the quote"),
        ('{"a": "x\ty"}', "a.json:1:9", "write a tab as \\t"),
        ('{"a": [1, 2', "a.json:1:12", "close the { or ["),
        ('{"a": 1}\n}', "a.json:2:1", "one value in a file"),
        ('{"a":\n NaN}', "a.json:2:2", "NaN is not JSON"),
        ('{"NaN": [1, -Infinity]}', "a.json:1:13", "-Infinity is not JSON"),
        ("", "a.json:1:1", "the file is empty"),
        ("[" * 100_000, "a.json", "nested too deep"),
        ('{"a": ' + "9" * 5000 + "}", "a.json", "a number is too long"),
    ],
)
def test_what_is_not_json_is_placed(text: str, where: str, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_json(text, "a.json")
    assert str(error.value).startswith(where)
    assert said in str(error.value)


def test_a_key_given_twice_is_told_and_the_last_counts() -> None:
    file = parse_json('{"a": 1,\n "a": {"b": 2}}', "a.json")
    assert file.value == {"a": {"b": 2}}
    assert file.remarks == (Remark("'a' appears twice, first in line 1; the last one counts", 2),)
    assert file.place(("a", "b")).line == 2


def test_only_keys_of_one_object_are_doubled() -> None:
    text = '{"a": ["a", {"a": 1}, {"a": "a"}],\n "b": "}{",\n "b" : {"\\u0062": 1, "b": 2}}'
    assert [(remark.line, remark.what[:3]) for remark in parse_json(text, "a.json").remarks] == [(3, "'b'"), (3, "'b'")]
    assert parse_json('[{"a": 1}, {"a": 1}]', "a.json").remarks == ()


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def _ways(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [above, *(way for key, inner in items for way in _ways(inner, (*above, key)))]


@given(_VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_every_value_is_found_where_it_stands(value: Any, indent: Any, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    file = parse_json(text, "a.json")
    assert file.value == value
    lines = text.split("\n")
    for way in _ways(value):
        place = file.place(way)
        rest = "\n".join([lines[place.line - 1][place.column - 1 :], *lines[place.line :]])
        found, _ = json.JSONDecoder().raw_decode(rest)
        wanted = value
        for key in way:
            wanted = wanted[key]
        assert found == wanted


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        told = parse_json(text, "a.json").path
    except InvalidInput as error:
        told = str(error)
    assert told.startswith("a.json")
