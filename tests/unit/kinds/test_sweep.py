"""Sweeps of parameters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.errors import InvalidInput
from benchwright.kinds.sweep import idle_parameters, named_point, script_arguments, sweep_points

NAMES = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
VALUES = st.lists(st.from_regex(r"[a-z0-9.]{1,4}", fullmatch=True), min_size=1, max_size=4, unique=True)


def test_nothing_swept_is_one_point() -> None:
    assert sweep_points([]) == [{}]


def test_a_grid_is_every_combination_in_order() -> None:
    points = sweep_points(["batch_size=1,8", "height=224,384"])
    assert [(p["batch_size"], p["height"]) for p in points] == [("1", "224"), ("1", "384"), ("8", "224"), ("8", "384")]


def test_zip_goes_side_by_side_and_a_single_value_holds_for_all() -> None:
    points = sweep_points(["batch_size=1,8", "height=224,384", "k=2"], "zip")
    assert [tuple(p.values()) for p in points] == [("1", "224", "2"), ("8", "384", "2")]


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3))
def test_every_point_of_a_grid_is_there_once(values: dict[str, list[str]]) -> None:
    points = sweep_points([f"{name}={','.join(each)}" for name, each in values.items()])
    count = 1
    for each in values.values():
        count *= len(each)
    assert len({tuple(sorted(p.items())) for p in points}) == len(points) == count
    assert all(p[name] in values[name] for p in points for name in values)


def test_a_parameter_that_never_changes_anything_is_idle() -> None:
    points = sweep_points(["batch=1,8", "bach=1,2"])
    found = [(point, point["batch"]) for point in points]
    assert idle_parameters(found) == ["bach"]
    assert idle_parameters([(point, str(point)) for point in points]) == []
    assert idle_parameters([({"batch": "1"}, "a")]) == []
    side_by_side = sweep_points(["batch=1,8", "bach=1,2"], "zip")
    assert idle_parameters([(point, point["batch"]) for point in side_by_side]) == []


def test_a_point_becomes_words_and_a_name() -> None:
    point = {"batch_size": "8", "k": "2"}
    assert script_arguments(point) == ("--batch_size", "8", "--k", "2")
    assert named_point(point) == "[batch_size=8,k=2]"
    assert named_point({}) == ""


@pytest.mark.parametrize("text", ["batch_size", "=1", "a=", "a=1,,2", "a b=1", "a=1,1"])
def test_what_sweeps_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--param"):
        sweep_points([text])


def test_a_name_twice_too_many_points_and_unequal_lengths_are_refused() -> None:
    with pytest.raises(InvalidInput, match="twice"):
        sweep_points(["a=1", "a=2"])
    many = ",".join(map(str, range(40)))
    with pytest.raises(InvalidInput, match="1600 combinations"):
        sweep_points([f"a={many}", f"b={many}"])
    with pytest.raises(InvalidInput, match="'a' has 2 values where another has 3"):
        sweep_points(["a=1,2", "b=1,2,3"], "zip")
