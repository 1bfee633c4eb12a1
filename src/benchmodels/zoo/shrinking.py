"""Smaller variants of models, for the scales tiny and small: fewer repeated layers, tried until one can be called."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import Any, Callable, Iterable, Iterator, Optional

from benchmodels.zoo.base import FULL, TINY, NotInZoo, ZooModel, ZooRequest

IMAGE = {TINY: 64, "small": 128}  # pixels of a side
Change = Callable[[Any], Any]


def image_side(request: ZooRequest, usual: int, least: int = 0) -> int:
    """Pixels: the usual ones at full scale; a model that needs more than the scale's gets them."""
    return usual if request.scale == FULL else min(usual, max(least, IMAGE[request.scale]))


def first_that_runs(candidates: Iterable[Callable[[], ZooModel]]) -> ZooModel:
    """The first that is built and called without an exception; the last exception if none is."""
    torch: Any = import_module("torch")
    last: Optional[Exception] = None
    for make in candidates:
        try:
            made = make()
            with torch.no_grad():
                made.module(*made.args, **made.kwargs)
            return made
        except NotInZoo:
            raise
        except Exception as error:  # the next one may work
            last = error
    assert last is not None
    raise last


def few(value: Any, most: int = 1) -> Any:
    """A number of layers, or a list of such numbers, with none above `most`."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return min(value, most)
    if isinstance(value, (list, tuple)):
        return type(value)(few(each, most) for each in value)
    return value


@contextlib.contextmanager
def replaced(holder: Any, name: str, make: Change) -> Iterator[None]:
    """`holder.name` is `make(holder.name)` meanwhile."""
    before = getattr(holder, name)
    setattr(holder, name, make(before))
    try:
        yield
    finally:
        setattr(holder, name, before)
