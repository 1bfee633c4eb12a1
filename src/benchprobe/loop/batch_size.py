"""How many items a batch holds: a dimension of its first tensor, the first one unless the loader says otherwise.

The first dimension need not be the batch: it may be time, channels or the nodes of several graphs. It is trusted only if
something else agrees, the loader's own batch size or other tensors of the batch; otherwise there is a warning.
"""

from __future__ import annotations

from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, Callable, Iterator, Optional, Tuple

MAX_DEPTH = 4  # how deep to look into a batch
MAX_WIDTH = 64  # and at how many of its parts
LARGEST = 1 << 63

Access = Callable[[Any], Any]
BatchSize = Callable[[Any], Optional[int]]


def find(batch: Any) -> Optional[int]:
    """The size of `batch`, or None if it holds no tensor or array."""
    return next((_size_along(tensor, 0) for _, tensor in _tensors(batch, MAX_DEPTH)), None)


def finder(loaded: Optional[int] = None, doubt: Callable[[str], None] = lambda text: None) -> BatchSize:
    """Like `find` for a series of similar batches: searches the first, then goes straight there.

    `loaded`: the batch size that the loader states. `doubt` gets a warning, once, if nothing confirms the result.
    """
    path: Optional[Tuple[Access, ...]] = None
    dimension, is_known = 0, True

    def size_of(batch: Any) -> Optional[int]:
        nonlocal path, dimension, is_known
        if path is not None:
            try:
                part = batch
                for step in path:
                    part = step(part)
                size = int(part.shape[dimension])
                if 0 <= size < LARGEST:
                    return size if is_known else None
            except Exception:  # the structure of batches has changed
                pass
            path = None  # search again
        if (found := next(_tensors(batch, MAX_DEPTH), None)) is None:
            return None
        path, tensor = found
        chosen = _dimension_of(tensor, batch, loaded, doubt)
        is_known, dimension = chosen is not None, chosen or 0
        return None if chosen is None else _size_along(tensor, chosen)

    return size_of


def of_loader(iterable: Any) -> Optional[int]:
    """The batch size that `iterable` states, as a DataLoader does; None if it states none."""
    try:
        stated = iterable.batch_size
        return stated if type(stated) is int and 0 < stated < LARGEST else None
    except Exception:  # any object of the user, whose attributes may do anything
        return None


def _dimension_of(tensor: Any, batch: Any, loaded: Optional[int], doubt: Callable[[str], None]) -> Optional[int]:
    """Which dimension of `tensor` counts the items of `batch`; None if none can."""
    try:
        shape = [int(size) for size in tensor.shape]
    except Exception:  # symbolic sizes, of a framework's own type
        return 0
    shown = " × ".join(map(str, shape))
    if loaded is not None:
        if shape[0] == loaded or (shape[0] < loaded and loaded not in shape):  # fewer than a whole batch were left
            return 0
        if shape.count(loaded) == 1:
            return shape.index(loaded)
        doubt(f"batch size unknown: the loader says {loaded}, the first tensor is {shown}; give iterate a batch_size")
        return None
    sizes = (_size_along(each, 0) for _, each in islice(_tensors(batch, 2), MAX_WIDTH))
    others = [size for size in sizes if size is not None]
    if len(others) < 2 or set(others) != {shape[0]}:
        doubt(f"took the first dimension ({shown}) for the batch, unconfirmed; if it is not, give iterate a batch_size")
    return 0


def guarded(given: Callable[[Any], Any], complain: Callable[[str], None]) -> BatchSize:
    """The user's own function, made safe: if it fails, the size is unknown and `complain` gets the reason."""

    def size_of(batch: Any) -> Optional[int]:
        try:
            return _checked(int(given(batch)))
        except Exception as error:
            complain(f"batch_size failed: {type(error).__name__}: {error}; items of such steps are unknown")
            return None

    return size_of


def given_once(size: Any, complain: Callable[[str], None]) -> Optional[int]:
    """The size given for all batches; None if it is no integer or, with a complaint, impossible."""
    if type(size) is not int:
        return None
    try:
        return _checked(size)
    except ValueError as error:
        complain(f"batch_size: {error}; items are unknown")
        return None


def _checked(size: int) -> int:
    if not 0 <= size < LARGEST:
        shown = str(size) if abs(size) < LARGEST else "a number beyond 64 bits"
        raise ValueError(f"{shown} cannot be a number of items")
    return size


def _size_along(tensor: Any, dimension: int) -> Optional[int]:
    try:
        return _checked(int(tensor.shape[dimension]))
    except Exception:  # no such dimension, or a symbolic size
        return None


def _tensors(value: Any, depth: int, path: Tuple[Access, ...] = ()) -> Iterator[Tuple[Tuple[Access, ...], Any]]:
    """The tensors in `value`, in order, each with the path to it; one without dimensions holds no batch."""
    shape = getattr(value, "shape", None)
    if shape is not None and not callable(shape):
        if hasattr(shape, "__len__") and len(shape) > 0:
            yield path, value
    elif depth > 0:
        for access, part in _parts(value):
            yield from _tensors(part, depth - 1, (*path, access))


def _parts(value: Any) -> Iterator[Tuple[Access, Any]]:
    if isinstance(value, (str, bytes, bytearray, int, float, complex, type(None))):
        return
    if isinstance(value, (list, tuple)):
        for index, part in enumerate(value[:MAX_WIDTH]):
            yield itemgetter(index), part
    elif hasattr(value, "keys") and hasattr(value, "__getitem__"):  # dict, BatchEncoding, TensorDict…
        for key in list(value.keys())[:MAX_WIDTH]:
            yield itemgetter(key), value[key]
    else:
        names = list(getattr(value, "__dict__", ())) or list(getattr(type(value), "__slots__", ()))
        for name in names[:MAX_WIDTH]:
            if hasattr(value, name):
                yield attrgetter(name), getattr(value, name)
