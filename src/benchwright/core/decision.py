"""A Decision: when launches of two sides that alternate are enough for a verdict, and how sure it must be."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

MOST_BLOCKS = 10_000


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rule of an A/B, kept with its run, so that a run that is read back gets the verdict it was stopped for.

    alpha        chance of a false verdict for the whole table of an A/B, however often it was looked at
    margin       the smallest difference that matters, as a fraction; "same" is known to be within it
    budget_s     measured seconds of all launches; None: no limit
    most_blocks  pairs of launches of each benchmark; disturbed ones do not count and are replaced
    looks        after how many pairs to look; empty: as `look_schedule` says
    metrics      only these decide; empty: what the benchmark is about, and beside that CPU time, memory and errors
    """

    alpha: Annotated[float, Meta(gt=0, lt=0.5)] = 0.01
    margin: Annotated[float, Meta(ge=0, lt=1)] = 0.01
    budget_s: Annotated[float, Meta(gt=0)] | None = None
    most_blocks: Annotated[int, Meta(ge=6, le=MOST_BLOCKS)] = 40
    looks: tuple[Annotated[int, Meta(ge=1, le=2 * MOST_BLOCKS)], ...] = ()
    metrics: tuple[str, ...] = ()

    @property
    def most_launched(self) -> int:
        """Blocks to plan, with replacements of disturbed ones: with a budget as many as it lasts for, within reason."""
        return self.most_blocks + (self.most_blocks // 2 if self.budget_s is None else 2 * self.most_blocks)
