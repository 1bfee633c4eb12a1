"""Options of `report` about the score of a suite."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from benchwright.core.request import SuiteRequest

if TYPE_CHECKING:
    from benchwright.app.scoring import Scoring

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

_OPTIONS = [
    click.option(
        "--score",
        type=click.Choice(["ours", "milabench"]),
        help="How suites are scored: medians after warm-up without what failed, or milabench's own figures.  [default: ours]",
    ),
    click.option(
        "--config", metavar="SUITE", help="Take the weights from that suite; what it has and the run lacks is missing."
    ),
    click.option("--price", type=click.FloatRange(min=0, min_open=True), help="Of the machine: shown for each point."),
    click.option(
        "--per-device",
        "--compare-gpus",
        "--compare_gpus",
        "per_device",
        is_flag=True,
        help="What each device does, against the best.",
    ),
    click.option("--compare", metavar="RUN", help="The scores of that run beside these, as ratios."),
]


def scoring_options(function: AnyFunction) -> AnyFunction:
    """`--score`, `--config`, `--price`, `--per-device` and `--compare`."""
    for add in reversed(_OPTIONS):
        function = add(function)
    return function


def scoring_of(values: dict[str, Any], results: Any, base: str | None) -> Scoring:
    """What the options ask for; `results` finds the run to compare with."""
    from benchwright.app.scoring import Scoring

    return Scoring(
        rule=values["score"],
        weights=None if values["config"] is None else _weights(values["config"], base),
        price=values["price"],
        per_device=values["per_device"],
        against=None if values["compare"] is None else results.run(values["compare"]),
    )


def _weights(suite: str, base: str | None) -> dict[str, float]:
    from benchwright.app.scoring import weights_of
    from benchwright.kinds.suite.suites import every_benchmark
    from benchwright.runs.base_folder import BaseFolder

    folder = BaseFolder.choose(base, os.environ)
    return weights_of(every_benchmark(suite, SuiteRequest(base=str(folder.path))))
