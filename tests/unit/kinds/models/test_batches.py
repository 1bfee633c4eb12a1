"""Items of a call that the user or a parameter of the script tells."""

from __future__ import annotations

from typing import Any

import pytest

from benchwright.core.benchmark import Benchmark
from benchwright.core.model import FoundInput, FoundModel, ModelScript, ScriptDiscovery
from benchwright.kinds.models.batches import with_batches_known


def script(name: str = "a.py", **parameters: str) -> Benchmark:
    workload = ModelScript(path="/a.py", args=(), cwd="/", python="py")
    return Benchmark(name=name, workload=workload, source="a.py", parameters=parameters)


def found(*shapes: tuple[int, ...], **fields: Any) -> ScriptDiscovery:
    inputs = tuple(FoundInput(name=f"x{i}", shape=shape, dtype="float32") for i, shape in enumerate(shapes))
    return ScriptDiscovery(script="a.py", models=(FoundModel(identity="ab", class_="Net", inputs=inputs),), **fields)


def known(*pairs: tuple[Benchmark, ScriptDiscovery], items: int | None = None) -> list[tuple[int | None, str | None]]:
    made = with_batches_known([b for b, _ in pairs], {b.name: d for b, d in pairs}, items)
    return [(model.items, model.items_from) for b, _ in pairs for model in made[b.name].models]


def test_what_the_user_says_comes_first() -> None:
    assert known((script(batch_size="4"), found((4, 10))), items=7) == [(7, "--items")]


def test_a_swept_batch_size_tells_the_items_at_each_point() -> None:
    points = [(script(f"a[{n}]", batch_size=str(n)), found((n, 10), (64, n, 3))) for n in (1, 8)]
    assert known(*points) == [(1, "parameter batch_size=1"), (8, "parameter batch_size=8")]


def test_time_first_is_no_matter() -> None:
    assert known((script("a", bs="2"), found((64, 2, 5))), (script("b", bs="4"), found((64, 4, 5)))) == [
        (2, "parameter bs=2"),
        (4, "parameter bs=4"),
    ]


@pytest.mark.parametrize(
    "points",
    [
        [(3, (3, 224, 224)), (8, (3, 224, 224))],  # the script does not read it
        [(3, (3, 8)), (8, (3, 8))],  # by chance it is there each time, in another place
        [(4, (10,))],
        [(0, (0, 10))],
    ],
)
def test_a_parameter_that_no_dimension_follows_tells_nothing(points: list[tuple[int, tuple[int, ...]]]) -> None:
    pairs = [(script(f"a[{n}]", batch_size=str(n)), found(shape)) for n, shape in points]
    assert known(*pairs) == [(None, None)] * len(points)


def test_other_parameters_tell_nothing() -> None:
    assert known((script(width="10"), found((10, 4)))) == [(None, None)]
    assert known((script(batch_size="many"), found((10, 4)))) == [(None, None)]


def test_what_the_script_got_counts_before_what_it_was_given() -> None:
    asked = found((4, 10), parameters={"batch_size": 4, "height": 224})
    assert known((script(), asked)) == [(4, "parameter batch_size=4")]
    assert known((script(batch_size="2"), asked)) == [(4, "parameter batch_size=4")]


def test_a_point_at_which_the_script_failed_is_no_evidence_against_the_others() -> None:
    failed = ScriptDiscovery(script="a.py", models=(), trouble="out of memory")
    pairs = [(script("a[2]", batch_size="2"), found((2, 10))), (script("a[999]", batch_size="999"), failed)]
    assert known(*pairs) == [(2, "parameter batch_size=2")]


def test_what_a_library_says_stays_where_no_parameter_tells() -> None:
    model = FoundModel(identity="ab", class_="Net", items=5, items_from="dimension 0 of input_ids")
    assert known((script(), ScriptDiscovery(script="a.py", models=(model,)))) == [(5, "dimension 0 of input_ids")]
