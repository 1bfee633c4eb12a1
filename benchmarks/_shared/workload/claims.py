"""What a benchmark claims about itself, and whether it is so: parameters, arithmetic, a loss that falls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what measures a disk needs no torch
    import torch

WITHIN = 0.02


@dataclass
class Claim:
    """One statement with the figure that was found."""

    what: str
    claimed: float
    found: float
    within: float = WITHIN

    @property
    def holds(self) -> bool:
        return abs(self.found - self.claimed) <= self.within * abs(self.claimed)

    def __str__(self) -> str:
        mark = "ok  " if self.holds else "WRONG"
        return f"{mark} {self.what}: claimed {self.claimed:,.6g}, found {self.found:,.6g}"


def parameter_count(model: torch.nn.Module) -> int:
    """Each counted once, however often it is used."""
    return sum(p.numel() for p in {id(p): p for p in model.parameters()}.values())


def counted_flops(work: Callable[[], Any]) -> int:
    """The arithmetic of `work` as torch counts it: matrix products, convolutions and attention, two for each multiply-add.

    Where torch's count is wrong, `flop_formulas` corrects it.
    """
    from torch.utils.flop_counter import FlopCounterMode

    from workload.flop_formulas import formulas

    with FlopCounterMode(display=False, custom_mapping=formulas()) as counter:
        work()
    return int(counter.get_total_flops())


def check_falls(losses: Sequence[float], what: str = "loss") -> Claim:
    """The loss at the end against that at the beginning: it must be clearly lower, and a number."""
    few = max(1, len(losses) // 5)
    first, last = sum(losses[:few]) / few, sum(losses[-few:]) / few
    ok = last == last and last < 0.97 * first
    claim = Claim(
        f"{what} falls over {len(losses)} steps, from {first:.4g} to", last if ok else 0.97 * first, last, 0.0
    )
    return claim


def conclude(claims: Sequence[Claim]) -> int:
    """Prints every claim; the exit code of the program."""
    for claim in claims:
        sys.stdout.write(f"{claim}\n")
    return 0 if all(claim.holds for claim in claims) else 1
