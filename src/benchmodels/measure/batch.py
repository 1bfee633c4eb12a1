"""How many items a call of a model has, and the evidence for it.

The first dimension of an input need not be a batch: it may be features, channels or time. So items are reported only with
evidence; without any, a rate counts calls. Evidence, strongest first: the user's word; the script's own parameter
`batch_size`; the contract of a known library, or of the layer that takes the inputs; a dimension that the model file calls
a batch; calls of the script that differ in one dimension, along which the model computes each entry independently.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from benchmodels.hooks.import_watch import class_attribute
from benchmodels.identity.signatures import Leaf, Signature
from benchmodels.runtimes.base import Captured
from benchmodels.settings import ModelSettings
from benchmodels.tensors import flatten_call
from benchmodels.types import ModelInputs, Module, Value

Dimension = Tuple[str, int]  # of the input of that name
Varying = Sequence[Sequence[Any]]  # dimensions, as [name, position], that change together
# Inputs whose first dimension a library defines to be the batch, with their least number of dimensions.
TRANSFORMERS = {
    "input_ids": 2,
    "inputs_embeds": 3,
    "decoder_input_ids": 2,
    "pixel_values": 4,
    "input_values": 2,
    "input_features": 3,
}
IMAGES = ("torchvision.models.", "timm.models.")  # models of images, or of videos
NOT_ONE_TENSOR = ("torchvision.models.detection.",)
ALIKE = 1e-4  # relative difference between entries computed in different batches
ALIKE_IN_HALF = 2e-2  # with weights of fewer bits


class Batch(NamedTuple):
    """Items per call, and the evidence."""

    items: int
    source: str


def of_known_task(module: Module, signature: Signature) -> Optional[Batch]:
    """By the contract of the library that the class comes from."""
    shapes = {leaf.name: leaf.shape for leaf in signature.leaves if leaf.shape is not None}
    if _is_of(type(module), "transformers.modeling_utils", "PreTrainedModel"):
        main = class_attribute(type(module), "main_input_name")
        for name in (main, *TRANSFORMERS):
            shape = shapes.get(name) if isinstance(name, str) else None
            if shape and len(shape) >= TRANSFORMERS.get(name, 2):
                return Batch(shape[0], f"dimension 0 of {name}, as transformers defines it")
        return None
    place = type(module).__module__ + "."
    if place.startswith(IMAGES) and not place.startswith(NOT_ONE_TENSOR):
        for name, shape in shapes.items():
            if len(shape) in (4, 5):
                return Batch(shape[0], f"dimension 0 of {name}, as {place.partition('.')[0]} defines it")
    return None


def _is_of(kind: type, module: str, name: str) -> bool:
    return any((each.__module__, each.__name__) == (module, name) for each in kind.__mro__)


def varying_dimensions(own: Signature, others: Sequence[Signature]) -> List[List[Dimension]]:
    """For each other call of the same model that differs in nothing but sizes: the dimensions in which it differs."""
    found: List[List[Dimension]] = []
    for other in others:
        changed = _changed(own.leaves, other.leaves)
        if changed and changed not in found:
            found.append(changed)
    return found


def _changed(own: Sequence[Leaf], other: Sequence[Leaf]) -> Optional[List[Dimension]]:
    """The dimensions whose size differs between two calls; None if anything else differs, too."""
    theirs = {leaf.name: leaf for leaf in other}
    if [leaf.name for leaf in own] != [leaf.name for leaf in other]:
        return None
    changed: List[Dimension] = []
    sizes = set()
    for leaf in own:
        match = theirs[leaf.name]
        if (leaf.value, leaf.dtype, len(leaf.shape or ())) != (match.value, match.dtype, len(match.shape or ())):
            return None
        places = [i for i, (a, b) in enumerate(zip(leaf.shape or (), match.shape or ())) if a != b]
        if len(places) > 1:
            return None
        for place in places:
            changed.append((leaf.name, place))
            sizes.add(((leaf.shape or ())[place], (match.shape or ())[place]))
    return changed if len(sizes) == 1 else None


def of_layers(module: Module, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Optional[Batch]:
    """By the contract of the first layer that has one, if its input has the shape of an input of the model."""
    from benchmodels.check.reference import call  # imports numpy, which a script to look at may lack

    shapes = {tuple(tensor.shape) for _, tensor in flatten_call(args, kwargs)}
    seen: List[Tuple[Any, Tuple[int, ...]]] = []

    def look(layer: Module, inputs: ModelInputs) -> None:
        if inputs and hasattr(inputs[0], "shape"):
            seen.append((layer, tuple(inputs[0].shape)))
        raise _Seen

    layers = [part for part in module.modules() if _has_contract(part)]
    hooks = [layer.register_forward_pre_hook(look) for layer in layers]
    try:
        if layers:
            call(module, args, kwargs)
    except Exception:  # usually _Seen: the rest of the call does not matter
        pass
    finally:
        for hook in hooks:
            hook.remove()
    if not seen or seen[0][1] not in shapes:
        return None
    place = _batch_dimension(seen[0][0], len(seen[0][1]))
    name = type(seen[0][0]).__name__
    return None if place is None else Batch(seen[0][1][place], f"dimension {place} of the input of its {name}")


class _Seen(Exception):
    """The first layer was called."""


def _has_contract(part: Module) -> bool:
    return _batch_dimension(part, 2) is not None or any(_batch_dimension(part, n) is not None for n in (3, 4, 5))


def _batch_dimension(layer: Module, dimensions: int) -> Optional[int]:
    """The dimension of its input that torch defines to be the batch; None: none, or unknown."""
    nn = import_module("torch.nn")
    convolutions: Dict[Any, int] = {nn.modules.conv._ConvNd: 2, nn.modules.batchnorm._BatchNorm: 2}
    for kind in convolutions:
        if isinstance(layer, kind):
            name = type(layer).__name__
            inner = next((int(digit) for digit in "123" if f"{digit}d" in name), None)
            if inner is None:
                return None
            flat = 1 if isinstance(layer, nn.BatchNorm1d) else None  # it takes rows of features, too
            return 0 if dimensions - 2 in (inner, None if flat is None else 0) else None
    first = None
    if isinstance(layer, (nn.RNNBase, nn.MultiheadAttention, nn.Transformer)):
        first = layer.batch_first
    elif isinstance(layer, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
        first = layer.self_attn.batch_first
    return None if first is None or dimensions != 3 else 0 if first else 1


def of_independent_entries(
    module: Module, args: Sequence[Value], kwargs: Mapping[str, Value], names: Sequence[str], varying: Varying
) -> Optional[Batch]:
    """The only set of varying dimensions along which each entry of the outputs depends on its own entry of the inputs alone.

    Tested by computing half of the entries alone. A sequence fails that: later entries depend on earlier ones.
    """
    found = [
        batch
        for dimensions in varying
        if (batch := _independent(module, args, kwargs, names, [(str(n), int(d)) for n, d in dimensions])) is not None
    ]
    return found[0] if len(found) == 1 else None


def _independent(
    module: Module,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    names: Sequence[str],
    dimensions: Sequence[Dimension],
) -> Optional[Batch]:
    from benchmodels.check.reference import call  # imports numpy, which a script to look at may lack

    cut = dict(dimensions)
    positional = [names[i] if i < len(names) else f"arg{i}" for i in range(len(args))]
    given = {**dict(zip(positional, args)), **kwargs}
    if not cut or any(not hasattr(given.get(name), "narrow") for name in cut):
        return None
    sizes = {int(given[name].shape[place]) for name, place in cut.items()}
    if len(sizes) != 1 or min(sizes) < 2:
        return None
    size = sizes.pop()
    half = size // 2

    def part(name: str, value: Value) -> Any:
        return value.narrow(cut[name], half, size - half) if name in cut else value

    try:
        whole = call(module, args, kwargs)
        some = call(
            module, list(map(part, positional, args)), {name: part(name, value) for name, value in kwargs.items()}
        )
    except Exception:  # such as a layer that needs all its features
        return None
    if not _entries_agree(whole, some, half, size, _alike(module)):
        return None
    place, name = cut[next(iter(cut))], next(iter(cut))
    return Batch(size, f"dimension {place} of {name}: calls differ in it, and each entry is computed independently")


def _alike(module: Module) -> float:
    half = any(tensor.is_floating_point() and tensor.element_size() < 4 for tensor in module.parameters())
    return ALIKE_IN_HALF if half else ALIKE


def _entries_agree(whole: Mapping[str, Any], some: Mapping[str, Any], first: int, size: int, alike: float) -> bool:
    from benchmodels.check.output_check import error_of  # imports numpy, which a script to look at may lack

    if list(whole) != list(some):
        return False
    compared = 0
    for name, array in whole.items():
        shapes = list(zip(array.shape, some[name].shape))
        places = [i for i, (a, b) in enumerate(shapes) if a != b]
        if len(array.shape) != len(some[name].shape) or len(places) > 1:
            return False
        if not places:  # an output without entries
            continue
        (place,) = places
        if shapes[place] != (size, size - first):
            return False
        error = error_of(some[name], array.take(range(first, size), axis=place))
        exact = error.equal == 1.0 if error.equal is not None else (error.relative_l2 or 0.0) <= alike
        if error.trouble is not None or error.unusable is not None or not exact:
            return False
        compared += error.mute is None
    return compared > 0


def stated_batch(settings: ModelSettings) -> Optional[Batch]:
    """Items per call, if already known."""
    return None if settings.items is None else Batch(settings.items, settings.items_from or "as given")


def shown_batch(settings: ModelSettings, captured: Captured) -> Optional[Batch]:
    """Items per call, found by calling the model."""
    module, args, kwargs = captured.module, captured.args, captured.kwargs
    found = of_layers(module, args, kwargs)
    return found or of_independent_entries(module, args, kwargs, captured.names, settings.varying)
