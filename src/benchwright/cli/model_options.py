"""Options about models, for the commands that find or measure them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from benchwright.core.model import DEFAULT_RUNTIME, PRECISIONS

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
Option = Callable[..., Callable[[AnyFunction], AnyFunction]]

SECTION = "Models"


def _runtimes_help() -> str:
    from benchmodels.runtimes.registry import known_runtimes

    return f"{', '.join(known_runtimes())}.  [default: {DEFAULT_RUNTIME}]"


def finding_options(option: Option[Any]) -> list[Callable[[Any], Any]]:
    """Those that say which models there are; `option` makes one, under a heading if it likes."""
    return [
        option(
            "--param",
            "params",
            multiple=True,
            metavar="NAME=V,V",
            help="Run the script with each of these values of --NAME. Repeatable: all combinations.",
        ),
        option(
            "--sweep",
            type=click.Choice(["grid", "zip"]),
            default="grid",
            help="Several --param: all combinations, or side by side.  [default: grid]",
        ),
        option(
            "--max-depth",
            type=click.IntRange(0),
            default=0,
            metavar="N",
            help="Sub-modules down to here are models too.",
        ),
        option(
            "--search-dir",
            "search_dirs",
            multiple=True,
            metavar="DIR",
            help="Where scripts that are named lie. Repeatable.",
        ),
        option("--all", "all_scripts", is_flag=True, help="Every script of the --search-dir."),
        option("--weights", is_flag=True, help="Values of weights are part of a model's identity."),
    ]


def measuring_options(option: Option[Any]) -> list[Callable[[Any], Any]]:
    """Those that say on what they are measured."""
    return [
        option(
            "--runtime",
            "--backend",
            "runtimes",
            multiple=True,
            metavar="NAME,NAME",
            late_help=_runtimes_help,
        ),
        option("--device", "devices", multiple=True, metavar="NAME,NAME", help="cpu, cuda or cuda:1.  [default: cpu]"),
        option(
            "--precision",
            "precisions",
            multiple=True,
            metavar="NAME,NAME",
            help=f"{', '.join(PRECISIONS)}.  [default: fp32]",
        ),
        option("--threads", type=click.IntRange(1), metavar="N", help="Of a runtime.  [default: one for each core]"),
        option(
            "--streams",
            type=click.IntRange(1, 256),
            metavar="N",
            default=1,
            help="Measure also the throughput of so many callers at once.",
        ),
        option(
            "--items",
            type=click.IntRange(1),
            metavar="N",
            help="Items in one call, for items/s.  [default: the batch, where it is known; else calls/s]",
        ),
        option("--profile", is_flag=True, help="Tell the delay of each operator too, in a launch of its own."),
        option(
            "--shape",
            "shapes",
            multiple=True,
            metavar="INPUT=1x3x224x224",
            help="The shape of a model file's input. Repeatable.",
        ),
        option(
            "--trust", is_flag=True, help="Load model files that can run code of their own, such as pickles in a .pt2."
        ),
        option(
            "--rebuild",
            type=click.Choice(["if_needed", "always", "never"]),
            default="if_needed",
            help="Whether exported and compiled models are used again.  [default: if_needed]",
        ),
        option(
            "--build-timeout", metavar="TIME", default="10m", help="Limit for each step of a build.  [default: 10m]"
        ),
    ]
