"""YAML values are those of PyYAML, and every one knows its place."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.errors import InvalidInput
from benchwright.kinds.yaml.merge import DELETE
from benchwright.kinds.yaml.values import YamlFile, parse_yaml, read_yaml

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(string.printable, max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(string.ascii_letters, max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


def parse(text: str) -> YamlFile:
    return parse_yaml(text, "f.yaml", extras=True)


@given(values, st.booleans())
def test_values_are_those_of_pyyaml(value: Any, flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    assert parse(text).value == yaml.safe_load(text)


@pytest.mark.parametrize(
    "text",
    ["6e-4", "6.0e-4", "1_000", "0x1F", "017", "0o17", "1:30", "yes", "Off", "~", "null", ".5", "-.inf", "0b101", "+3", "''", "12e03", "a: 1\na: 2",
     "x: &b {c: 1}\ny: {<<: *b, d: 2}\nz: {<<: [*b, {c: 5, e: 6}], c: 9}", "- &a [1]\n- *a", "{a: , b}", "!!str 5", "!!float 3", "? a\n: b"],
)  # fmt: skip
def test_scalars_and_merges_are_those_of_yaml_1_1(text: str) -> None:
    assert parse(text).value == yaml.safe_load(text)


def test_a_date_stays_as_it_is_written() -> None:
    assert parse("[2001-12-14, 2001-12-14t21:59:43.10-05:00]").value == ["2001-12-14", "2001-12-14t21:59:43.10-05:00"]
    assert parse("=").value == "="  # which PyYAML refuses


@given(values)
def test_every_value_is_found_at_its_place(value: Any) -> None:
    """The text at the place of a scalar reads as that scalar."""
    text = yaml.safe_dump({"root": value}, allow_unicode=True)
    file = parse(text)
    lines = text.split("\n")
    for path, item in walk(file.value, ()):
        place = file.place(path)
        assert file.holds(path)
        assert 1 <= place.line <= len(lines)
        if isinstance(item, bool | int):
            shown = lines[place.line - 1][place.column - 1 :]
            assert yaml.safe_load(shown) == item


def walk(value: Any, path: tuple[Any, ...]) -> list[tuple[tuple[Any, ...], Any]]:
    found = [(path, value)]
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in children:
        found += walk(item, (*path, key))
    return found


def test_what_is_not_there_is_placed_at_what_is_around_it() -> None:
    file = parse("a:\n  b: 1\n")
    assert not file.holds(("a", "c"))
    assert str(file.error("no c", ("a", "c"), "add it")) == "f.yaml:1:1: no c; add it\n    a:\n    ^"
    assert str(file.error("bad key", ("a", "b"), key=True)).startswith("f.yaml:2:3: bad key")
    assert str(parse("").error("empty")).startswith("f.yaml:1:1: empty")


def test_the_last_of_two_keys_counts_and_is_where_errors_point() -> None:
    file = parse("a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert file.value == {"a": 3, "b": {"c": 2}}
    assert file.place(("a",)).line == 3
    assert [(r.line, r.path) for r in file.remarks] == [(2, ("b", "c")), (3, ("a",))]


def test_tags_are_refused_unless_they_are_asked_for() -> None:
    assert parse("a: !delete\n").value == {"a": DELETE}
    for text in ("a: !delete\n", "a: !expand-dot {b.c: 1}\n", "a: !!set {x}\n"):
        with pytest.raises(InvalidInput, match=r"f\.yaml:1:4: the tag .* has no meaning here"):
            parse_yaml(text, "f.yaml")


def test_columns_count_characters_and_all_line_breaks_of_yaml_count(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_bytes("\ufeffé: ü\r\nb: 'x\u2028y'\rc: [1,\n  é é: !x 3]\n".encode())
    with pytest.raises(InvalidInput) as raised:
        read_yaml(str(tmp_path / "f.yaml"), kind="file")
    assert str(raised.value).startswith(f"{tmp_path / 'f.yaml'}:5:8: the tag !x")
    assert raised.value.text == "  é é: !x 3]"


def test_lines_that_are_too_long_are_not_shown() -> None:
    with pytest.raises(InvalidInput) as raised:
        parse("a: " + "x" * 400 + ": y")
    assert raised.value.text is None


def test_depth_that_only_aliases_make_is_refused() -> None:
    """Each line nests sixty deep; behind one another they would nest without end."""
    lines = [f"a0: &a0 {'[' * 60}{']' * 60}"]
    lines += [f"a{n}: &a{n} {'[' * 60}*a{n - 1}{']' * 60}" for n in range(1, 5)]
    with pytest.raises(InvalidInput, match="too much when they are written out"):
        parse("\n".join(lines))
