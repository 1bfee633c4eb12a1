"""Linear layers whose weights are held in fewer bits, by torchao; what they compute stays floating-point."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, Callable, Dict, NamedTuple, Optional

from benchmodels.runtimes.base import (
    FP8_WEIGHTS,
    INT4_WEIGHTS,
    INT8_WEIGHTS,
    RuntimeOptions,
    Unsupported,
    is_importable,
)
from benchmodels.types import Module

GROUP = 128  # weights that share a scale, in int4
OLDEST_FP8 = (8, 9)  # compute capability


class WeightFormat(NamedTuple):
    """`config`: torchao's, made from its module `quantization`. `computes`: the type its kernel needs; None: the model's."""

    config: Callable[[Any], Any]
    computes: Optional[str] = None
    cuda_only: bool = False
    oldest: Optional[tuple[int, int]] = None


def _int4(quantization: Any) -> Any:
    packing = import_module("torchao.quantization.quantize_.workflows").Int4PackingFormat
    return quantization.Int4WeightOnlyConfig(group_size=GROUP, int4_packing_format=packing.TILE_PACKED_TO_4D)


FORMATS: Dict[str, WeightFormat] = {
    INT8_WEIGHTS: WeightFormat(lambda quantization: quantization.Int8WeightOnlyConfig()),
    INT4_WEIGHTS: WeightFormat(_int4, computes="bfloat16", cuda_only=True),
    FP8_WEIGHTS: WeightFormat(lambda quantization: quantization.Float8WeightOnlyConfig(), oldest=OLDEST_FP8),
}


def unavailable(options: RuntimeOptions) -> Optional[str]:
    """Why weights cannot be held in that precision on that device; None: they can, or it is another precision."""
    wanted = FORMATS.get(options.precision)
    if wanted is None:
        return None
    if not is_importable("torchao"):
        return f"torchao is not installed, which {options.precision} needs: pip install torchao"
    if options.device_type != "cuda":
        return f"torchao has no kernel for {options.precision} on {options.device_type}" if wanted.cuda_only else None
    capability = import_module("torch").cuda.get_device_capability(options.device_index)
    if wanted.oldest is not None and capability < wanted.oldest:
        return f"{options.precision} needs compute capability {'.'.join(map(str, wanted.oldest))}; this GPU has {'.'.join(map(str, capability))}"
    return None


def with_small_weights(module: Module, precision: str) -> Any:
    """The same module, changed in place; Unsupported if it has no Linear layer, or torchao refuses them all."""
    torch = import_module("torch")
    whole = torch.nn.Sequential(module) if isinstance(module, torch.nn.Linear) else module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torchao's import
        quantization = import_module("torchao.quantization")
    before = {id(part.weight) for part in whole.modules() if isinstance(part, torch.nn.Linear)}
    if not before:
        raise Unsupported("convert", f"no Linear layer, so no weights to hold as {precision}")
    try:
        quantization.quantize_(whole, FORMATS[precision].config(quantization))
    except (ImportError, NotImplementedError, AssertionError, RuntimeError, ValueError) as error:
        text = f"torchao cannot hold its weights as {precision}: {type(error).__name__}: {error}"
        raise Unsupported("convert", text, kind="unavailable") from error
    after = {id(part.weight) for part in whole.modules() if isinstance(part, torch.nn.Linear)}
    if after <= before:
        raise Unsupported("convert", f"torchao held none of its weights as {precision}: their sizes do not fit")
    return whole
