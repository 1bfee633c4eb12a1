"""run.json, as other programs read it."""

from __future__ import annotations

import json
import math
from typing import NoReturn

import builders
from builders import measurement
from msgspec.structs import replace

from benchwright.analysis.summary import summarize
from benchwright.core.run import Launch, Run
from benchwright.report.run_json import run_body


def launch(job: str, value: float = 1.0, **place: int) -> Launch:
    return builders.launch(measurement(value, metric="m", unit=None), job=job, **place)


def run_of(**launches: tuple[Launch, ...]) -> Run:
    return builders.run(*(builders.result(name, *of_it) for name, of_it in launches.items()))


def test_a_number_that_is_not_finite_is_null_so_that_every_reader_of_json_can_read_it() -> None:
    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} is not JSON")

    odd = replace(launch("a.R0", math.nan), facts={"loops": [{"rate": -math.inf}]})
    run = run_of(a=(odd, launch("a.R1", math.inf)))
    text = json.dumps(run_body(run, {"a": summarize(run.results[0].counted)}))
    result = json.loads(text, parse_constant=refuse)["results"][0]
    (summary,) = result["metrics"]
    assert result["launches"][0]["facts"] == {"loops": [{"rate": None}]}
    assert (summary["value"], summary["values"]) == (None, [None, None])


def test_the_jobs_of_a_pair_stand_in_the_order_they_ran() -> None:
    first = (launch("a.R0", block=0, position=0), launch("a.R1", block=1, position=3))
    second = (launch("b.R0", block=0, position=1), launch("b.R1", block=1, position=2))
    pairs = run_body(run_of(a=first, b=second), {})["pairs"]
    assert pairs == [{"block": 0, "jobs": ["a.R0", "b.R0"]}, {"block": 1, "jobs": ["b.R1", "a.R1"]}]
