"""When two sides have been measured enough, and by which metrics: the options of every command that makes A/Bs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from benchwright.core.decision import Decision
from benchwright.core.quantities import parse_duration, parse_percentage

F = TypeVar("F", bound=Callable[..., Any])


def decision_options(function: F) -> F:
    """The command gets what `decision_of` reads."""
    options = (
        click.option(
            "--budget", metavar="TIME", default="10m", show_default=True, help="Measure for at most this long."
        ),
        click.option(
            "--min-effect",
            metavar="PERCENT",
            default="1%",
            show_default=True,
            help="Smallest change that matters; less counts as the same.",
        ),
        click.option(
            "--alpha",
            metavar="PERCENT",
            default="1%",
            show_default=True,
            help="Chance of a false verdict in the whole table.",
        ),
        click.option(
            "--repeat",
            metavar="N",
            type=click.IntRange(6),
            help="N pairs of launches, and one look at the end.  [default: until it is clear]",
        ),
        click.option(
            "--metric",
            "metrics",
            multiple=True,
            metavar="NAME[=PATTERN]",
            help="Only this metric; with a PATTERN, read it from the output. Repeatable.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def decision_of(values: dict[str, Any]) -> Decision:
    """Takes them out of `values`, where only the metrics with a pattern stay."""
    budget, min_effect, alpha, repeat = (values.pop(name) for name in ("budget", "min_effect", "alpha", "repeat"))
    named = tuple(metric for metric in values["metrics"] if "=" not in metric)
    values["metrics"] = tuple(metric for metric in values["metrics"] if "=" in metric)
    rule = Decision(
        alpha=parse_percentage(alpha, where="--alpha"),
        margin=parse_percentage(min_effect, where="--min-effect"),
        metrics=named,
    )
    if repeat is not None:
        return replace(rule, most_blocks=repeat, looks=(repeat,))
    return replace(rule, budget_s=parse_duration(budget, where="--budget"))
