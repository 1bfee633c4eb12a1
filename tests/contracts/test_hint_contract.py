"""What all hints must do with any words."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugin_package import variants

from benchwright.options.hints import HINTS, Hints

anything = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
REFUSED = {
    "milabench": ("slurm-system", "--runs"),
    "fai-pep": ("harness", "--set-freq"),
    "mlagility": (None, "--iterations"),
    "timeit": ("timeit", "--number"),
}


@pytest.fixture(params=variants(HINTS))
def name(request: pytest.FixtureRequest, plugins: None) -> str:
    found: str = request.param
    return found


@pytest.fixture
def hints(name: str) -> Hints:
    return HINTS.load(name)()


def is_hint(text: str | None) -> bool:
    return text is None or (text != "" and text == text.strip() and "\n" not in text and not text.endswith("."))


def test_there_is_a_hint_for_what_the_tool_has(name: str, hints: Hints) -> None:
    command, option = REFUSED[name]
    assert command is None or hints.instead_of_command([command, "--verbose"])
    assert hints.instead_of_option(option)


def test_there_is_none_for_what_it_has_not(hints: Hints) -> None:
    assert hints.instead_of_command(["qqqqqq"]) is None
    assert hints.instead_of_option("--qqqqqq") is None


@anything
@given(words=st.lists(st.text(max_size=12), min_size=1, max_size=3), option=st.text(max_size=12))
def test_any_words_may_be_asked_about(hints: Hints, words: list[str], option: str) -> None:
    assert is_hint(hints.instead_of_command(words))
    assert is_hint(hints.instead_of_option(option))
