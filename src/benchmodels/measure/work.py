"""The work of one call of a model: arithmetic and bytes, counted once.

Arithmetic: matrix products, convolutions and attention, by the formulas of torch's counter and a few of ours. A
multiply-add counts as two operations, a causal mask saves nothing, the zeros of a sparse tensor cost nothing, and
elementwise operations are not counted. Bytes: the least that one call must move: every parameter, buffer, input and
output once; of an embedding only the rows looked up. Counted on tensors without data, which takes neither memory nor the
time of a call; if the model depends on its data, in a real call.
"""

from __future__ import annotations

import copy
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set

from benchmodels.runtimes.parts.tf32 import CONVOLUTIONS, PRODUCTS, RECURRENT
from benchmodels.tensors import flatten, read_through, rebuilt_call
from benchmodels.types import Details, Module, Tensor, Value

SMALL = 50_000_000  # parameters; for fewer, a real call is quicker than importing what counting without data needs
FLOAT_BYTES = {"bf16": 2, "fp16": 2}  # per float, where the precision changes it
SMALL_WEIGHTS = {
    "int8-dynamic": 1.0,
    "int8-weights": 1.0,
    "fp8-weights": 1.0,
    "int4-weights": 0.5,
}  # bytes of each of a Linear layer
# Other libraries' operators may multiply matrices unseen: better no number than one that leaves them out.
KNOWN_OPERATORS = ("aten", "prim", "prims", "profiler", "higher_order")
NO_PRODUCTS = ("torchvision::",)  # boxes and crops, all but one of them
BUT_FOR = ("torchvision::deform_conv2d", "torchvision::_deform_conv2d")


class CallWork(NamedTuple):
    """Of one call, with its whole batch. None: could not be counted; `note` says why."""

    flops: Optional[float]
    bytes_: Optional[float]
    note: Optional[str] = None
    kinds: Mapping[str, float] = {}  # arithmetic by kind of operation: see `runtimes.parts.tf32`


class _Call(NamedTuple):
    """A counted call: its arithmetic and outputs, how many numbers were looked up in each weight that was used for nothing
    else, and the operators whose arithmetic is unknown."""

    flops: float
    output: Value
    taken: Dict[str, int]
    unknown: Sequence[str] = ()
    kinds: Mapping[str, float] = {}


def count_work(
    module: Module, args: Sequence[Value], kwargs: Mapping[str, Value], precision: str = "fp32", may_call: bool = False
) -> CallWork:
    """Never raises, and leaves inputs and random numbers as they are.

    `may_call`: a real call does no harm; for a small model it is by far the quickest way. Otherwise it is the last resort.
    """
    small = sum(tensor.numel() for tensor in module.parameters()) <= SMALL
    ways = [_on_no_device, _without_data, _for_real]
    if may_call and small:
        ways = [_for_real, *ways[:-1]]
    troubles: List[str] = []
    for way in ways:
        try:
            call = way(module, args, kwargs)
            break
        except Exception as error:
            troubles.append(_first_line(error))
    else:
        return CallWork(None, None, troubles[-1])
    note = f"counted in a real call ({troubles[-1]})" if way is _for_real and troubles else None
    flops: Optional[float] = call.flops
    kinds: Mapping[str, float] = call.kinds
    if call.unknown:
        kinds = {}
        flops, note = None, f"no rule for {', '.join(sorted(call.unknown))}"
    try:
        moved = float(_moved_bytes(module, (args, kwargs, call.output), call.taken, precision))
        return CallWork(flops, moved, note, kinds)
    except Exception as error:  # odd tensors of the user's model; the note says why
        return CallWork(flops, None, f"bytes not counted: {_first_line(error)}", kinds)


def _on_no_device(module: Module, args: Sequence[Value], kwargs: Mapping[str, Value]) -> _Call:
    """On torch's `meta` device: the quickest, if the model creates all its tensors there, too."""
    torch = import_module("torch")
    memo: Dict[int, Any] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        empty = torch.empty_like(tensor, device="meta")
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        memo[id(tensor)] = torch.nn.Parameter(empty, requires_grad=False) if is_parameter else empty
    copied = copy.deepcopy(module, memo)
    args, kwargs = rebuilt_call(args, kwargs, lambda tensor: tensor.detach().to("meta"))
    with torch.device("meta"):
        return _counted(copied, args, kwargs, _light_counter())


def _without_data(module: Module, args: Sequence[Value], kwargs: Mapping[str, Value]) -> _Call:
    """On torch's fake tensors, which pretend to be on their device. Their imports take a second."""
    fake_tensor = import_module("torch._subclasses.fake_tensor")
    mode = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
    with fake_tensor.FakeCopyMode(mode):
        module, args, kwargs = copy.deepcopy((module, tuple(args), dict(kwargs)))
    with mode:
        try:
            return _counted(module, args, kwargs, _light_counter())
        except NotImplementedError:  # operators that take functions: only torch's own counter looks into them
            return _counted(module, args, kwargs)


def _for_real(module: Module, args: Sequence[Value], kwargs: Mapping[str, Value]) -> _Call:
    torch = import_module("torch")
    args, kwargs = rebuilt_call(args, kwargs, lambda tensor: tensor.detach().clone())
    training = [part for part in module.modules() if part.training]
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=list(devices)):
        try:
            return _counted(module, args, kwargs, _light_counter())
        finally:
            for part in training:
                part.training = True


def _counted(module: Module, args: Sequence[Value], kwargs: Mapping[str, Value], counter: Any = None) -> _Call:
    torch = import_module("torch")
    if counter is None:
        own = _own_formulas()
        counter = import_module("torch.utils.flop_counter").FlopCounterMode(display=False, custom_mapping=own)
    lookups = _lookups(module)
    module.eval()
    with lookups, _nothing_fused(), torch.no_grad(), _recurrent_counted(module, counter), counter:
        output = read_through(module(*args, **kwargs))
    taken = {name: count for name, count in lookups.taken.items() if name not in lookups.used}
    kinds = dict(getattr(counter, "kinds", {}))
    return _Call(float(counter.get_total_flops()), output, taken, getattr(counter, "unknown", ()), kinds)


@contextmanager
def _recurrent_counted(module: Module, counter: Any) -> Iterator[None]:
    """Tells the counter while a recurrent layer runs: its products use other kernels than those of other layers."""
    layers = import_module("torch.nn").RNNBase
    hooks = []
    for part in module.modules():
        if isinstance(part, layers):
            hooks.append(part.register_forward_pre_hook(lambda *call: setattr(counter, "inside", RECURRENT)))
            hooks.append(part.register_forward_hook(lambda *call: setattr(counter, "inside", None)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _light_counter() -> Any:
    """Counts as torch's FlopCounterMode does, by the same formulas, but without importing the compiler first."""
    torch = import_module("torch")
    formulas: Any = {**import_module("torch.utils.flop_counter").flop_registry, **_own_formulas()}
    mode = import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Counter(mode):  # type: ignore[valid-type,misc]
        def __init__(self) -> None:
            super().__init__()
            self.flops = 0.0
            self.kinds: Dict[str, float] = {}
            self.inside: Optional[str] = None
            self.unknown: Set[str] = set()

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False

        def get_total_flops(self) -> float:
            return self.flops

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            formula = formulas.get(func._overloadpacket)
            if formula is None and func is not torch.ops.prim.device.default:
                with self:
                    result = func.decompose(*args, **kwargs)
                if result is not NotImplemented:
                    return result
            result = func(*args, **kwargs)
            if formula is not None:
                flops = formula(*args, **kwargs, out_val=result) * _of_a_product(torch, args)
                kind = self.inside or (CONVOLUTIONS if "conv" in str(func._overloadpacket) else PRODUCTS)
                self.flops += flops
                self.kinds[kind] = self.kinds.get(kind, 0.0) + flops
            elif _may_multiply(func):
                self.unknown.add(str(func._overloadpacket).replace(".", "::"))
            return result

    return Counter()


def _own_formulas() -> Dict[Any, Callable[..., int]]:
    """For products that torch's counter leaves out, by its rules."""
    aten = import_module("torch").ops.aten

    def of_matrix(matrix: Tensor, *others: Any, **values: Value) -> int:
        return 2 * int(matrix.numel())

    def of_second(first: Value, matrix: Tensor, *others: Any, **values: Value) -> int:
        return 2 * int(matrix.numel())

    def of_matrices(first: Value, second: Value, *others: Any, **values: Value) -> int:
        return 2 * int(first.numel()) * int(second.shape[1])

    def of_groups(first: Value, second: Value, *others: Any, **values: Value) -> int:
        rows = first.numel() // (first.shape[0] if first.dim() > second.dim() else 1)
        return 2 * int(rows) * int(second.shape[-1])

    def of_last(first: Value, second: Value, third: Any, *others: Any, **values: Value) -> int:
        return of_matrices(second, third)

    found: Dict[Any, Callable[..., int]] = {
        aten.mv: of_matrix,
        aten.dot: of_matrix,
        aten.vdot: of_matrix,
        aten.addmv: of_second,
        aten._int_mm: of_matrices,
        aten._sparse_addmm: of_last,
    }
    if hasattr(aten, "_grouped_mm"):  # the experts of a mixture; not in every torch
        found[aten._grouped_mm] = of_groups
    for formula in found.values():
        formula._get_raw = True  # type: ignore[attr-defined]  # it is given tensors, not their shapes
    return found


def _of_a_product(torch: ModuleType, args: Sequence[Value]) -> float:
    """The cost of one multiplication, relative to that of two dense real numbers."""
    factor = 1.0
    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    if any(tensor.is_complex() for tensor in tensors):
        factor = 4.0
    for tensor in tensors:
        if tensor.layout != torch.strided and tensor.numel():
            factor *= _held(torch, tensor).numel() / tensor.numel()
    return factor


def _held(torch: ModuleType, tensor: Tensor) -> Any:
    """The stored values of a sparse tensor; ValueError if it has no data."""
    if tensor.is_meta or type(tensor).__name__ == "FakeTensor":
        raise ValueError("how many values a sparse tensor stores is known only in a real call")
    return tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()


def _may_multiply(func: Any) -> bool:
    name = str(func._overloadpacket).replace(".", "::")
    return func.namespace not in KNOWN_OPERATORS and (name in BUT_FOR or not name.startswith(NO_PRODUCTS))


@contextmanager
def _nothing_fused() -> Iterator[None]:
    """Disables fused layers: the counter knows only their parts."""
    torch = import_module("torch")
    attention = import_module("torch.nn.attention")
    fast_path = torch.backends.mha.get_fastpath_enabled()
    libraries = [(library, library.enabled) for library in (torch.backends.mkldnn, torch.backends.cudnn)]
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        for library, _ in libraries:
            library.enabled = False
        with attention.sdpa_kernel(attention.SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        for library, enabled in libraries:
            library.enabled = enabled


def _lookups(module: Module) -> Any:
    """A context that records how many numbers are looked up in each weight, and which weights have other uses."""
    torch = import_module("torch")
    mode = import_module("torch.overrides").TorchFunctionMode
    functional = torch.nn.functional
    names = {id(tensor): name for name, tensor in _weights(module).items()}
    taking = (functional.embedding, functional.embedding_bag, torch.embedding, torch.Tensor.__getitem__)

    class Lookups(mode):  # type: ignore[valid-type,misc]
        def __init__(self) -> None:
            super().__init__()
            self.taken: Dict[str, int] = {}
            self.used: Set[str] = set()

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            result = func(*args, **kwargs)
            given = {names[id(each)]: each for each in (*args, *kwargs.values()) if id(each) in names}
            if not given or isinstance(result, torch.Size) or not isinstance(result, (torch.Tensor, tuple, list)):
                return result  # none of our weights, or only a query about one
            if func not in taking:
                self.used.update(given)
            for name, weight in given.items():
                taken = result.numel() if isinstance(result, torch.Tensor) else weight.numel()
                if func is functional.embedding_bag:  # the rows are summed
                    taken = (args[0] if args else kwargs["input"]).numel() * weight.shape[-1]
                self.taken[name] = self.taken.get(name, 0) + int(taken)
            return result

    return Lookups()


def _weights(module: Module) -> Details:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _moved_bytes(module: Module, others: Any, taken: Mapping[str, int], precision: str) -> int:
    weights, looked_up = _weights_bytes(module, precision), 0
    for name, tensor in _weights(module).items():
        if name in taken and id(tensor) in weights:
            whole = weights.pop(id(tensor))
            looked_up += min(whole, taken[name] * whole // max(1, tensor.numel()))
    given = {id(tensor): tensor for _, tensor in flatten(others)}  # a tensor given twice counts once
    return sum(weights.values()) + looked_up + sum(_bytes_of(tensor, precision) for tensor in given.values())


def _weights_bytes(module: Module, precision: str) -> Dict[int, int]:
    """By the tensor's id."""
    nn = import_module("torch.nn")
    parts = list(module.modules())
    each = SMALL_WEIGHTS.get(precision)
    quantised = {id(part.weight) for part in parts if each is not None and isinstance(part, nn.Linear)}
    return {
        id(tensor): int(tensor.numel() * (each or 1)) if id(tensor) in quantised else _bytes_of(tensor, precision)
        for tensor in _weights(module).values()
    }


def _bytes_of(tensor: Tensor, precision: str) -> int:
    """Of a sparse tensor, its stored values and indices."""
    torch = import_module("torch")
    if tensor.layout == torch.strided:
        return int(tensor.numel()) * _bytes_each(tensor, precision)
    if tensor.layout == torch.sparse_coo:
        places = [tensor._indices()]
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        places = [tensor.crow_indices(), tensor.col_indices()]
    else:
        places = [tensor.ccol_indices(), tensor.row_indices()]
    values = _held(torch, tensor)
    return sum(int(each.nbytes) for each in places) + int(values.numel()) * _bytes_each(values, precision)


def _bytes_each(tensor: Tensor, precision: str) -> int:
    if tensor.is_floating_point() and precision in FLOAT_BYTES:
        return FLOAT_BYTES[precision]
    return int(tensor.element_size())


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
