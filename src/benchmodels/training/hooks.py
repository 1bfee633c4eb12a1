"""Watches a program train with torch: its data loaders, backward passes and optimizers.

What happens in short steps is only noted, with its time, and reported for several steps at once: code that runs every few
milliseconds among a program's own is never in the processor's caches, and would take ten times as long as it does by itself.
Once steps follow each other alike (one batch, one backward pass), backward passes are not noted: `backward` is torch's own until the next report.
Optimizers report through torch's own global hook; loaders, `backward`, `GradScaler.scale` and `Module.train` are wrapped.
Steps compiled as a whole by `torch.compile`, optimizer included, are seen, but the hook may split their graph.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from threading import get_ident
from time import perf_counter_ns
from types import ModuleType
from typing import Any, Callable, List, Optional, Tuple

from benchmodels.hooks.bytecode_patch import Patches
from benchmodels.hooks.import_watch import pass_on_signal
from benchmodels.hooks.imports import ImportWatch
from benchmodels.training.steps import INTERVAL_NS, Pass, TrainingSteps
from benchmodels.types import Tensor
from benchprobe.loop import batch_size as batch_sizes
from benchprobe.stream.values import Deferred

MOST_NOTED = 10_000  # a program may go on for ever without a step
MOST_EMPTY_EPOCHS = 10_000  # then the program goes through its loader for ever
MOST_STEPS_AFTER = 64  # of an optimizer: then the program has done with its loader
STEPS_ALIKE = 3  # then the next ones are taken to be like them


class TrainingHooks:
    """Reports to `steps`. When enough has been measured, calls `enough` and ends the training: its loaders are exhausted from
    then on; without a loader, the optimizer's step raises SystemExit."""

    def __init__(self, steps: TrainingSteps, enough: Callable[[], None], complain: Callable[[str], None]) -> None:
        self._steps = steps
        self._backward, self._stepped, self._fetched = steps.backward, steps.stepped, steps.fetched
        self._enough = enough
        self._complain = complain
        self._patches = Patches()
        self._loaders: weakref.WeakKeyDictionary[Any, Tuple[int, Callable[[Any], Any]]] = weakref.WeakKeyDictionary()
        self._next_number = itertools.count().__next__
        self._trained_on: Any = None  # the data set of the loader that was ended
        self._has_ended = self._reporting = False
        self._steps_after = self._empty_epochs = 0
        self._scaled: Tuple[Any, Any] = (None, None)  # the last output of a GradScaler, and its input
        self._loss_due_ns = 0
        self._noted: List[Tuple[Any, ...]] = []  # a method of `steps` and its arguments, not yet called
        self._due_ns = self._steps_left = 0  # when, or after how many steps, they are to be called
        self._alike, self._skips_backward = 0, False  # how many steps up to now were alike
        self._skip_backward: Callable[[bool], None] = lambda skips: None
        self._interrupted = False  # steps were alike until something else happened
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

        note, stepped_ = self._noted.append, self._stepped

        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            now_ns = perf_counter_ns()
            note((stepped_, optimizer, now_ns))
            left = self._steps_left = self._steps_left - 1
            if left > 0 and now_ns < self._due_ns:
                return
            if left >= 0 and now_ns < self._due_ns + INTERVAL_NS and self._steps.has_loader and not self._steps.stopped:
                return  # the step ends where the next batch is asked for
            self._report()
            if self._steps.stopped and self._ended():
                self._steps_after += 1
                if not self._steps.has_loader or self._steps_after > MOST_STEPS_AFTER:
                    raise SystemExit(0)

        register(stepped)

    def _watch_loaders(self, module: ModuleType) -> None:
        loader_class, iterator_class = module.DataLoader, module._BaseDataLoaderIter
        make, fetch = vars(loader_class)["__iter__"], vars(iterator_class)["__next__"]
        note, fetched, thread = self._noted.append, self._fetched, self._thread

        @functools.wraps(make)
        def __iter__(loader: Any) -> Any:
            if threading.get_ident() != self._thread:
                return make(loader)
            if self._ended(loader.dataset) and self._feeds_training(loader):
                self._empty_epochs += 1
                if self._empty_epochs > MOST_EMPTY_EPOCHS:
                    raise SystemExit(0)
                return iter(())
            asked_ns = perf_counter_ns()
            iterator = make(loader)
            ready_ns = perf_counter_ns()
            self._report(self._know, iterator, loader, asked_ns, ready_ns)
            return iterator

        @functools.wraps(fetch)
        def __next__(iterator: Any) -> Any:
            try:
                loader, size_of = iterator._benchmodels
            except AttributeError:  # not one that is watched
                return fetch(iterator)
            if get_ident() != thread:
                return fetch(iterator)
            if self._steps.stopped and self._ended(iterator._dataset) and self._steps.is_fed_by(loader):
                raise StopIteration
            asked_ns = perf_counter_ns()
            try:
                batch = fetch(iterator)
            except StopIteration:
                now_ns = perf_counter_ns()
                self._report(self._steps.exhausted, loader, now_ns)
                self._ended(iterator._dataset)
                raise
            got_ns = perf_counter_ns()
            note((fetched, loader, size_of(batch), asked_ns, got_ns))
            if self._steps_left > 0 and got_ns < self._due_ns:
                return batch
            self._report()
            if self._steps.stopped and self._ended(iterator._dataset) and self._steps.is_fed_by(loader):
                raise StopIteration  # the batch is not trained on
            return batch

        self._patches.set_attribute(loader_class, "__iter__", __iter__)
        self._patches.set_attribute(iterator_class, "__next__", __next__)

    def _know(self, iterator: Any, loader: Any, asked_ns: int, ready_ns: int) -> None:
        if loader not in self._loaders:
            size_of = batch_sizes.finder(batch_sizes.of_loader(loader), self._complain)
            self._loaders[loader] = (self._next_number(), size_of)
        number, _ = self._loaders[loader]
        which = self._steps.opened(number, asked_ns, ready_ns)
        if not hasattr(iterator, "_benchmodels"):  # persistent workers keep theirs
            weakref.finalize(iterator, self._left, number, which).atexit = False
        iterator._benchmodels = self._loaders[loader]

    def _ended(self, data: Any = None) -> bool:
        """Whether enough has been measured. `data`: of the loader in use."""
        if self._steps.stopped and not self._has_ended:
            self._has_ended = True
            used = self._loaders.items()
            evaluates = any(each.dataset is data and not self._steps.is_fed_by(number) for each, (number, _) in used)
            self._trained_on = None if evaluates else data
            self._enough()
        return self._has_ended

    def _feeds_training(self, loader: Any) -> bool:
        """Whether its batches would be trained on: they were, or it is a new one of the same data."""
        if loader not in self._loaders:
            return self._trained_on is not None and loader.dataset is self._trained_on
        return self._steps.is_fed_by(self._loaders[loader][0])

    def _left(self, number: int, which: Pass) -> None:
        """The program has dropped an iterator; it may do so anywhere, even while something else is reported."""
        if threading.get_ident() == self._thread and not self._reporting:
            self._report(self._steps.left, number, which, perf_counter_ns())

    def _watch_backward(self, torch: ModuleType) -> None:
        backward = torch.autograd.backward
        note, noted = self._noted.append, (self._backward, None)

        @functools.wraps(backward)
        def watched(tensors: Tensor, *args: Any, **kwargs: Any) -> Any:
            if self._skips_backward:
                return backward(tensors, *args, **kwargs)
            if get_ident() == self._thread:
                if self._alike >= STEPS_ALIKE:
                    skip(True)
                if perf_counter_ns() < self._loss_due_ns:
                    note(noted)
                else:
                    try:
                        self._note_loss(tensors)
                    except Exception as error:
                        self._go_on_after(error)
            return backward(tensors, *args, **kwargs)

        def skip(skips: bool) -> None:
            self._skips_backward = skips
            if torch.autograd.backward is (watched if skips else backward):  # else the program has replaced it
                torch.autograd.backward = backward if skips else watched

        self._patches.set_attribute(torch.autograd, "backward", watched)
        self._skip_backward = skip

    def _note_loss(self, tensors: Tensor) -> None:
        scaled, own = self._scaled
        tensor = own if tensors is scaled and scaled is not None else tensors
        self._scaled = (None, None)
        if len(self._noted) > MOST_NOTED:
            self._report()
        if not hasattr(tensor, "numel") or tensor.numel() != 1:
            self._noted.append((self._backward, None))
            return
        self._loss_due_ns = perf_counter_ns() + INTERVAL_NS
        if tensor.is_cpu:
            self._noted.append((self._backward, float(tensor.item())))
        else:  # read later: now the device would be waited for
            kept = tensor.detach()
            self._noted.append((self._backward, Deferred(kept, kept._version)))

    def _watch_scaler(self, module: ModuleType) -> None:
        scaler = module.GradScaler
        scale = vars(scaler)["scale"]

        @functools.wraps(scale)
        def watched(self_: Any, outputs: Any) -> Any:
            scaled = scale(self_, outputs)
            if perf_counter_ns() >= self._loss_due_ns:
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
                self._report(self._steps.mode, bool(mode), perf_counter_ns())

        self._patches.set_attribute(module.Module, "train", watched)

    def report(self) -> None:
        """Reports what has only been noted."""
        if self._noted:
            self._report()

    def _report(self, last: Optional[Callable[..., object]] = None, *args: Any) -> None:
        """Reports what was noted, in its order, and then `last`, if given."""
        noted, self._reporting, were_alike = self._noted, True, self._alike >= STEPS_ALIKE
        if last is not None:
            noted.append((last, *args))
        try:
            self._pass_on(noted, were_alike)
        except Exception as error:
            self._go_on_after(error)
        finally:
            noted.clear()
            self._reporting = False
        now_ns, at_once = perf_counter_ns(), self._steps.steps_at_once
        self._due_ns = now_ns + INTERVAL_NS
        self._interrupted = last is not None and (self._interrupted or were_alike)
        self._steps_left = (
            min(at_once, STEPS_ALIKE + 1) if self._interrupted else at_once
        )  # to know soon that they are again
        self._skip_backward(self._skips_backward and now_ns < self._loss_due_ns)

    def _pass_on(self, noted: List[Tuple[Any, ...]], were_alike: bool) -> None:
        """Passes on steps that are alike together, all else one by one."""
        steps, calls, least = self._steps, [each[0] for each in noted], 1 if were_alike else STEPS_ALIKE
        unit = [self._backward, self._stepped, self._fetched][were_alike : 3 if steps.has_loader else 2]
        count = begin = at = end = 0  # what lies between `begin` and `at` has yet to be passed on
        while end < len(noted):
            at, loss = end, noted[end][1] if calls[end] is self._backward else None
            first = end = at + (were_alike and calls[at] is self._backward)
            while calls[end : end + len(unit)] == unit and (were_alike or end == first or noted[end][1] is None):
                end += len(unit)
            count, run = (end - first) // len(unit), noted[first:end]
            if count >= least:
                self._one_by_one(noted[begin:at], were_alike, more=True)
                steps.loop.catching_up = end < len(noted)
                stepped = run[1 - were_alike :: len(unit)]
                fetched = run[2 - were_alike :: len(unit)] if steps.has_loader else []
                begin = end if steps.several(stepped, fetched, loss) else at
            end = max(end, at + 1)
        self._one_by_one(noted[begin:], were_alike, more=False)
        self._alike = count + (self._alike if count and at == 0 else 0)
        self._skips_backward = self._alike >= STEPS_ALIKE and count > 1  # of long steps every loss is read

    def _one_by_one(self, noted: List[Tuple[Any, ...]], were_alike: bool, more: bool) -> None:
        whole = self._with_backward_passes(noted) if were_alike else noted
        for number, (call, *values) in enumerate(whole, start=1):
            self._steps.loop.catching_up = more or number < len(whole)
            call(*values)

    def _with_backward_passes(self, noted: List[Tuple[Any, ...]]) -> List[Tuple[Any, ...]]:
        """Adds the skipped ones: one before each step that counts, but not before a second step for the same batch."""
        known = (self._backward, self._stepped) if self._steps.has_loader else (self._backward,)
        whole: List[Tuple[Any, ...]] = []
        for each in noted:
            if each[0] is self._stepped and self._steps.counts(each[1]) and not (whole and whole[-1][0] in known):
                whole.append((self._backward, None))
            whole.append(each)
        return whole

    def _go_on_after(self, error: Exception) -> None:
        """The program must go on undisturbed."""
        pass_on_signal(error)
        self._complain(f"training steps may be missing: {type(error).__name__}: {error}")
