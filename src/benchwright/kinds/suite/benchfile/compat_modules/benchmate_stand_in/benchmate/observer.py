"""Watches a training loop: its loader is timed, its losses are kept until nothing is being timed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from voir.helpers import current_overseer

from . import unknown_names
from .metrics import ManualTimedIterator, Push, TimedIterator, give_push, sumggle_push


class BenchObserver:
    """`loader`, `criterion` and `optimizer` wrap what their names say. `stdout`: metrics are hidden in standard output, for
    processes that voir does not run. Other arguments are TimedIterator's."""

    def __init__(
        self,
        *args: Any,
        backward_callback: Callable[[], Any] | None = None,
        step_callback: Callable[[], Any] | None = None,
        stdout: bool = False,
        rank: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.args, self.kwargs = args, kwargs
        self.backward_callback, self.step_callback = backward_callback, step_callback
        self.rank = int(os.getenv("RANK", "0")) if rank is None else rank
        self.task = "train"
        self.pusher: Push = sumggle_push() if stdout else give_push()
        self.losses: list[tuple[Any, float]] = []
        self.instance: TimedIterator | None = None

    def loader(self, loader: Iterable[Any], custom_step: bool = False) -> Any:
        """Times each body of a loop over it; once: a second one is what the first wraps."""
        if self.instance is not None:
            return self.instance.loader
        timed = ManualTimedIterator if custom_step else TimedIterator
        self.instance = timed(loader, *self.args, **{**self.kwargs, "rank": self.rank, "push": self.pusher})
        self.instance.task = self.task
        self.instance.on_iterator_stop_iterator = self.on_iterator_stop_iterator  # type: ignore[method-assign]
        return self.instance

    def iterate(self, iterator: Iterable[Any], custom_step: bool = False) -> Any:
        return self.loader(iterator, custom_step)

    def original_dataloader(self) -> Any:
        return self.instance

    def step(self) -> None:
        """One optimiser step, where `custom_step` was asked for."""
        if not isinstance(self.instance, ManualTimedIterator):
            raise RuntimeError("step() needs a loader with custom_step=True")
        self.instance.step()

    def record_loss(self, loss: Any) -> Any:
        if self.rank == 0:
            self.losses.append((loss.detach() if hasattr(loss, "detach") else loss, time.time()))
        return loss

    def record_metric(self, **metric: Any) -> None:
        self.pusher(**{"time": time.time(), **metric})

    def on_iterator_stop_iterator(self) -> None:
        losses, self.losses = self.losses, []
        for loss, at in losses:
            self.pusher(loss=loss.item() if hasattr(loss, "item") else loss, task=self.task, time=at)

    def criterion(self, criterion: Callable[..., Any]) -> Callable[..., Any]:
        """Records each loss, and calls back after its `backward`."""

        def recorded(*args: Any, **kwargs: Any) -> Any:
            loss = criterion(*args, **kwargs)
            if self.backward_callback is not None:
                loss.backward = followed(loss.backward, self.backward_callback)
            return self.record_loss(loss)

        return recorded

    def optimizer(self, optimizer: Any) -> Any:
        """Calls back after each of its steps."""
        if self.step_callback is not None:
            step = followed(optimizer.step, self.step_callback)
            # torch looks at these of a bound method
            step.__self__, step.__func__ = optimizer.step.__self__, optimizer.step.__func__  # type: ignore[attr-defined]
            optimizer.step = step
        return optimizer

    def override_return_value(self, function: Any, override: Callable[[Any], Any]) -> None:
        """Puts what `override` makes of it in the place of what the function returns; under voir only."""
        import ptera

        overseer = current_overseer.get()
        if overseer is None:
            raise RuntimeError("override_return_value needs voir: run the script with voir")
        probe = overseer.probe(f"{ptera.refstring(function)}() as retval", overridable=True)
        probe["retval"].override(override)


def followed(function: Callable[..., Any], callback: Callable[[], Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        callback()
        return result

    return called


__getattr__ = unknown_names(__name__)
