"""The least that a step must move between the memory and the processor, in bytes.

Of a forward pass: the parameters and buffers that it reads (of a table only the rows looked up) and, where few queries meet
many keys, those keys and values, which an earlier step left behind; of inference also inputs and answers. Of training
besides: what the forward pass keeps for the backward pass, once written and once read; parameters that the backward pass
reads again; gradients, parameters and the optimizer's state. What one operator hands to the next is not counted, since it
could stay in a cache, so a step moves this much or more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

_TABLES = {"aten::embedding", "aten::_embedding_bag", "aten::_embedding_bag_forward_only"}
_STATES = {torch.optim.Adam: 2, torch.optim.AdamW: 2}  # of the size of the parameters; of others not known: none


def inference_bytes(model: nn.Module, work: Callable[[], Any], inputs: Any) -> int:
    reads = Reads(model)
    with torch.compiler.set_stance("force_eager"), torch.no_grad(), reads:
        answer = work()  # compiled while it is watched, it would stay uncompiled
    _give_back(model)
    return reads.bytes + sum(t.nbytes for part in (inputs, answer) for t in tensors(part))


def training_bytes(model: nn.Module, loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer, kept: bool) -> int:
    """Carries out one forward pass, and leaves random numbers as they were. `kept` says whether what is kept for the
    backward pass counts: a compiler may keep less of it."""
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    reads, saved = Reads(model), _Saved(model)
    watched = torch.autograd.graph.saved_tensors_hooks(saved.note, _itself)
    with torch.compiler.set_stance("force_eager"), torch.random.fork_rng(devices), reads, watched:
        loss()
    _give_back(model)
    sparse = {p for m in model.modules() if getattr(m, "sparse", False) for p in m.parameters(recurse=False)}
    learning = [p for group in optimizer.param_groups for p in group["params"] if p not in sparse]
    passes = 4 + 2 * states_of(optimizer)  # gradients written and read, parameters and states read and written
    rows = sum(reads.rows.get(p.untyped_storage().data_ptr(), 0) for p in sparse)
    return (
        reads.bytes + saved.parameters + passes * sum(p.nbytes for p in learning) + 4 * rows + 2 * saved.others * kept
    )


def states_of(optimizer: torch.optim.Optimizer) -> int:
    """How many tensors of its size it keeps for a parameter."""
    if isinstance(optimizer, torch.optim.SGD):
        return int(any(group["momentum"] for group in optimizer.param_groups))
    return _STATES.get(type(optimizer), 0)


class Reads(TorchDispatchMode):
    """`bytes` of parameters, buffers and cached keys that operators read while it is entered. `rows`: those of tables."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._own = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers()) if t.nbytes}
        self.bytes = 0
        self.rows: dict[int, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name
        if name in _TABLES:
            self._look_up(args[0], args[1])
        elif not func.is_view:
            self.bytes += sum(t.nbytes for t in _distinct(tensors((args, kwargs))) if self._is_own(t))
            if "_scaled_dot_product" in name and args[0].shape[-2] < args[1].shape[-2]:
                self.bytes += args[1].nbytes + args[2].nbytes
        return func(*args, **kwargs)

    def _is_own(self, tensor: Tensor) -> bool:
        return tensor.device.type != "meta" and tensor.untyped_storage().data_ptr() in self._own

    def _look_up(self, table: Tensor, indices: Tensor) -> None:
        rows = indices.unique().numel() * table[0].nbytes
        self.bytes += rows
        place = table.untyped_storage().data_ptr()
        self.rows[place] = self.rows.get(place, 0) + rows


class _Saved:
    """What is kept for the backward pass, each memory once."""

    def __init__(self, model: nn.Module) -> None:
        self._own = {p.untyped_storage().data_ptr() for p in model.parameters()}
        self._seen: set[int] = set()
        self.parameters = self.others = 0

    def note(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        place = storage.data_ptr()
        if place not in self._seen:
            self._seen.add(place)
            if place in self._own:
                self.parameters += storage.nbytes()
            else:
                self.others += storage.nbytes()
        return tensor.detach()


def tensors(value: Any) -> Iterable[Tensor]:
    """All that are in it, however deep."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors(part)
    elif hasattr(value, "__dataclass_fields__"):
        yield from tensors([getattr(value, name) for name in value.__dataclass_fields__])


def _give_back(model: nn.Module) -> None:
    """What torch keeps of the GPU's memory, so that counting does not change how much the loop seems to need."""
    if any(p.device.type == "cuda" for p in model.parameters()):
        torch.cuda.empty_cache()


def _distinct(found: Iterable[Tensor]) -> list[Tensor]:
    return list({(t.data_ptr(), t.nbytes): t for t in found if t.device.type != "meta"}.values())


def _itself(tensor: Tensor) -> Tensor:
    return tensor
