"""What all spellings must do with any option."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugin_package import variants

from benchwright.cli.main import COMMANDS
from benchwright.cli.run import command as run
from benchwright.cli.spellings import in_our_words
from benchwright.options.spellings import SPELLINGS, Spellings

anything = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SPELT = {
    "fai-pep": ("--string_map", ("--string-map",)),
    "mlagility": ("--backend", ("--runtime",)),
    "driver": ("--task-name", ("--task",)),
    "timeit": ("--wall", ()),
}


@pytest.fixture(params=variants(SPELLINGS))
def name(request: pytest.FixtureRequest, plugins: None) -> str:
    found: str = request.param
    return found


@pytest.fixture
def spellings(name: str) -> Spellings:
    return SPELLINGS.load(name)()


def test_an_option_of_the_tool_is_spelt_as_here(name: str, spellings: Spellings) -> None:
    flag, words = SPELT[name]
    assert spellings.spelt("run", flag) == words
    assert in_our_words("run", run, [flag, "x", "--", flag]) == [*words, "x", "--", flag]


def test_what_the_tool_has_not_is_left_alone(spellings: Spellings) -> None:
    assert spellings.spelt("run", "--qqqqqq") is None


@anything
@given(command=st.sampled_from(sorted(COMMANDS)), flag=st.text(max_size=12))
def test_any_option_may_be_asked_about(spellings: Spellings, command: str, flag: str) -> None:
    found = spellings.spelt(command, flag)
    assert found is None or all(word.startswith("-") for word in found)
