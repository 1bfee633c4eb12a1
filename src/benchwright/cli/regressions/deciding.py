"""When two sides have been measured enough: `--budget`, `--min-effect`, `--alpha` and `--repeat` of A/Bs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from benchwright.core.decision import Decision

F = TypeVar("F", bound=Callable[..., Any])
DECIDING = ("budget", "min_effect", "alpha", "repeat")


def decision_options(function: F) -> F:
    """The command gets the values that DECIDING names."""
    for option in (
        click.option(
            "--repeat",
            metavar="N",
            type=click.IntRange(6),
            help="Exactly N launches a side.  [default: until it is clear]",
        ),
        click.option(
            "--alpha",
            metavar="PERCENT",
            default="1%",
            show_default=True,
            help="Chance of a false verdict in the whole table.",
        ),
        click.option(
            "--min-effect",
            metavar="PERCENT",
            default="1%",
            show_default=True,
            help="Smallest change that matters; less counts as the same.",
        ),
        click.option(
            "--budget", metavar="TIME", default="10m", show_default=True, help="Measure for at most this long."
        ),
    ):
        function = option(function)
    return function


def decision_of(values: dict[str, Any]) -> Decision:
    """Takes them out of `values`."""
    from benchwright.core.decision import Decision
    from benchwright.core.numbers.quantities import parse_duration, parse_percentage

    budget, min_effect, alpha, repeat = (values.pop(name) for name in DECIDING)
    margin = parse_percentage(min_effect, where="--min-effect")
    chance = parse_percentage(alpha, where="--alpha")
    if repeat is not None:
        return Decision(alpha=chance, margin=margin, most_blocks=repeat, looks=(repeat,))
    return Decision(alpha=chance, margin=margin, budget_s=parse_duration(budget, where="--budget"))
