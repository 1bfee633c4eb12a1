"""Turns what a training program does (fetch a batch, backward, optimizer step, evaluate) into the steps of one loop.

A step ends when the optimizer has stepped. It begins where the step before it ended, unless the program did something else
in between: went through another data loader, evaluated, or started a new epoch. That time belongs to no step. The very
first step is not recorded: where it began is unknown. Nothing here knows torch: `hooks` reports what happens, and a
`StepLoop` records the steps.
"""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Protocol, Set

Loader = int  # the identity of a data loader


class StepLoop(Protocol):
    """Records steps."""

    def begin(self) -> None:
        """A step begins now; the time since the last one belongs to none."""

    def step(self, waited_ns: int, ended_ns: int, items: Optional[int], loss: Any) -> bool:
        """A step has ended. Returns False when enough has been measured."""

    def explain(self, text: str) -> None:
        """How the training was recognised, for whoever reads the results."""


class Fetched(NamedTuple):
    """Batches taken from one loader since the last step; `items` None: unknown."""

    batches: int = 0
    items: Optional[int] = 0
    waited_ns: int = 0

    def plus(self, items: Optional[int], waited_ns: int) -> Fetched:
        total = None if self.items is None or items is None else self.items + items
        return Fetched(self.batches + 1, total, self.waited_ns + waited_ns)


class TrainingSteps:
    """Follows one training loop; every method is called in the thread that trains."""

    def __init__(self, loop: StepLoop) -> None:
        self._loop = loop
        self._running = False  # whether the start of the current step is known
        self._evaluating = False
        self._epoch_over = False
        self._backwards = 0  # since the last step
        self._loss: Any = None
        self._fetched: Dict[Loader, Fetched] = {}  # since the last step, in order of the first fetch
        self._feeds: Set[Loader] = set()  # loaders whose batches are trained on
        self._counted: Optional[weakref.ref[Any]] = None  # the optimizer whose steps are counted
        self._others: List[str] = []
        self._explained = False
        self.steps = 0  # of the optimizer, those not recorded included
        self.stopped = False

    def open(self, loader: Loader) -> None:
        """The program starts iterating over `loader`."""
        if self._epoch_over and loader in self._feeds:  # what remained of the last epoch was not a step
            self._epoch_over, self._running, self._backwards = False, False, 0
        self.fetch(loader)

    def fetch(self, loader: Loader) -> None:
        """The program asks `loader` for a batch."""
        if not self._feeds or self._backwards:
            return
        if loader not in self._feeds:
            self._running = False
        elif not self._running:
            self._begin()

    def opened(self, loader: Loader, waited_ns: int) -> None:
        """The loader is ready: its workers have been started."""
        if loader in self._feeds:
            before = self._fetched.get(loader, Fetched())
            self._fetched[loader] = before._replace(waited_ns=before.waited_ns + waited_ns)

    def fetched(self, loader: Loader, items: Optional[int], waited_ns: int) -> None:
        """The program got a batch."""
        self._fetched[loader] = self._fetched.get(loader, Fetched()).plus(items, waited_ns)

    def exhausted(self, loader: Loader) -> None:
        """The loader has no more batches: an epoch ends."""
        if loader not in self._feeds:
            return
        if self._backwards:
            self._epoch_over = True  # the last gradients have yet to be applied
        else:
            self._running = False

    def backward(self, loss: Any) -> None:
        self._backwards += 1
        self._loss = loss
        self._evaluating = False
        if self.steps and (not self._feeds or not self._running):  # a batch that leads to gradients is trained on
            self._feeds |= set(self._fetched)

    def mode(self, training: bool) -> None:
        """A model was switched to training or to evaluation."""
        if self._feeds or self._backwards or not self.steps:
            return  # with loaders, those show what is evaluation
        if not training:
            self._evaluating = True
        elif self._evaluating:
            self._begin()

    def stepped(self, optimizer: Any, now_ns: int) -> None:
        """An optimizer has stepped."""
        if self.stopped or not self._counts(optimizer):
            return
        self.steps += 1
        if self._running:
            self._record(optimizer, now_ns)
        else:
            self._loop.begin()
        self._running = not self._epoch_over
        self._epoch_over = False
        self._backwards, self._loss, self._fetched = 0, None, {}

    def _record(self, optimizer: Any, now_ns: int) -> None:
        feeds = [fetched for loader, fetched in self._fetched.items() if loader in self._feeds]
        if not self._explained:
            self._explained = True
            self._loop.explain(self._explanation(optimizer, feeds))
        items = feeds[0].items if feeds else None
        waited_ns = sum(fetched.waited_ns for fetched in feeds)
        self.stopped = not self._loop.step(waited_ns, now_ns, items, self._loss)

    def _begin(self) -> None:
        self._running, self._evaluating = True, False
        self._fetched = {}
        self._loop.begin()

    def _counts(self, optimizer: Any) -> bool:
        """Of several optimizers, the first one to step marks the end of a step."""
        counted = self._counted() if self._counted is not None else None
        if counted is None:
            self._counted = weakref.ref(optimizer)
            return True
        if counted is not optimizer and len(self._others) < 8:
            self._others.append(type(optimizer).__name__)
        return counted is optimizer

    def _explanation(self, optimizer: Any, feeds: List[Fetched]) -> str:
        text = f"training steps counted at {type(optimizer).__name__}.step()"
        if self._others:
            text += f" (other optimizers step too: {', '.join(sorted(set(self._others)))})"
        if self._backwards > 1:
            text += f", {self._backwards} backward passes each"
        if not feeds:
            return text + "; no DataLoader, so the items of a step are unknown"
        batches = "one batch" if feeds[0].batches == 1 else f"{feeds[0].batches} batches"
        text += f"; {batches} a step from a DataLoader"
        if len(feeds) > 1:
            text += f", the first of {len(feeds)}, whose items are counted"
        return text if feeds[0].items is not None else text + ", of unknown size"
