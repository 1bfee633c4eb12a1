"""Filling the words of a suite."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.kinds.suite.templating.placeholders import Context, PlaceholderError, fill

CONTEXT = Context(
    {
        "n_worker": 8,
        "cpu_count": 64,
        "half": 0.5,
        "odd": 'it\'s {n_worker} \\ "x"',
        "listed": [1, 2.0],
        "system": {"arch": "cuda", "gpu": {"count": 2}},
    },
    {"auto": lambda x, default: default, "auto_batch": lambda default: default * 2, "expr": lambda x: x},
)


@pytest.mark.parametrize(
    ("word", "filled"),
    [
        ("--lr", "--lr"),
        ("{n_worker}", "8"),
        ("a={n_worker}:b={cpu_count}", "a=8:b=64"),
        ("{half}", "0.5"),
        ("{listed}", "1,2"),
        ("{system.gpu.count}", "2"),
        ("${system.arch}-nightly", "cuda-nightly"),
        ("{odd}", 'it\'s {n_worker} \\ "x"'),
        ("{{n_worker}}", "{n_worker}"),
        ("{{{n_worker}}}", "{8}"),
        ("${{HOME}}", "${HOME}"),
        ('{"image":10}', '{"image":10}'),
        ('{{"image":10}}', '{"image":10}'),
        ('{"a":{"b":{n_worker}}}', '{"a":{"b":8}}'),
        ('{"a":{{n_worker}}}', '{"a":{n_worker}}'),
        ("{}", "{}"),
        ("}{", "}{"),
        ("{0}", "{0}"),
        ("{n_worker:2}", "{n_worker:2}"),
        ("auto({n_worker}, 12)", "12"),
        ("auto(n_worker, 12)", "12"),
        ("auto_batch(8)", "16"),
        ("batch_size=auto_batch(8)", "batch_size=16"),
        ("train.a=auto_batch(8),b=auto_batch(1)", "train.a=16,b=2"),
        ("expr({cpu_count} / 4)", "16"),
        ("expr({cpu_count} / 3 > 20)", "True"),
        ("expr('{odd}')", 'it\'s {n_worker} \\ "x"'),
        ('expr("{odd}" + "(")', 'it\'s {n_worker} \\ "x"('),
        ("expr({odd})", 'it\'s {n_worker} \\ "x"'),
        ("expr({system.arch})", "cuda"),
        ("expr('{{n_worker}}')", "{n_worker}"),
        ("auto", "auto"),  # milabench gives the script the name of a function here: --device of its retired ppo
        ("model.auto(3)", "model.auto(3)"),
        ("my_expr(3)", "my_expr(3)"),
        ("f(x)", "f(x)"),
    ],
)
def test_words_are_filled(word: str, filled: str) -> None:
    assert fill(word, CONTEXT) == filled


@pytest.mark.parametrize(
    ("word", "column", "said"),
    [
        ("x={n_workers}", 3, "{n_workers} is not a placeholder; did you mean '{n_worker}'?"),
        ("{system.arhc}", 1, "did you mean '{system.arch}'?"),
        ("{zzz}", 1, "known: {cpu_count}"),
        ("{half.x}", 1, "write {{half.x}}"),
        ("{system}", 1, "name a part: {system.arch}, {system.gpu}"),
        ("${HOME}", 1, "${{HOME}} for the text itself"),
        ("b=auto_batch(8", 3, "'auto_batch(' is not closed"),
        ("expr({zz})", 6, "{zz} is not a placeholder"),
        ("expr(cpu_cont)", 1, "did you mean 'cpu_count'?"),
        ("expr(1 +)", 1, "not an expression"),
    ],
)
def test_what_cannot_be_filled_is_pointed_at(word: str, column: int, said: str) -> None:
    with pytest.raises(PlaceholderError) as caught:
        fill(word, CONTEXT)
    assert said in str(caught.value)
    assert (caught.value.column, caught.value.text) == (column, word)


pieces = st.sampled_from(
    ["{n_worker}", "{{", "}}", "{", "}", "auto(", "expr(", ")", "'", '"', "\\", "$", "1", "a.b", ","]
)


@given(st.lists(pieces | st.text(max_size=3), max_size=12).map("".join))
def test_any_word_is_filled_or_refused(word: str) -> None:
    with suppress(PlaceholderError):
        assert isinstance(fill(word, CONTEXT), str)


@given(st.text(alphabet=st.characters(exclude_characters="{}")).filter(lambda w: "auto" not in w and "expr" not in w))
def test_a_word_without_placeholders_stays_as_it_is(word: str) -> None:
    assert fill(word, CONTEXT) == word


@given(st.text())
def test_a_value_is_never_read_as_code_or_placeholder(value: str) -> None:
    context = Context({"v": value}, {"expr": lambda x: x})
    assert fill("<{v}>", context) == f"<{value}>"
    assert fill("expr({v})", context) == value
