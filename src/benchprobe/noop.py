"""`iterate`, `give` and `phase` of an unmeasured program: they do nothing, and hold the documentation."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, TypeVar, Union

T = TypeVar("T")


def iterate(
    name: str,
    iterable: T,
    report_batch: bool = True,
    ignore_loading: bool = False,
    batch_size: Union[int, Callable[[Any], int], None] = None,
    unit: Optional[str] = None,
) -> T:
    """`for batch in iterate("train", loader)`: times each step of the loop.

    `iterable`: anything that `for` or `async for` takes. `batch_size`: the items of a batch, as a number or a function
    of the batch; by default it is read from the first tensor in each batch: the dimension that has the loader's
    `batch_size`, else the first. `unit`: what the items are ("tokens", "images", "B", "FLOP"), so that the rate
    is in tokens/s. The loop that counts (the one named "train", unless another was asked for) ends early,
    as if exhausted, once it was measured enough; begun again, it continues the same measurement, and ends at once if
    that is complete. `report_batch` and `ignore_loading` are accepted for compatibility and have no effect
    (time spent waiting for data is always recorded separately). Inert, this returns the iterable itself.
    """
    return iterable


def give(**values: Any) -> None:
    """`give(loss=loss)`: records values of this step: numbers, texts, tensors with one number.

    A tensor on a device is read later, so the loop never waits for it; do not change it in place.
    Outside of loops the values are recorded with their time. Inert, this does nothing.
    """


@contextmanager
def phase(name: str) -> Iterator[None]:
    """`with phase("validate"):` (or as a decorator) records when that part of the program begins and ends."""
    yield
