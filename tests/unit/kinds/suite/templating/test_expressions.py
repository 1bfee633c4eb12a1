"""The language of conditions: what it computes, and that nothing gets out of it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.kinds.suite.templating.expressions import ExpressionError, evaluate

NAMES = {
    "gpu": {"count": 8, "capacity": 80 << 30, "name": "H200"},
    "nodes": [{"name": "a"}, {"name": "b"}],
    "arch": "cuda",
    "cpu_count": 64,
    "nothing": None,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("gpu['count'] > 1", True),
        ("gpu.count >= 9", False),
        ("len(nodes) >= 2", True),
        ("nodes[1]['name']", "b"),
        ("nodes[-1].name == 'b'", True),
        ("arch in ('cuda', 'rocm')", True),
        ("'cud' in arch and 'count' in gpu", True),
        ("arch not in ['cpu']", True),
        ("nothing is None", True),
        ("arch is not None", True),
        ("1 < gpu.count <= 8", True),
        ("cpu_count // 3 % 4 - 2 ** 3", 21 % 4 - 8),
        ("min(cpu_count, 16) if gpu.count else 1", 16),
        ("max([1, 2.5])", 2.5),
        ("round(2.567, 1)", 2.6),
        ("ceil(0.1) + floor(0.9) + abs(-2) + int('7') + float('0.5')", 10.5),
        ("arch + '-x'", "cuda-x"),
        ("not 0 or 5", True),
        ("0 or 5", 5),
        ("3 and nothing", None),
        ("  1+1 ", 2),
    ],
)
def test_it_computes_what_python_would(text: str, value: object) -> None:
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu['cuont'] > 1", "did you mean 'count'?"),
        ("gpus > 1", "did you mean 'gpu'?"),
        ("lenn(nodes)", "did you mean 'len'?"),
        ("__import__('os')", "'__import__' is not a function"),
        ("gpu.__class__", "no such key: '__class__'"),
        ("arch.upper()", "only the functions"),
        ("arch.upper", "only a map has keys"),
        ("(lambda: 1)()", "only the functions"),
        ("lambda: 1", "a function is not allowed"),
        ("[x for x in nodes]", "'ListComp' is not allowed"),
        ("{1: 2}", "a map is not allowed"),
        ("f'{arch}'", "an f-string is not allowed"),
        ("9 ** 9 ** 9", "too large"),
        ("2 ** 200 * 2 ** 200", "too large"),
        ("'a' * 100000000", "does not work on a text and a number"),
        ("'%9999999d' % 1", "does not work on a text and a number"),
        ("1 << 3", "this operator does not work"),
        ("1 / 0", "division"),
        ("(-8) ** 0.5", "negative"),
        ("1 < 'a'", "'<' not supported"),
        ("1 in 5", "'in' does not work"),
        ("nodes['a']", "cannot be indexed"),
        ("nodes[7]", "out of range"),
        ("nodes[0:1]", "slices"),
        ("min()", "expected at least 1 argument"),
        ("max('a', 1)", "not supported between"),
        ("round(1, 1000)", "up to 20 digits"),
        ("int(nothing)", "not 'NoneType'"),
        ("int('x')", "invalid literal"),
        ("len(3)", "has no len()"),
        ("min(*nodes)", "takes positional values only"),
        ("round(1.5, ndigits=1)", "takes positional values only"),
        ("gpu is gpu", "compares with None only"),
        ("-arch", "a sign needs a number, not a text"),
        ("1j", "is not allowed"),
        ("b'x'", "is not allowed"),
        ("1 +", "not an expression"),
        ("", "not an expression"),
        ("\0", "not an expression"),
        ("1" * 2000, "longer than"),
        ("(" * 300 + ")" * 300, "not an expression"),
        ("+".join(["1"] * 400), "nested deeper"),
    ],
)
def test_what_it_refuses_is_said(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, NAMES)
    assert said in str(caught.value)


def test_an_error_points_into_the_expression() -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate("'é' != arch and gpus > 1", NAMES)
    assert caught.value.column == 17
    assert caught.value.text == "'é' != arch and gpus > 1"


def test_functions_of_the_caller_are_called_with_values() -> None:
    assert evaluate("auto(n, 2 + 1)", {"n": 8}, {"auto": lambda x, default: [x, default]}) == [8, 3]


numbers = st.integers(-50, 50).map(str) | st.sampled_from(["0.5", "2.25", "a", "b"])


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, st.sampled_from("+ - * / // % < <= > >= == != and or".split()), inner)
    return (
        pairs.map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        | inner.map(lambda x: f"(-{x})")
        | inner.map(lambda x: f"(not {x})")
        | st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})")
        | st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})")
        | inner.map(lambda x: f"abs({x})")
        | st.tuples(inner, inner).map(lambda t: f"({t[0]} in [{t[1]}, 3])")
    )


@given(st.recursive(numbers, _combined, max_leaves=12), st.integers(-9, 9), st.floats(-9, 9, allow_nan=False))
def test_it_agrees_with_python_on_numbers(text: str, a: int, b: float) -> None:
    names = {"a": a, "b": b}
    try:
        expected = eval(text, {"__builtins__": {"max": max, "abs": abs}}, names)
    except ZeroDivisionError:
        with pytest.raises(ExpressionError):
            evaluate(text, names)
        return
    assert evaluate(text, names) == expected


anything = st.text(max_size=60) | st.text(
    alphabet="()[]{}'\".,:=+-*/%<>!&|~@ \\\n0123456789abxyz_egpunorintlm", max_size=80
)


@given(anything)
def test_any_text_is_computed_or_refused(text: str) -> None:
    with suppress(ExpressionError):
        assert repr(evaluate(text, NAMES)) == repr(evaluate(text, NAMES))
