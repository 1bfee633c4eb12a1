"""Placeholders of specifications."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.core.errors import InvalidInput
from benchwright.kinds.spec.placeholders import Filler

AWK = "awk '(NR>{INDEX}*{n})&&(NR<={INDEX}*{n}+{n}) {print > \"{HOSTDIR}/l_{INDEX}.txt\"}' {HOSTDIR}/labels.txt"


def test_the_line_of_a_real_specification() -> None:
    filler = Filler({"n": "{total}/{repeat}", "total": "100", "repeat": "10"}, {"HOSTDIR": "/h", "INDEX": "3"})
    assert filler.command(AWK) == (
        "awk",
        '(NR>3*100/10)&&(NR<=3*100/10+100/10) {print > "/h/l_3.txt"}',
        "/h/labels.txt",
    )


def test_the_test_comes_before_programs_and_those_before_the_map() -> None:
    filler = Filler({"a": "test"}, {"a": "/program", "b": "/program"}, ({"a": "map", "b": "map", "c": "map"},))
    assert filler.text("{a} {b} {c}") == "test /program map"


def test_unknown_braces_stay_and_are_told() -> None:
    filler = Filler({"a": "1"}, {})
    line = "{a} {print} {nothing.x} {} { a } {a"
    assert filler.text(line) == "1 {print} {nothing.x} {} { a } {a"
    assert filler.unknown(line) == ["print", "nothing.x"]


def test_placeholders_that_refer_to_each_other_are_refused() -> None:
    for values in ({"a": "{b}", "b": "{a}"}, {"a": "x{a}"}):
        with pytest.raises(InvalidInput, match=r"refer to each other: \{a\} → "):
            Filler(values, {}).text("{a}")


def test_depth_and_length_are_limited() -> None:
    deep = {f"a{n}": f"{{a{n + 1}}}" for n in range(40)} | {"a40": "x"}
    with pytest.raises(InvalidInput, match="nested too deep"):
        Filler(deep, {}).text("{a0}")
    bomb = {f"a{n}": f"{{a{n + 1}}}" * 10 for n in range(12)} | {"a12": "boom"}
    with pytest.raises(InvalidInput, match="grows without end"):
        Filler(bomb, {}).text("{a0}")
    paths = {f"a{n}": f"{{a{n + 1}}}" * 10 for n in range(8)}
    with pytest.raises(InvalidInput, match="grows without end"):
        Filler(paths, {"a8": "/p"}).text("{a0}")


def test_texts_may_be_several_words_and_paths_are_one() -> None:
    filler = Filler({"args": "--a 1 --b 'x y'"}, {"program": "/a b/$p'\"q", "TGTDIR": "/t {program}"})
    assert filler.command("{program} {args} --out='{TGTDIR}'/x") == (
        "/a b/$p'\"q",
        "--a",
        "1",
        "--b",
        "x y",
        "--out=/t {program}/x",
    )


@pytest.mark.parametrize("line", ["{p} | cat", "{p} && true", "{p} > x", "X=1 {p}", "{p} *"])
def test_what_only_a_shell_understands_is_one_text(line: str) -> None:
    assert Filler({}, {"p": "/bin/p"}).command(line) == line.replace("{p}", "/bin/p")


@pytest.mark.parametrize("line", ["", "  ", "'' x", "{nothing", "'open", '"open', "end\\"])
def test_lines_that_are_no_commands(line: str) -> None:
    if line == "{nothing":
        assert Filler({}, {}).command(line) == ("{nothing",)
        return
    with pytest.raises(InvalidInput):
        Filler({}, {}).command(line)


_PATHS = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\n\r"), min_size=1, max_size=12
).filter(lambda path: not any(0xF0000 <= ord(c) <= 0xFFFFD for c in path))


@given(_PATHS, st.sampled_from(["{p}", "'{p}'", '"{p}"', "a{p}b", "'x {p}' y", "{p}{p}"]))
def test_a_path_is_one_word_whatever_it_holds(path: str, form: str) -> None:
    words = Filler({}, {"p": path}).command(f"cmd {form}")
    wanted = [word.replace("@", path) for word in shlex.split("cmd " + form.replace("{p}", "@"))]
    assert list(words) == wanted


@settings(max_examples=25)
@given(_PATHS, st.sampled_from(["{p}", "'{p}'", '"{p}"', "a{p}b", '"a {p}"']))
def test_a_path_means_itself_to_a_shell_too(path: str, form: str) -> None:
    line = Filler({}, {"p": path}).command(f"printf %s {form} | cat")
    assert isinstance(line, str)
    told = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True).stdout.decode()
    assert told == form.strip("'\"").replace("{p}", path)


@given(st.text(max_size=40), st.dictionaries(st.sampled_from("abc"), st.text("ab{}c ", max_size=6)))
def test_any_line_is_filled_or_refused(line: str, values: dict[str, str]) -> None:
    filler = Filler(values, {"p": "/p"})
    try:
        filled = filler.text(line)
    except InvalidInput:
        return
    if not any(f"{{{name}}}" in line for name in (*values, "p")):
        assert filled == line
