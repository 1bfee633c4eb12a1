"""Where float32 is computed in TF32: with ten bits after the point, which NVIDIA's GPUs do from compute capability 8.0 on.

By default torch uses it in convolutions and recurrent layers, but not in matrix products. So a model is labelled TF32 only if
everything it multiplies uses it; for any other, the label says where it does.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Any, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

FP32, TF32 = "fp32", "tf32"
# TF32 makes errors some thousand times as large as those of float32. Compared with the model's own error in float32:
AS_IN_FP32, AS_IN_TF32 = 30.0, 300.0
PRODUCTS, CONVOLUTIONS, RECURRENT = "products", "convolutions", "recurrent layers"
KINDS = (PRODUCTS, CONVOLUTIONS, RECURRENT)
SINCE = 8  # the compute capability that has it


class Arithmetic(NamedTuple):
    """`precision`: TF32 only if all of it is. `where`: the part of it that is, in words; None: nothing is.
    `kinds`: the kinds computed in TF32."""

    precision: str
    where: Optional[str] = None
    kinds: Tuple[str, ...] = ()


def allowed_by(backends: Any, capability: Optional[Tuple[int, int]]) -> List[str]:
    """The kinds of arithmetic that torch's settings let run in TF32. `backends`: torch.backends; `capability` None: not known."""
    if capability is not None and capability[0] < SINCE:
        return []
    return [kind for kind, switch in _switches(backends).items() if _is_on(switch)]


def _switches(backends: Any) -> Dict[str, Any]:
    cudnn = backends.cudnn
    return {
        PRODUCTS: backends.cuda.matmul,
        CONVOLUTIONS: getattr(cudnn, "conv", cudnn),
        RECURRENT: getattr(cudnn, "rnn", cudnn),
    }


def _is_on(switch: Any) -> bool:
    """Newer versions of torch have a precision for each kind, in which the older switches show."""
    precision = getattr(switch, "fp32_precision", None)
    return precision == TF32 if isinstance(precision, str) else bool(switch.allow_tf32)


@contextmanager
def without_tf32() -> Iterator[None]:
    """Inside, torch computes float32 as such. Does nothing where torch is not imported."""
    torch: Any = sys.modules.get("torch")
    before = [] if torch is None else allowed_by(torch.backends, None)
    if before:
        _allow(torch.backends, before, False)
    try:
        yield
    finally:
        if before:
            _allow(torch.backends, before, True)


def _allow(backends: Any, kinds: Collection[str], on: bool) -> None:
    """By the older switches first: torch 2.11 computes convolutions as they say, whatever the newer ones do."""
    older = {backends.cuda.matmul: (PRODUCTS,), backends.cudnn: (CONVOLUTIONS, RECURRENT)}
    for switch, of in older.items():
        if all(kind in kinds for kind in of):
            switch.allow_tf32 = on
    for kind, switch in _switches(backends).items():
        if kind in kinds and _is_on(switch) is not on:
            switch.fp32_precision = TF32 if on else "ieee"


def as_seen(stated: Arithmetic, error: Optional[float], own: Optional[float]) -> Tuple[Arithmetic, Optional[str]]:
    """Corrected by the measured error, since a library need not use TF32 where it may; with a note for the reader.

    `error`: relative, of the outputs; `own`: that of the model in float32 on the CPU. None or 0: nothing can be said.
    """
    if stated.precision not in (FP32, TF32) or not error or not own:
        return stated, None
    if stated.kinds and error < AS_IN_FP32 * own:
        where = " and ".join(stated.kinds)
        text = f"TF32 is allowed in {where}, but the error of {error:.1g} is that of float32, so it was not used"
        return Arithmetic(FP32), text
    if not stated.kinds and error > AS_IN_TF32 * own:
        text = (
            f"the error of {error:.1g} is {error / own:,.0f} times the model's own in float32, as if computed in TF32"
        )
        return stated, f"{text}, which the settings do not allow"
    return stated, None


def arithmetic(precision: str, allowed: Collection[str], work: Mapping[str, float]) -> Arithmetic:
    """The precision actually used for a requested one. `work`: the model's arithmetic by kind; empty: not known."""
    if precision != FP32 or not allowed:
        return Arithmetic(precision)
    if not work:
        may = tuple(kind for kind in KINDS if kind in allowed)
        return Arithmetic(FP32, f"{' and '.join(may)}, as far as the model has any", may)
    present = [kind for kind in KINDS if work.get(kind)]
    used = tuple(kind for kind in present if kind in allowed)
    if not used:
        return Arithmetic(FP32)
    if len(used) == len(present):
        return Arithmetic(TF32, "all products" if len(used) > 1 else used[0], used)
    return Arithmetic(FP32, f"{' and '.join(used)} only", used)
