"""Where metrics go, and the iterator that times the body of a loop."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from voir.helpers import current_overseer
from voir.phase import StopProgram
from voir.smuggle import SmuggleWriter

from . import unknown_names
from .toggles import earlystop_count, get_observation_count

__all__ = ["StopProgram", "TimedIterator", "file_push", "give_push", "sumggle_push"]
Push = Callable[..., Any]
_END = object()


def file_push(file: IO[str] | SmuggleWriter | None = None) -> Push:
    """Writes each metric as a line of JSON; to standard output if no file is named."""

    def push(**metric: Any) -> None:
        print(json.dumps({"task": "train", **metric}), file=file or sys.stdout, flush=True)

    return push


def sumggle_push() -> Push:
    """Hides metrics in standard output. (The name is benchmate's.)"""
    return file_push(SmuggleWriter(sys.stdout))


def give_push() -> Push:
    """Gives metrics to voir; prints them where voir does not run the program."""
    overseer = current_overseer.get()
    push: Push = file_push() if overseer is None else overseer.give
    return push


class CPUEvent:
    """A moment, with the methods of a device's event."""

    def __init__(self, enable_timing: bool = True) -> None:
        self.at_s = 0.0

    def record(self) -> None:
        self.at_s = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: CPUEvent) -> float:
        """In milliseconds."""
        return (end.at_s - self.at_s) * 1000.0


class TimedIterator:
    """Iterates over `loader` and notes when each body of the loop was done. Nothing waits for the device in between: rates are
    computed and pushed at the end of an epoch, or when there are `earlystop` of them. Then the loop ends, with StopProgram if
    asked to. The wait for the first batch of an epoch is not counted. Only rank 0 pushes."""

    def __init__(
        self,
        loader: Iterable[Any],
        event_fn: Callable[..., Any] | None = None,
        rank: int | None = None,
        push: Push | None = None,
        device: Any = None,
        earlystop: int | None = -1,
        raise_stop_program: bool = False,
        batch_size_fn: Callable[[Any], int] | None = None,
    ) -> None:
        self.loader = loader
        self.event_fn = event_fn or CPUEvent
        self.rank = int(os.getenv("RANK", "0")) if rank is None else rank
        self.message_push = push or file_push()
        self.device = device
        self.early_stop = get_observation_count(earlystop_count() if earlystop == -1 else earlystop)
        self.raise_stop_program = raise_stop_program
        self.batch_size_fn = batch_size_fn
        self.task = "train"
        self.pushed = 0
        self.waiting: list[tuple[Any, Any, int, float]] = []  # start, end, batch size, time
        self.previous: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.loader)
        batch = next(batches, _END)  # the wait for the first one is not timed
        self.start()
        try:
            while batch is not _END and not self.is_done():
                yield from self.timed(batch)
                batch = _END if self.is_done() else next(batches, _END)
        finally:
            self.push()
        if self.is_done() and self.raise_stop_program:
            raise StopProgram()

    def timed(self, batch: Any) -> Iterator[Any]:
        size = self.batch_size(batch)
        yield batch
        self.step(size)

    def start(self) -> None:
        self.message(progress=(self.count, self.early_stop), task="early_stop")
        self.previous = self.moment()

    def moment(self) -> Any:
        event = self.event_fn(enable_timing=True)
        event.record()
        return event

    def step(self, size: int) -> None:
        """Notes that `size` items were worked on since the last step."""
        if self.is_done():
            return
        end = self.moment()
        self.waiting.append((self.previous, end, size, time.time()))
        self.previous = end
        self.message(progress=(self.count, self.early_stop), task="early_stop")

    @property
    def count(self) -> int:
        return self.pushed + len(self.waiting)

    def is_done(self) -> bool:
        return self.early_stop is not None and self.count >= self.early_stop

    def batch_size(self, batch: Any) -> int:
        if self.batch_size_fn is not None:
            return self.batch_size_fn(batch)
        return len(batch[0]) if isinstance(batch, (list, tuple)) and len(batch) == 2 else len(batch)

    def on_iterator_stop_iterator(self) -> None:
        """Called where timing is over, for work that waits for the device."""

    def push(self) -> None:
        """Pushes all that was noted."""
        self.on_iterator_stop_iterator()
        waiting, self.waiting = self.waiting, []
        self.pushed += len(waiting)
        for start, end, size, at in waiting:
            end.synchronize()
            elapsed_s = start.elapsed_time(end) / 1000.0
            rate = self.over_all_ranks(size) / max(elapsed_s, 1e-9)
            self.message(rate=rate, units="items/s", task=self.task, time=at, elapsed=elapsed_s)

    def over_all_ranks(self, size: int) -> int:
        """The items of all processes that train together; exact on rank 0."""
        torch = sys.modules.get("torch")  # without it there is no group
        if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
            return size
        total = torch.tensor([size], dtype=torch.int64, device=self.device)
        torch.distributed.reduce(total, dst=0)
        return int(total.item())

    def message(self, **metric: Any) -> None:
        if self.rank == 0:
            self.message_push(**metric)


class ManualTimedIterator(TimedIterator):
    """For gradient accumulation: the loop's body calls `step` when its optimiser did."""

    gathered = 0

    def timed(self, batch: Any) -> Iterator[Any]:
        self.gathered += self.batch_size(batch)
        yield batch

    def step(self, size: int | None = None) -> None:
        super().step(self.gathered if size is None else size)
        self.gathered = 0


__getattr__ = unknown_names(__name__)
