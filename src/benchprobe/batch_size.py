"""How many items a batch holds: the first dimension of the first tensor found in it."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import Any, Callable, Iterator, Optional, Tuple

MAX_DEPTH = 4  # a batch nested deeper than this is not looked into
MAX_WIDTH = 64  # nor are more than this many of its parts

Access = Callable[[Any], Any]
BatchSize = Callable[[Any], Optional[int]]


def find(batch: Any) -> Optional[int]:
    """The size of `batch`, or None if it holds no tensor or array."""
    found = _search(batch, MAX_DEPTH)
    return None if found is None else _first_dimension(found[1])


def finder() -> BatchSize:
    """A function like `find` for a series of batches alike: it searches the first, then goes straight there."""
    path: Optional[Tuple[Access, ...]] = None

    def size_of(batch: Any) -> Optional[int]:
        nonlocal path
        if path is not None:
            try:
                part = batch
                for step in path:
                    part = step(part)
                return int(part.shape[0])
            except Exception:  # the structure changed: search again
                path = None
        found = _search(batch, MAX_DEPTH)
        if found is None:
            return None
        path, tensor = found
        return _first_dimension(tensor)

    return size_of


def guarded(given: Callable[[Any], Any], complain: Callable[[str], None]) -> BatchSize:
    """The user's own function, made safe: when it fails the size is unknown and `complain` is told, once."""
    complained = False

    def size_of(batch: Any) -> Optional[int]:
        nonlocal complained
        try:
            return int(given(batch))
        except Exception as error:
            if not complained:
                complained = True
                complain(f"batch_size failed: {type(error).__name__}: {error}; items are unknown for such steps")
            return None

    return size_of


def _first_dimension(tensor: Any) -> Optional[int]:
    try:
        return int(tensor.shape[0])
    except Exception:
        return None


def _search(value: Any, depth: int) -> Optional[Tuple[Tuple[Access, ...], Any]]:
    """The way to the first tensor below `value`, and that tensor."""
    shape = getattr(value, "shape", None)
    if shape is not None and not callable(shape):
        try:
            return ((), value) if len(shape) > 0 else None  # a tensor without dimensions holds no batch
        except TypeError:
            return None
    if depth == 0:
        return None
    for access, part in _parts(value):
        found = _search(part, depth - 1)
        if found is not None:
            return (access, *found[0]), found[1]
    return None


def _parts(value: Any) -> Iterator[Tuple[Access, Any]]:
    if isinstance(value, (str, bytes, bytearray, int, float, complex, type(None))):
        return
    if isinstance(value, (list, tuple)):
        for index, part in enumerate(value[:MAX_WIDTH]):
            yield itemgetter(index), part
    elif hasattr(value, "keys") and hasattr(value, "__getitem__"):  # dict, BatchEncoding, TensorDict…
        for _, key in zip(range(MAX_WIDTH), list(value.keys())):
            yield itemgetter(key), value[key]
    else:
        names = list(getattr(value, "__dict__", ())) or list(getattr(type(value), "__slots__", ()))
        for name in names[:MAX_WIDTH]:
            if hasattr(value, name):
                yield attrgetter(name), getattr(value, name)
