"""Turns what a training program does (fetch a batch, backward, optimizer step, evaluate) into the steps of one loop.

With a data loader a step lasts from asking for its batch to asking for the next one, so the steps of an epoch together take
the time of its loop: from starting the loader, workers included, to leaving it. Without one a step ends when the optimizer
has stepped. What a program does between these loops (evaluation, checkpoints) belongs to no step; its time is reported. The
very first step is not recorded: which loader feeds the training is not known yet. Nothing here knows torch: `hooks` reports
what happens, and a `StepLoop` records the steps. Times are stamps in nanoseconds.
"""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Protocol, Sequence, Set, Tuple

INTERVAL_NS = 30_000_000  # steps shorter than this are reported several at once, and not every loss of them is read
Loader = int  # the number of a data loader


class StepLoop(Protocol):
    """Records steps."""

    catching_up: bool  # more is about to be reported that has happened already

    @property
    def steps_at_once(self) -> int:
        """How many steps may be reported together, after the last of them."""

    def begin(self, at_ns: int) -> None:
        """A step began at that time; what lies between it and the last one belongs to none."""

    def step(self, waited_ns: int, items: Optional[int], loss: Any) -> None:
        """The optimizer has stepped: the step is as good as done. `loss`: a number, or one to be read later."""

    def add(self, ends_ns: Sequence[int], waits_ns: Sequence[int], items: Sequence[Optional[int]], loss: Any) -> bool:
        """Steps that ended at those times, with the loss of the first: as `step` and `end` of each, but quicker."""

    def end(self, at_ns: int) -> bool:
        """The step ended at that time, and the next one begins there. Returns False when enough has been measured."""

    def pause(self) -> bool:
        """The program may do something else now. Returns False when enough has been measured."""

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


class Pass:
    """One pass through a loader."""

    def __init__(self, began_ns: int) -> None:
        self.began_ns = began_ns
        self.batches = 0


class TrainingSteps:
    """Follows one training loop; every method is called in the thread that trains, after what it reports."""

    def __init__(self, loop: StepLoop) -> None:
        self.loop = loop
        self._running = False  # whether the start of the current step is known
        self._began_ns = 0
        self._stepped_ns: Optional[int] = None  # when the optimizer stepped, while the end of that step is unknown
        self._evaluating = False
        self._epoch_over = False  # the loader is exhausted, and the last gradients have yet to be applied
        self._may_be_over = False  # it is exhausted, and another step may follow: some loaders fetch a batch ahead
        self._backwards = 0  # since the last step
        self._loss: Any = None
        self._fetched: Dict[Loader, Fetched] = {}  # since the last step, in order of the first fetch
        self._passes: Dict[Loader, Pass] = {}  # the newest of each loader
        self._feeds: Set[Loader] = set()  # loaders whose batches are trained on
        self._carried_ns = 0  # a loop's time after its last step: it is counted with the next step
        self._paused_ns: Optional[int] = None  # since when the program has been doing something else
        self._counted: Optional[weakref.ref[Any]] = None  # the optimizer whose steps are counted
        self._others: List[str] = []
        self._explained = False
        self.steps = 0  # of the optimizer, those not recorded included
        self.left_out_ns: List[int] = []  # how long the program did something else, each time
        self.stopped = False

    @property
    def has_loader(self) -> bool:
        return bool(self._feeds)

    @property
    def steps_at_once(self) -> int:
        """How many more steps may be reported together."""
        if not self._running or self.stopped:
            return 0
        return self.loop.steps_at_once - (self._stepped_ns is not None)  # a step that has yet to end is one of them

    def is_fed_by(self, loader: Loader) -> bool:
        return loader in self._feeds

    def opened(self, loader: Loader, asked_ns: int, ready_ns: int) -> Pass:
        """The program has begun to iterate over `loader`, whose workers have been started."""
        new, last, stepped_ns = Pass(asked_ns), self._passes.get(loader), self._stepped_ns
        self._passes[loader] = new
        if self.stopped:
            return new
        if self._epoch_over and loader in self._feeds:  # what remained of the last epoch was not a step
            self._epoch_over, self._backwards = False, 0
            self._pause(self._began_ns)
        elif stepped_ns is not None and loader in self._feeds and last is not None and last.batches > 1:
            self._end(stepped_ns)  # the last loop was left by `break`, when is unknown
            self._pause(stepped_ns)
        self._ask(loader, asked_ns)
        before = self._fetched.get(loader, Fetched())
        self._fetched[loader] = before._replace(waited_ns=before.waited_ns + ready_ns - asked_ns)
        return new

    def fetched(self, loader: Loader, items: Optional[int], asked_ns: int, got_ns: int) -> None:
        """The program has got a batch."""
        if not self.stopped:
            self._ask(loader, asked_ns)
        if self.stopped:
            return
        before, waited_ns = self._fetched.get(loader), got_ns - asked_ns
        self._fetched[loader] = Fetched(1, items, waited_ns) if before is None else before.plus(items, waited_ns)
        if loader in self._passes:
            self._passes[loader].batches += 1

    def exhausted(self, loader: Loader, now_ns: int) -> None:
        """The loader has no more batches: an epoch ends."""
        ends_step = self._stepped_ns is not None
        self._leave(loader, now_ns)
        if ends_step and loader in self._feeds and not self.stopped:
            self._may_be_over = True
            self._settle()

    def left(self, loader: Loader, which: Pass, now_ns: int) -> None:
        """The program has dropped the iterator of a pass: its loop was left by `break`, if it had not ended."""
        if self._passes.get(loader) is which and which.batches > 1:
            ends_step = self._stepped_ns is not None
            self._leave(loader, now_ns)
            if ends_step and loader in self._feeds:
                self._pause(now_ns)

    def backward(self, loss: Any) -> None:
        if self.stopped:
            return
        if self._stepped_ns is not None:  # several steps for one batch
            self._end(self._stepped_ns)
        if self._may_be_over:
            self._may_be_over, self._epoch_over = False, True
        self._backwards += 1
        self._loss = self._loss if loss is None else loss
        self._evaluating = False
        if self._fetched and self.steps and (not self._feeds or not self._running):
            self._learn_feeds()

    def mode(self, training: bool, now_ns: int) -> None:
        """A model was switched to training or to evaluation."""
        if self.stopped or self._feeds or self._backwards or not self.steps:
            return  # with loaders, those show what is evaluation
        if not training:
            self._evaluating = True
        elif self._evaluating:
            self._pause(self._began_ns)
            self._begin(now_ns)

    def stepped(self, optimizer: Any, now_ns: int) -> None:
        """An optimizer has stepped."""
        if self.stopped or not self.counts(optimizer):
            return
        if self._stepped_ns is not None and not self._end(self._stepped_ns):
            return
        self.steps += 1
        if self._running:
            self._record(optimizer)
            self._stepped_ns = now_ns
            if self._epoch_over or not self._feeds:
                self._end(now_ns)  # else where the next one begins
        else:
            self._begin(now_ns)
        if self._epoch_over:
            self._pause(now_ns)
        self._epoch_over = False
        self._backwards, self._loss, self._fetched = 0, None, {}

    def several(self, stepped: Sequence[Tuple[Any, ...]], fetched: Sequence[Tuple[Any, ...]], loss: Any) -> bool:
        """The same as `backward` with `loss`, `stepped` and `fetched` in turn, with one optimizer and one loader, or without a
        loader; each element holds the arguments, after the method. False: nothing was done, since more is to be considered."""
        optimizer, count = stepped[0][1], len(stepped)
        unsettled = self._epoch_over or self._may_be_over or self._evaluating or self._others or not self._explained
        is_one = self.counts(optimizer) and [each[1] for each in stepped].count(optimizer) == count
        begun = self._stepped_ns is not None or self._backwards > 0 or bool(fetched) != self.has_loader
        if unsettled or not is_one or begun or count > self.steps_at_once or (self._fetched and not fetched):
            return False
        waits_ns: List[int] = [0] * count
        items: List[Optional[int]] = [None] * count
        ends_ns = [each[2] for each in stepped]
        if fetched:
            loader = fetched[0][1]
            before = self._fetched.get(loader)
            if before is None or len(self._fetched) > 1 or [each[1] for each in fetched].count(loader) < count:
                return False
            ends_ns = [each[3] for each in fetched]
            waits_ns = [before.waited_ns, *(each[4] - each[3] for each in fetched)]
            items = [before.items, *(each[2] for each in fetched)]
            self._fetched = {loader: Fetched(1, items[-1], waits_ns[-1])}
            if loader in self._passes:
                self._passes[loader].batches += count
        self.steps, self._began_ns = self.steps + count, ends_ns[-1]
        self.stopped = not self.loop.add(ends_ns, waits_ns[:count], items[:count], loss)
        return True

    def finish(self) -> None:
        """The program has ended."""
        if self._stepped_ns is not None:
            self._end(self._stepped_ns)

    def _ask(self, loader: Loader, asked_ns: int) -> None:
        """The program asked for a batch of `loader`: a step may have ended there, and one may begin."""
        if self._stepped_ns is not None:
            self._end(asked_ns)
        elif self._may_be_over:
            self._pause(self._began_ns)
        if self.stopped or not self._feeds or self._backwards:
            return
        if loader not in self._feeds:
            self._pause(asked_ns)
        elif not self._running:
            self._begin(asked_ns)

    def _leave(self, loader: Loader, now_ns: int) -> None:
        """A loop over `loader` has ended."""
        if self.stopped:
            return
        if loader not in self._feeds:
            if not self._backwards:  # its batches were not trained on
                self._fetched.pop(loader, None)
        elif self._stepped_ns is not None:
            self._end(now_ns)
        elif self._backwards:
            self._epoch_over = True
        elif self._running and not self._may_be_over:
            self._carried_ns += max(0, now_ns - self._began_ns)
            self._pause(now_ns)

    def _learn_feeds(self) -> None:
        """Batches that led to gradients were trained on. A loader that is new was opened for the current step."""
        found = [loader for loader, fetched in self._fetched.items() if fetched.batches]
        began = [p.began_ns for p in map(self._passes.get, found) if p is not None and p.batches]
        self._feeds.update(found)
        if began and not self._running and self._paused_ns is not None:
            fetched = self._fetched
            self._begin(max(min(began), self._paused_ns))
            self._fetched = fetched

    def _record(self, optimizer: Any) -> None:
        feeds = [fetched for loader, fetched in self._fetched.items() if loader in self._feeds]
        if not self._explained:
            self._explained = True
            self.loop.explain(self._explanation(optimizer, feeds))
        waited_ns = sum(fetched.waited_ns for fetched in feeds)
        self.loop.step(waited_ns, feeds[0].items if feeds else 0 if self._feeds else None, self._loss)

    def _end(self, at_ns: int) -> bool:
        """False when enough has been measured."""
        self._stepped_ns, self._began_ns = None, at_ns
        self.stopped = not self.loop.end(at_ns)
        return not self.stopped

    def _begin(self, at_ns: int) -> None:
        if self._paused_ns is not None:
            self.left_out_ns.append(max(0, at_ns - self._paused_ns))
            self._paused_ns = None
        self._running, self._evaluating, self._may_be_over = True, False, False
        self._fetched = {}
        self._began_ns = at_ns
        self.loop.begin(at_ns - self._carried_ns)
        self._carried_ns = 0

    def _pause(self, now_ns: int) -> None:
        """Time from here on belongs to no step."""
        if self._running:
            self._running, self._may_be_over, self._paused_ns = False, False, now_ns
            self._settle()

    def _settle(self) -> None:
        self.stopped = self.stopped or not self.loop.pause()

    def counts(self, optimizer: Any) -> bool:
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
        if not self._feeds:
            return text + "; no DataLoader, so the items of a step are unknown"
        if not feeds:
            return text + "; several steps for each batch from a DataLoader"
        batches = "one batch" if feeds[0].batches == 1 else f"{feeds[0].batches} batches"
        text += f"; {batches} a step from a DataLoader"
        if len(feeds) > 1:
            text += f", the first of {len(feeds)}, whose items are counted"
        return text if feeds[0].items is not None else text + ", of unknown size"
