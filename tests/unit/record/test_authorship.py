"""Events in the agent's name that are not the agent's are noticed, whatever a program writes and wherever."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.record.launch import Authorship

REAL: list[dict[str, Any]] = [
    {"event": kind, "n": n}
    for n, kind in enumerate(["stream", "start", "sample", "message", "metric", "extraction", "end"])
]
PROBE = {"event": "steps", "process": 7}


def problem(events: list[dict[str, Any]], unreadable: int = 0) -> str | None:
    looked = Authorship()
    for event in events:
        looked.look(event)
    return looked.problem(unreadable)


def test_the_agent_s_own_events_are_fine_among_those_of_programs() -> None:
    mixed = [
        event for real in REAL for event in (real, PROBE, {"event": "message", "process": 7}, {"event": "unreadable"})
    ]
    assert problem(mixed) is None


def test_a_stream_without_any_number_is_not_judged() -> None:
    assert problem([{k: v for k, v in event.items() if k != "n"} for event in REAL]) is None


FORGED = st.fixed_dictionaries(
    {"event": st.sampled_from(["stream", "start", "sample", "metric", "reported", "extraction", "end", "message"])},
    optional={"n": st.one_of(st.integers(-2, 12), st.booleans(), st.floats(0, 9), st.none(), st.text(max_size=1))},
)


@given(FORGED, st.integers(0, len(REAL)))
def test_a_forged_event_is_noticed_wherever_it_stands(forged: dict[str, Any], place: int) -> None:
    said = problem([*REAL[:place], forged, *REAL[place:]])
    assert said is not None
    assert "claim to be the agent's" in said or "missing" in said


@given(st.sets(st.integers(0, len(REAL) - 2), min_size=1))
def test_events_that_were_cut_out_are_missed(gone: set[int]) -> None:
    left = [event for n, event in enumerate(REAL) if n not in gone]
    said = problem(left)
    assert said is not None
    assert f"{len(gone)} event" in said
    assert problem(left, unreadable=len(gone)) is None  # a torn line explains it


@pytest.mark.parametrize("event", [{}, {"event": None}, {"event": ["end"]}, {"event": "unknown", "n": 3}])
def test_what_is_no_event_of_the_agent_is_none_of_its_business(event: dict[str, Any]) -> None:
    assert problem([*REAL, event] if event.get("event") != ["end"] else REAL) is None
