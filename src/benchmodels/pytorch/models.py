"""Questions about a torch module: what it wraps, what it holds, and whether a call of it is real."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from benchmodels.discover.callers import OUR_FOLDERS
from benchmodels.hooks.import_watch import attribute, class_attribute, is_a, members_of
from benchmodels.identity.identity import COMPILED, class_name, python_name
from benchmodels.identity.signatures import dtype_name
from benchmodels.pytorch.module_parts import buffers_of, children_of, parameters_of, parts_of
from benchmodels.pytorch.unrecorded import is_torch_tensor, unrecorded
from benchmodels.runtimes.base import Autocast
from benchmodels.types import Details, Module, Tensor, Value

WRAPPERS = {  # class: the attribute with the wrapped module, and the wrapper's name
    COMPILED: ("_orig_mod", "torch.compile"),
    "torch.nn.parallel.data_parallel.DataParallel": ("module", "DataParallel"),
    "torch.nn.parallel.distributed.DistributedDataParallel": ("module", "DistributedDataParallel"),
    "torch.optim.swa_utils.AveragedModel": ("module", "AveragedModel"),
}
TOOLS = tuple(name.replace("/", os.sep) for name in ("jit/_trace", "onnx/", "export/", "_export/"))
INTERNALS = (
    *("torch.nn.utils.parametrizations", "torch.ao.quantization.observer"),
    *("torch.ao.quantization.fake_quantize", "torch.ao.quantization._learnable_fake_quantize"),
)
META = "meta"  # the device of tensors without values
# Modules that hold the weights of a layer; those of quantised layers are packed.
PARTS_OF_TORCH = ("ParametrizationList", "LinearPackedParams", "PackedParameter")
NOT_REAL = ("FakeTensor", "FunctionalTensor", "ProxyTensor", "BatchedTensor", "Proxy", "Attribute", "ParameterProxy")
SYMBOLIC = "KerasTensor"  # what layers of Keras are called with while a model is put together
# Overridden by modules whose state is not in parameters and buffers, such as packed weights.
KEEPS_STATE = ("_save_to_state_dict", "get_extra_state")


def torch() -> Any:
    """The program's torch; never imported from here."""
    return sys.modules["torch"]


class Unwrapped(NamedTuple):
    module: Module
    wrappers: Tuple[str, ...]


def unwrap(module: Module) -> Unwrapped:
    """The module inside `torch.compile` and the like, and the names of these wrappers."""
    wrappers: List[str] = []
    while is_wrapper(module):
        holder, name = WRAPPERS[python_name(module)]
        inner = children_of(module).get(holder)
        if inner is None:
            break
        wrappers.append(name)
        module = inner
    if attribute(module, "_compiled_call_impl") is not None:
        wrappers.append("Module.compile")
    if attribute(attribute(module, "forward"), "_torchdynamo_orig_callable") is not None:
        wrappers.append("torch.compile of forward")
    if type(module).__module__.startswith("torch.jit"):
        wrappers.append("torch.jit")
    return Unwrapped(module, tuple(wrappers))


def is_wrapper(module: Module) -> bool:
    return python_name(module) in WRAPPERS


def autocast_of(module: Module) -> Optional[Autocast]:
    """The region that the script calls it in; None outside, or in one for another kind of device, which changes nothing."""
    tensors = [tensor for _, tensor in (*parameters_of(module), *buffers_of(module))][:1]
    with unrecorded():
        device = tensors[0].device.type if tensors else "cpu"
    try:
        if not torch().is_autocast_enabled(device):
            return None
        return Autocast(dtype_name(torch().get_autocast_dtype(device)), bool(torch().is_autocast_cache_enabled()))
    except (TypeError, RuntimeError):  # an older torch takes no device; a device without autocast
        return None


def autocast_switch() -> Callable[[], bool]:
    """Tells quickly whether any region of autocast is entered."""
    older = getattr(torch(), "is_autocast_cpu_enabled", lambda: False)
    found: Any = getattr(torch()._C, "_is_any_autocast_enabled", None)
    return found or (lambda: torch().is_autocast_enabled() or older())


def autocast_regions() -> Tuple[str, ...]:
    """The kinds of device that autocast is on for, with their types."""
    regions = []
    for device in ("cpu", "cuda", "xpu"):
        try:
            if torch().is_autocast_enabled(device):
                regions.append(f"{device} {torch().get_autocast_dtype(device)}")
        except (TypeError, RuntimeError):  # an older torch takes no device; a device without autocast
            regions.append(device)
    return tuple(regions)


def autocast_note(module: Module) -> Tuple[str, ...]:
    found = autocast_of(module)
    return () if found is None else (f"autocast {found.dtype}",)


def is_loss(module: Module) -> bool:
    return any(kind.__module__ == "torch.nn.modules.loss" for kind in type(module).__mro__)


def is_internal(module: Module) -> bool:
    """Whether it is a part of torch's own machinery that a user never means: a parametrization, an observer."""
    return any(
        kind.__module__.startswith(INTERNALS)
        or (kind.__module__.startswith("torch.") and kind.__name__ in PARTS_OF_TORCH)
        for kind in type(module).__mro__
    )


def has_state(module: Module) -> bool:
    """Whether it holds anything learnt, in whatever form."""
    if parameters_of(module) or buffers_of(module):
        return True
    usual = [class_attribute(_module_class(), name) for name in KEEPS_STATE]
    return any(
        class_attribute(type(part), name) is not own
        for _, part in parts_of(module)
        for name, own in zip(KEEPS_STATE, usual)
    )


def is_lazy(module: Module) -> bool:
    """Whether it gets its parameters only in its first call."""
    lazy = sys.modules.get("torch.nn.parameter")
    kinds = tuple(getattr(lazy, f"Uninitialized{name}") for name in ("Parameter", "Buffer"))
    return any(is_a(tensor, kinds) for _, tensor in (*parameters_of(module), *buffers_of(module)))


def is_real_call(module: Module, args: Sequence[Value], kwargs: Dict[str, Value], frame: Optional[FrameType]) -> bool:
    """False where the program only traces or exports the model, or recomputes activations in a backward pass."""
    backward = getattr(torch()._C, "_current_graph_task_id", lambda: -1)() != -1
    if backward or _is_called_by_tool(frame) or torch().compiler.is_compiling():
        return False
    first = [tensor for _, tensor in parameters_of(module)[:1]]
    tensors = [*_tensors((args, kwargs), 0), *first]
    return not any(type(tensor).__name__ in (*NOT_REAL, SYMBOLIC) or _is_batched(tensor) for tensor in tensors)


def _is_called_by_tool(frame: Optional[FrameType]) -> bool:
    """Whether the caller is torch's tracer or exporter."""
    folder = os.path.join(os.path.dirname(torch().__file__), "")
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(OUR_FOLDERS) and file != sys.modules["torch.nn.modules.module"].__file__:
            return file.startswith(folder) and file[len(folder) :].startswith(TOOLS)
        frame = frame.f_back
    return False


def _is_batched(tensor: Tensor) -> bool:
    functorch = getattr(torch()._C, "_functorch", None)
    asks = getattr(functorch, "is_functorch_wrapped_tensor", None)
    return asks is not None and is_torch_tensor(tensor) and bool(asks(tensor))


def _tensors(value: Value, depth: int) -> Iterator[Any]:
    """The tensors in the inputs, and the proxies that torch.fx uses while it traces a model."""
    if is_torch_tensor(value) or type(value).__module__ == "torch.fx.proxy" or type(value).__name__ == SYMBOLIC:
        yield value
    elif is_a(value, (dict, list, tuple)) and depth < 6:
        for _, part in members_of(value):
            yield from _tensors(part, depth + 1)


def facts_of(module: Module) -> Details:
    """Keys of the event about the module itself."""
    parameters = [tensor for _, tensor in parameters_of(module)]
    floating = [tensor for tensor in parameters if tensor.is_floating_point()]
    main: Optional[Any] = (floating or parameters or [None])[0]
    return {
        "class": _shown_class(class_name(module).rpartition(".")[2]),
        "qualified": class_name(module),
        "parameters": sum(tensor.numel() for tensor in parameters),
        "parameter_bytes": sum(tensor.numel() * tensor.element_size() for tensor in parameters),
        "trainable": sum(tensor.numel() for tensor in parameters if tensor.requires_grad),
        "dtype": None if main is None else dtype_name(main.dtype),
        **device_facts(parameters or [tensor for _, tensor in buffers_of(module)]),
        **_mode(module),
    }


def device_facts(tensors: Sequence[Tensor]) -> Details:
    """The device that holds most of these tensors, and the others; that of weights left without values counts last."""
    sizes: Dict[str, int] = {}
    for tensor in tensors:
        sizes[str(tensor.device)] = sizes.get(str(tensor.device), 0) + tensor.numel() * tensor.element_size()
    ordered = sorted(sizes, key=lambda device: (device == META, -sizes[device]))
    return {"device": ordered[0] if ordered else None, "other_devices": ordered[1:]}


def is_rather_on(device: Optional[str], before: Optional[str]) -> bool:
    """Whether a model that was called on both is one of `device`: an accelerator counts more than the processor."""
    return before in (None, "cpu") and device not in (None, "cpu", META)


def is_on_meta(module: Module) -> bool:
    with unrecorded():
        return any(tensor.device.type == META for _, tensor in parameters_of(module)[:1])


def _shown_class(name: str) -> str:
    """torch.fx and torch.export generate a class for each graph."""
    return "GraphModule" if name == "GraphModuleImpl" else name


def _mode(module: Module) -> Details:
    """Whether any part is in training mode, and which of these layers compute differently because of it."""
    parts = [part for _, part in parts_of(module) if attribute(part, "training") is True]
    return {
        "in_training": bool(parts),
        "mode_dependent": sorted({type(part).__name__ for part in parts if _depends(part)}),
    }


def _depends(part: Module) -> bool:
    """True for torch's dropout, and for normalisation with running statistics."""
    kinds = {kind.__name__ for kind in type(part).__mro__ if kind.__module__.startswith("torch.nn.modules.")}
    if kinds & {"_DropoutNd", "RNNBase", "MultiheadAttention"}:
        chance = attribute(part, "p", attribute(part, "dropout", 0.0))
        return type(chance) in (int, float) and chance > 0
    return bool(kinds & {"_BatchNorm", "RReLU"}) or (
        "_InstanceNorm" in kinds and attribute(part, "track_running_stats") is True
    )


def got_gradients(module: Module) -> bool:
    with unrecorded():
        return any(parameter.grad is not None for _, parameter in parameters_of(module))


def _module_class() -> Any:
    return sys.modules["torch.nn.modules.module"].Module
