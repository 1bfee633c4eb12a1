"""Why a loop over a generator was left: by `break` or `return`, or by an exception in its body.

Python closes the generator in both cases and tells it nothing more. But it does so while it executes an instruction of
the loop's frame: the one that drops the iterator if the program left on purpose, the failing one otherwise.
"""

from __future__ import annotations

import dis
from types import FrameType
from typing import Optional

# FOR_ITER: another iterator that goes along with ours, in a zip, was exhausted.
_DROPS_THE_ITERATOR = frozenset({"POP_TOP", "POP_ITER", "END_FOR", "FOR_ITER"})
_IS_SUSPENDED = frozenset({"YIELD_VALUE", "RESUME", "YIELD_FROM", "SEND", "RETURN_GENERATOR"})


def left_on_purpose(frame: Optional[FrameType]) -> bool:
    """`frame` is the one below the generator that is being closed. False also when it cannot be told."""
    while frame is not None and frame.f_lasti >= 0:
        instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if instruction in _DROPS_THE_ITERATOR:
            return True
        if instruction not in _IS_SUSPENDED:
            return False
        frame = frame.f_back  # a generator around ours, such as a progress bar, is being closed itself
    return False
