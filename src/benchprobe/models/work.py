"""How much work one call of a model is: arithmetic and bytes, counted once.

Arithmetic: matrix products, convolutions and attention, as torch's own counter knows them; a multiplication with its
addition counts as two, a causal mask saves nothing, and what goes over single elements is not counted. Bytes: what one
call must move at least: every parameter and buffer, input and output once; of an embedding only the rows that are looked
up. Counted on tensors without data, so it takes neither memory nor the time of a call, unless the model looks into
its data: then in a real call.
"""

from __future__ import annotations

import copy
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from benchprobe.models.tensors import flatten, rebuilt_call

SMALL = 50_000_000  # parameters; one more call takes less than importing what counting without data needs
FLOAT_BYTES = {"bf16": 2, "fp16": 2}  # of a floating number, where the precision changes it


class Work(NamedTuple):
    """Of one call, whatever its batch. None: could not be counted, and `note` says why."""

    flops: Optional[float]
    bytes_: Optional[float]
    note: Optional[str] = None


class _Call(NamedTuple):
    """A call that was counted: its arithmetic, its outputs and the rows looked up by the embedding of each name."""

    flops: float
    output: Any
    rows: Dict[str, int]


def count_work(
    module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], precision: str = "fp32", may_call: bool = False
) -> Work:
    """Never raises, and leaves inputs and random numbers as they are.

    `may_call`: whether one more real call does no harm; of a small model it is by far the quickest way to count. Else it is
    made only if there is no other way.
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
        return Work(None, None, f"not counted: {troubles[-1]}")
    note = f"counted in a real call ({troubles[-1]})" if way is _for_real and troubles else None
    try:
        return Work(call.flops, float(_moved_bytes(module, (args, kwargs, call.output), call.rows, precision)), note)
    except Exception as error:
        return Work(call.flops, None, f"bytes not counted: {_first_line(error)}")


def _on_no_device(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Call:
    """On torch's device `meta`: the quickest, but every tensor that the model makes must be there as well."""
    torch: Any = import_module("torch")
    memo: Dict[int, Any] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        empty = torch.empty_like(tensor, device="meta")
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        memo[id(tensor)] = torch.nn.Parameter(empty, requires_grad=False) if is_parameter else empty
    copied = copy.deepcopy(module, memo)
    args, kwargs = rebuilt_call(args, kwargs, lambda tensor: tensor.detach().to("meta"))
    with torch.device("meta"):
        return _counted(copied, args, kwargs, _light_counter())


def _without_data(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Call:
    """On torch's fake tensors, which seem to be on their device. Importing what they need takes a second."""
    fake_tensor: Any = import_module("torch._subclasses.fake_tensor")
    mode = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
    with fake_tensor.FakeCopyMode(mode):
        module, args, kwargs = copy.deepcopy((module, tuple(args), dict(kwargs)))
    with mode:
        return _counted(module, args, kwargs)


def _for_real(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Call:
    torch: Any = import_module("torch")
    args, kwargs = rebuilt_call(args, kwargs, lambda tensor: tensor.detach().clone())
    training = [part for part in module.modules() if part.training]
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=list(devices)):
        try:
            return _counted(module, args, kwargs, _light_counter())
        finally:
            for part in training:
                part.training = True


def _counted(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], counter: Any = None) -> _Call:
    torch: Any = import_module("torch")
    rows: Dict[str, int] = {}
    if counter is None:
        counter = import_module("torch.utils.flop_counter").FlopCounterMode(display=False)
    module.eval()
    with _lookups_noted(module, rows), _nothing_fused(), torch.no_grad(), counter:
        output = module(*args, **kwargs)
    return _Call(float(counter.get_total_flops()), output, rows)


def _light_counter() -> Any:
    """Counts as torch's FlopCounterMode does, by the same formulas, but without importing the compiler first."""
    torch: Any = import_module("torch")
    formulas: Any = import_module("torch.utils.flop_counter").flop_registry
    mode: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Counter(mode):  # type: ignore[misc]
        flops = 0

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False

        def get_total_flops(self) -> int:
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
                self.flops += formula(*args, **kwargs, out_val=result)
            return result

    return Counter()


@contextmanager
def _nothing_fused() -> Iterator[None]:
    """Layers that are one operator on some processor are taken apart: the counter knows only the parts."""
    torch: Any = import_module("torch")
    attention: Any = import_module("torch.nn.attention")
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


@contextmanager
def _lookups_noted(module: Any, rows: Dict[str, int]) -> Iterator[None]:
    hooks = [part.register_forward_pre_hook(_noting(name, rows)) for name, part in _embeddings(module)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _noting(name: str, rows: Dict[str, int]) -> Callable[[Any, Any], None]:
    def note(part: Any, inputs: Any) -> None:
        if inputs:
            rows[name] = rows.get(name, 0) + int(inputs[0].numel())

    return note


def _embeddings(module: Any) -> List[Tuple[str, Any]]:
    nn: Any = import_module("torch.nn")
    return [(name, part) for name, part in module.named_modules() if isinstance(part, (nn.Embedding, nn.EmbeddingBag))]


def _moved_bytes(module: Any, others: Any, rows: Mapping[str, int], precision: str) -> int:
    weights, looked_up = _weights_bytes(module, precision), 0
    for name, part in _embeddings(module):
        if name in rows and weights.get(id(part.weight), (0, 0))[1] == 1:  # one that is shared is read wholly elsewhere
            whole, _ = weights.pop(id(part.weight))
            looked_up += min(whole, rows[name] * whole // max(1, part.weight.shape[0]))
    moved = sum(int(tensor.numel()) * _bytes_each(tensor, precision) for _, tensor in flatten(others))
    return sum(size for size, _ in weights.values()) + looked_up + moved


def _weights_bytes(module: Any, precision: str) -> Dict[int, Tuple[int, int]]:
    """By the tensor's id: its bytes, and how many modules hold it."""
    nn: Any = import_module("torch.nn")
    found: Dict[int, Tuple[int, int]] = {}
    quantised: Set[int] = set()
    for part in module.modules():
        if precision == "int8-dynamic" and isinstance(part, nn.Linear):
            quantised.add(id(part.weight))
        for tensor in (*part.parameters(recurse=False), *part.buffers(recurse=False)):
            each = 1 if id(tensor) in quantised else _bytes_each(tensor, precision)
            found[id(tensor)] = (tensor.numel() * each, found.get(id(tensor), (0, 0))[1] + 1)
    return found


def _bytes_each(tensor: Any, precision: str) -> int:
    if tensor.is_floating_point() and precision in FLOAT_BYTES:
        return FLOAT_BYTES[precision]
    return int(tensor.element_size())


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
