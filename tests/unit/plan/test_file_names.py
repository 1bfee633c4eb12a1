"""File names of jobs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchwright.plan.file_names import safe_name, stem


def test_parts_stand_in_the_documented_order() -> None:
    assert stem("train.py", launch=3, device=1) == "train.py.R3.D1"
    assert stem("train.py", launch=0, warmup=True, job=2) == "train.py.W0.2"
    assert stem("bench") == "bench"


@given(st.text(max_size=300))
def test_any_name_becomes_one_safe_path_component(name: str) -> None:
    safe = safe_name(name)
    assert safe
    assert safe not in (".", "..")
    assert "/" not in safe
    assert "\0" not in safe
    assert not safe.startswith((".", "-"))
    assert len(safe) <= 125


@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=60))
def test_different_names_never_share_a_file(first: str, second: str) -> None:
    assert (safe_name(first) == safe_name(second)) == (first == second)
