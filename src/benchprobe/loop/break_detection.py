"""Why a loop over a generator was left: by `break` or `return`, or by an exception in its body.

Reason: Python closes the generator in both cases and does not say why, but a step that was left on purpose counts, and one
that failed does not. Python closes it while it executes an instruction of the loop's frame: the one that drops the iterator
after `break` or `return`, the failing one otherwise. So this reads one byte of the caller's bytecode.

Limits: opcode names are CPython's and change between versions; tests run on 3.9 to 3.14. Any unknown instruction, or another
implementation of Python, means "cannot tell", and then the last step of the loop is not counted.

Switch: BENCHPROBE_BREAK_DETECTION=0 turns it off: the last step of a loop left by `break` is then never counted.
"""

from __future__ import annotations

import dis
import os
from types import FrameType
from typing import Optional

SWITCH = "BENCHPROBE_BREAK_DETECTION"
_IS_ON = os.environ.get(SWITCH, "1") != "0"
# FOR_ITER: another iterator that runs along with ours, in a zip, was exhausted.
_DROPS_THE_ITERATOR = frozenset({"POP_TOP", "POP_ITER", "END_FOR", "FOR_ITER"})
_IS_SUSPENDED = frozenset({"YIELD_VALUE", "RESUME", "YIELD_FROM", "SEND", "RETURN_GENERATOR"})


def left_on_purpose(frame: Optional[FrameType]) -> bool:
    """`frame` is the one below the generator that is being closed. False also if it cannot tell."""
    while _IS_ON and frame is not None and frame.f_lasti >= 0:
        instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if instruction in _DROPS_THE_ITERATOR:
            return True
        if instruction not in _IS_SUSPENDED:
            return False
        frame = frame.f_back  # a generator around ours, such as a progress bar, is being closed itself
    return False
