"""Smaller variants of models, for the scales tiny and small: fewer repeated layers, tried until one can be called."""

from __future__ import annotations

import contextlib
from functools import partial
from importlib import import_module
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence

from benchmodels.zoo.base import FULL, NOT_POSSIBLE, TINY, NotInZoo, ZooModel, ZooRequest

IMAGE = {TINY: 64, "small": 128}  # pixels of a side
MOST_PARAMETERS = 30_000_000  # at scale tiny
Change = Callable[[Any], Any]


class TooLarge(Exception):
    """More parameters than scale tiny has."""

    def __init__(self, parameters: int) -> None:
        super().__init__(f"{parameters / 1e6:,.0f} M parameters")
        self.parameters = parameters


def refuse_large(request: ZooRequest, module: Any) -> None:
    """TooLarge for a model that scale tiny has no room for."""
    count = sum(each.numel() for each in module.parameters())
    if request.scale == TINY and count > MOST_PARAMETERS:
        raise TooLarge(count)


def refuse_large_plan(request: ZooRequest, make: Callable[[], Any]) -> None:
    """The same before `make` spends memory on it, as far as it can be made without."""
    if request.scale != TINY:
        return
    torch: Any = import_module("torch")
    try:
        with torch.device("meta"):
            planned = make()
    except Exception:  # some read values while they are made
        return
    refuse_large(request, planned)


def too_large(sizes: Iterable[int]) -> NotInZoo:
    text = f"its smallest variant has {min(sizes) / 1e6:,.0f} M parameters, and tiny models have at most 30 M"
    return NotInZoo(f"{text}; use --scale small or full", NOT_POSSIBLE)


def image_side(request: ZooRequest, usual: int, least: int = 0) -> int:
    """Pixels: the usual ones at full scale; a model that needs more than the scale's gets them."""
    return usual if request.scale == FULL else min(usual, max(least, IMAGE[request.scale]))


def first_that_runs(candidates: Iterable[Callable[[], ZooModel]]) -> ZooModel:
    """The first that is built and called without an exception; the last exception if none is."""
    torch: Any = import_module("torch")
    last: Optional[Exception] = None
    large: List[int] = []
    for make in candidates:
        try:
            made = make()
            with torch.no_grad():
                made.module(*made.args, **made.kwargs)
            return made
        except NotInZoo:
            raise
        except TooLarge as error:
            large.append(error.parameters)
        except Exception as error:  # the next one may work
            last = error
    if large:
        raise too_large(large)
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


def narrow(value: Any, divisor: int, least: int) -> Any:
    """A width, or a list of widths, divided where it can be; none gets below `least`."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value // divisor if value % divisor == 0 and value // divisor >= least else value
    if isinstance(value, (list, tuple)):
        return type(value)(narrow(each, divisor, least) for each in value)
    return value


# Layers by the arguments of their constructors that are widths, in order.
LAYERS = {
    "Linear": ("in_features", "out_features"),
    **dict.fromkeys(("Conv1d", "Conv2d", "Conv3d"), ("in_channels", "out_channels")),
    **dict.fromkeys(("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"), ("in_channels", "out_channels")),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), ("num_features",)),
    "LayerNorm": ("normalized_shape",),
}
CLASSES = 1000  # outputs, not a width
NARROWEST = 4


@contextlib.contextmanager
def narrower_layers(divisor: int) -> Iterator[None]:
    """Layers made inside have widths divided, all alike: for networks whose widths are no arguments. A trial call shows
    whether they fit together."""
    nn: Any = import_module("torch.nn")
    with contextlib.ExitStack() as stack:
        for name, widths in LAYERS.items():
            stack.enter_context(replaced(getattr(nn, name), "__init__", partial(_narrowing, widths, divisor)))
        yield


def _narrowing(widths: Sequence[str], divisor: int, init: Any) -> Any:
    def width(value: Any) -> Any:
        return value if value == CLASSES else narrow(value, divisor, NARROWEST)

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        given = {**dict(zip(widths, args)), **{name: kwargs.pop(name) for name in widths if name in kwargs}}
        if kwargs.get("groups", 1) == given.get("in_channels"):  # one for each channel
            kwargs["groups"] = width(kwargs["groups"])
        init(self, *(width(given[name]) for name in widths), *args[len(widths) :], **kwargs)

    return made


@contextlib.contextmanager
def replaced(holder: Any, name: str, make: Change) -> Iterator[None]:
    """`holder.name` is `make(holder.name)` meanwhile."""
    before = getattr(holder, name)
    setattr(holder, name, make(before))
    try:
        yield
    finally:
        setattr(holder, name, before)
