"""Modules of torch as runtimes need them: in eval mode, on the device, in the precision; the captured one stays as it was."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, ContextManager, Dict, List, Mapping, NamedTuple, Optional, Tuple

from benchmodels.runtimes.base import BF16, FP16, FP32, INT8_DYNAMIC, Autocast, RuntimeOptions, Unsupported
from benchmodels.runtimes.parts import weight_only
from benchmodels.runtimes.parts.tf32 import allowed_by
from benchmodels.types import Details, Module

NO_COMPILER = "TORCHDYNAMO_DISABLE"
CAST_TO = {BF16: "bfloat16", FP16: "float16"}
ENGINES = ("qnnpack", "onednn")  # for int8, on processors that torch's own choice does not run on
PRECISION_OF = {"float32": FP32, "bfloat16": BF16, "float16": FP16, "float64": "fp64"}
PRECISION_OF.update(dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), "fp8"))


class Fitted(NamedTuple):
    """A module that is ready to be called, the precision it computes in, and what else decides how."""

    module: Module
    precision: str
    details: Mapping[str, Any] = {}


def unavailable(options: RuntimeOptions) -> Optional[str]:
    """Why torch cannot run on that device. Imports torch only if an accelerator is asked for."""
    if find_spec("torch") is None:
        return "torch is not installed: pip install 'benchwright[torch]'"
    kind = options.device_type
    if kind == "cpu":
        return None
    torch = import_module("torch")
    backend = getattr(torch, kind, None)
    available = getattr(backend, "is_available", None) or getattr(
        getattr(torch.backends, kind, None), "is_available", None
    )
    if backend is None or available is None or not available():
        return f"torch {torch.__version__} finds no {kind} device here"
    count = backend.device_count() if hasattr(backend, "device_count") else 1
    if options.device_index >= count:
        return f"no {options.device}: this machine has {count} of that kind"
    return None


def use_device(options: RuntimeOptions) -> None:
    """Makes it torch's current device: memory is counted there, and kernels written in Triton run there."""
    if options.device_type == "cuda" and ":" in options.device and "torch" in sys.modules:
        import_module("torch").cuda.set_device(options.device_index)


def set_threads(options: RuntimeOptions) -> Details:
    """Sets torch's threads; what they are then."""
    torch = import_module("torch")
    torch.set_num_threads(options.threads)
    try:
        torch.set_num_interop_threads(1)
    except RuntimeError:
        pass  # the script has used them already
    return {
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "wait_policy": os.environ.get("OMP_WAIT_POLICY", "default").lower(),
        "float32_matmul_precision": _matmul_precision(torch),
    }


def _matmul_precision(torch: ModuleType) -> str:
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:  # the script has used torch's newer switches, which it does not mix with this one
        return str(torch.backends.fp32_precision)


def device_details(options: RuntimeOptions) -> Details:
    """Device and settings that decide how an accelerator computes."""
    if options.device_type != "cuda":
        return {}
    torch = import_module("torch")
    return {
        "device_name": torch.cuda.get_device_name(options.device),
        "tf32_allowed": allowed_by(torch.backends, torch.cuda.get_device_capability(options.device)),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "deterministic": torch.are_deterministic_algorithms_enabled() or torch.backends.cudnn.deterministic,
        "reduced_sums": _reduced_sums(torch.backends.cuda.matmul),
    }


def _reduced_sums(matmul: Any) -> List[str]:
    """The types whose products may be summed in that type itself, instead of float32."""
    switches = {BF16: "allow_bf16_reduced_precision_reduction", FP16: "allow_fp16_reduced_precision_reduction"}
    return [name for name, switch in switches.items() if getattr(matmul, switch, False) in (True, (True, True))]


def fitted(module: Module, options: RuntimeOptions) -> Fitted:
    """The module in eval mode, on the device and in the precision; a copy if anything about its weights has to change."""
    if options.precision == INT8_DYNAMIC:
        quantized, engine = _quantized(_moved(module, "cpu", None))
        return Fitted(quantized, INT8_DYNAMIC, {"quantized_engine": engine})
    torch = import_module("torch")
    if options.precision in weight_only.FORMATS:
        computes = weight_only.FORMATS[options.precision].computes
        moved = _moved(module, options.device, None if computes is None else getattr(torch, computes))
        own = _in_eval(copy.deepcopy(moved) if moved is module else moved)
        computes_in = own_precision(own)
        made = weight_only.with_small_weights(own, options.precision)
        return Fitted(made, options.precision, {"computes_in": computes_in})
    wanted = CAST_TO.get(options.precision)
    moved = _moved(module, options.device, None if wanted is None else getattr(torch, wanted))
    if wanted is not None:
        return Fitted(moved, options.precision)
    return Fitted(moved, own_precision(moved))


def under_autocast(call: Any, autocast: Optional[Autocast], options: RuntimeOptions) -> Any:
    """`call` inside a region of autocast like the script's, entered for each call; as it is if a precision was asked for."""
    if autocast is None or options.precision != FP32:
        return call

    def called(*args: Any, **kwargs: Any) -> Any:
        with in_autocast(autocast, options):
            return call(*args, **kwargs)

    return called


def in_autocast(autocast: Optional[Autocast], options: RuntimeOptions) -> ContextManager[Any]:
    if autocast is None or options.precision != FP32:
        return nullcontext()
    torch = import_module("torch")
    region: ContextManager[Any] = torch.autocast(
        options.device_type, dtype=getattr(torch, autocast.dtype), cache_enabled=autocast.cache
    )
    return region


def with_autocast(fit: Fitted, autocast: Optional[Autocast], options: RuntimeOptions) -> Fitted:
    """With the precision that autocast computes in."""
    if autocast is None or options.precision != FP32:
        return fit
    precision = PRECISION_OF.get(autocast.dtype, autocast.dtype)
    return fit._replace(precision=precision, details={**fit.details, "autocast": autocast.dtype})


def own_precision(module: Module) -> str:
    """That of most of its weights."""
    sizes: Dict[str, int] = {}
    for tensor in [*module.parameters(), *module.buffers()]:
        if tensor.is_floating_point():
            name = str(tensor.dtype).partition(".")[2]
            sizes[name] = sizes.get(name, 0) + tensor.numel()
    if not sizes:
        return FP32
    most = max(sizes, key=lambda name: sizes[name])
    return PRECISION_OF.get(most, most)


def _quantized_layer(module: Module) -> Optional[str]:
    """The class of the first layer that torch's eager quantisation made."""
    made = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized", "torch.nn.quantized")
    return next((type(part).__name__ for part in module.modules() if type(part).__module__.startswith(made)), None)


def _moved(module: Module, device: str, dtype: Any) -> Any:
    torch = import_module("torch")
    target = torch.device(device)
    if target.type != "cpu" and (layer := _quantized_layer(module)) is not None:
        text = f"its {layer} is quantised for the CPU: torch has no kernel for it on {target.type}, and may crash"
        raise Unsupported("load", text, kind="unavailable")
    if target.type == "cuda" and target.index is None:
        target = torch.device("cuda", torch.cuda.current_device())
    weights = [*module.parameters(), *module.buffers()]
    if all(t.device == target and (dtype is None or t.dtype == dtype or not t.is_floating_point()) for t in weights):
        return _in_eval(module)
    # deepcopy takes these instead of the weights, so the weights are never in memory a third time.
    copies: Dict[int, Any] = {}
    for tensor in weights:
        new = tensor.detach().to(device=target, dtype=dtype if tensor.is_floating_point() else None, copy=True)
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        copies[id(tensor)] = torch.nn.Parameter(new, requires_grad=False) if is_parameter else new
    for tensor in _computed(module):
        copies[id(tensor)] = tensor.detach().clone()
    try:
        clone = copy.deepcopy(module, copies)
    except Exception as error:
        text = f"cannot copy the model to another device or precision: {type(error).__name__}: {error}"
        raise Unsupported("convert", text, kind="error") from error
    return _in_eval(clone.to(device=target, dtype=dtype))


def _computed(module: Module) -> List[Any]:
    """Attributes with a history, such as the weight that `weight_norm` makes before each call: deepcopy refuses those."""
    torch = import_module("torch")
    values = [value for part in module.modules() for value in vars(part).values()]
    return [value for value in values if isinstance(value, torch.Tensor) and value.grad_fn is not None]


def _in_eval(module: Module) -> Any:
    try:
        return module.eval()
    except NotImplementedError:  # a module that was exported has no modes
        return module


def _quantized(module: Module) -> Tuple[Any, str]:
    """Linear layers with int8 weights, whose inputs are quantised as they come; and the engine that computes them.

    The script's engine, or torch's, unless it does not run here: on ARM, torch may choose one for x86.
    """
    torch = import_module("torch")
    whole = torch.nn.Sequential(module) if isinstance(module, torch.nn.Linear) else module
    engines = torch.backends.quantized
    chosen = engines.engine
    others = [name for name in ENGINES if name in engines.supported_engines and name != chosen]
    try:
        made, engine = _quantized_by_first([chosen, *others], whole)
    finally:
        engines.engine = chosen  # a layer keeps the engine that it was made with
    if not any(type(part).__module__.startswith("torch.ao.nn.quantized.dynamic") for part in made.modules()):
        raise Unsupported("convert", "no Linear layer, so nothing to quantise to int8")
    return _in_eval(made), engine


def _quantized_by_first(engines: List[str], module: Module) -> Tuple[Any, str]:
    """By the first engine that runs on this processor; what the first one raised if none does."""
    torch = import_module("torch")
    quantization = import_module("torch.ao.quantization")
    troubles: List[RuntimeError] = []
    for engine in engines:
        torch.backends.quantized.engine = engine
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return quantization.quantize_dynamic(module, {torch.nn.Linear}, dtype=torch.qint8), engine
        except RuntimeError as error:
            troubles.append(error)
    raise troubles[0]


def forbid_compiling() -> None:
    """Eager is eager: parts that the script decorated with torch.compile run as they are written.

    Where nothing was compiled so far, torch's compiler is not even imported: seconds and memory that are not the model's.
    """
    if "torch._dynamo" not in sys.modules:
        os.environ[NO_COMPILER] = "1"  # read when it is imported
    _set_stance("force_eager")


def allow_compiling() -> None:
    """Whoever forbade it before."""
    os.environ.pop(NO_COMPILER, None)
    import_module("torch._dynamo").config.disable = False
    _set_stance("default")


def _set_stance(stance: str) -> None:
    if "torch._dynamo" in sys.modules:
        set_stance = getattr(import_module("torch").compiler, "set_stance", None)
        if set_stance is not None:
            set_stance(stance)
