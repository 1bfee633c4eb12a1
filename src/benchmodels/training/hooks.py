"""Watches a program train with torch: its data loaders, backward passes and optimizers.

Optimizers report through torch's own global hook; loaders, `backward`, `GradScaler.scale` and `Module.train` are wrapped.
Steps compiled as a whole by `torch.compile`, optimizer included, are seen, but the hook may split their graph.
"""

from __future__ import annotations

import functools
import threading
import weakref
from time import perf_counter_ns
from types import ModuleType
from typing import Any, Callable, Optional, Tuple

from benchmodels.hooks.imports import ImportWatch
from benchmodels.hooks.looking import pass_on_signal
from benchmodels.hooks.weaving import Patches
from benchmodels.training.steps import TrainingSteps
from benchmodels.types import Tensor
from benchprobe.loop import batch_size as batch_sizes

SizeOf = Callable[[Any], Optional[int]]


class TrainingHooks:
    """Reports to `steps`; calls `enough` in the middle of the program when enough has been measured."""

    def __init__(self, steps: TrainingSteps, enough: Callable[[], None], complain: Callable[[str], None]) -> None:
        self._steps = steps
        self._enough = enough
        self._complain = complain
        self._patches = Patches()
        self._loaders: weakref.WeakKeyDictionary[Any, Tuple[int, SizeOf]] = weakref.WeakKeyDictionary()
        self._scaled: Tuple[Any, Any] = (None, None)  # the last output of a GradScaler, and its input
        self._thread = threading.get_ident()

    def install(self, imports: ImportWatch) -> None:
        imports.after("torch.optim.optimizer", self._watch_optimizers)
        imports.after("torch.utils.data.dataloader", self._watch_loaders)
        imports.after("torch", self._watch_backward)
        imports.after("torch.amp.grad_scaler", self._watch_scaler)
        imports.after("torch.nn.modules.module", self._watch_mode)

    def _watch_optimizers(self, module: ModuleType) -> None:
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is None:
            self._complain(
                "training steps cannot be seen: this torch has no hook for optimizer steps; torch 2.0 or later has"
            )
            return

        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            now_ns = perf_counter_ns()
            self._safely(lambda: self._steps.stepped(optimizer, now_ns))
            if self._steps.stopped:
                self._enough()

        register(stepped)

    def _watch_loaders(self, module: ModuleType) -> None:
        loader_class, iterator_class = module.DataLoader, module._BaseDataLoaderIter
        make, fetch = vars(loader_class)["__iter__"], vars(iterator_class)["__next__"]

        @functools.wraps(make)
        def __iter__(loader: Any) -> Any:
            if threading.get_ident() != self._thread:
                return make(loader)
            self._safely(lambda: self._steps.open(id(loader)))
            began_ns = perf_counter_ns()
            iterator = make(loader)
            waited_ns = perf_counter_ns() - began_ns
            self._safely(lambda: self._know(iterator, loader, waited_ns))
            return iterator

        @functools.wraps(fetch)
        def __next__(iterator: Any) -> Any:
            known = self._loaders.get(iterator)
            if known is None or threading.get_ident() != self._thread:
                return fetch(iterator)
            loader, size_of = known
            self._safely(lambda: self._steps.fetch(loader))
            began_ns = perf_counter_ns()
            try:
                batch = fetch(iterator)
            except StopIteration:
                self._safely(lambda: self._steps.exhausted(loader))
                raise
            waited_ns = perf_counter_ns() - began_ns
            self._safely(lambda: self._steps.fetched(loader, size_of(batch), waited_ns))
            return batch

        self._patches.set_attribute(loader_class, "__iter__", __iter__)
        self._patches.set_attribute(iterator_class, "__next__", __next__)

    def _know(self, iterator: Any, loader: Any, waited_ns: int) -> None:
        self._steps.opened(id(loader), waited_ns)
        size_of = batch_sizes.finder(batch_sizes.of_loader(loader), self._complain)
        self._loaders[iterator] = (id(loader), size_of)

    def _watch_backward(self, torch: ModuleType) -> None:
        backward = torch.autograd.backward

        @functools.wraps(backward)
        def watched(tensors: Tensor, *args: Any, **kwargs: Any) -> Any:
            self._safely(lambda: self._note_loss(tensors))
            return backward(tensors, *args, **kwargs)

        self._patches.set_attribute(torch.autograd, "backward", watched)

    def _note_loss(self, tensors: Tensor) -> None:
        if threading.get_ident() != self._thread:
            return
        scaled, own = self._scaled
        tensor = own if tensors is scaled and scaled is not None else tensors
        self._scaled = (None, None)
        single = getattr(tensor, "numel", lambda: 0)() == 1
        self._steps.backward(tensor.detach() if single else None)

    def _watch_scaler(self, module: ModuleType) -> None:
        scaler = module.GradScaler
        scale = vars(scaler)["scale"]

        @functools.wraps(scale)
        def watched(self_: Any, outputs: Any) -> Any:
            scaled = scale(self_, outputs)
            self._scaled = (scaled, outputs)
            return scaled

        self._patches.set_attribute(scaler, "scale", watched)

    def _watch_mode(self, module: ModuleType) -> None:
        train = vars(module.Module)["train"]
        depth = [0]  # it calls itself for every sub-module

        @functools.wraps(train)
        def watched(self_: Any, mode: bool = True) -> Any:
            if depth[0] or threading.get_ident() != self._thread:
                return train(self_, mode)
            depth[0] = 1
            try:
                return train(self_, mode)
            finally:
                depth[0] = 0
                self._safely(lambda: self._steps.mode(bool(mode)))

        self._patches.set_attribute(module.Module, "train", watched)

    def _safely(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # the program must go on undisturbed
            pass_on_signal(error)
            self._complain(f"training steps may be missing: {type(error).__name__}: {error}")
