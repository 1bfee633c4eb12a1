"""How many items a batch holds: a dimension of the first tensor found in it, the first one unless the loader says otherwise.

The first dimension need not be the batch: it may be time, channels or the nodes of several graphs. It is taken for the
batch without a word only where something else agrees: the loader's own batch size, or other tensors of the batch.
"""

from __future__ import annotations

from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, Callable, Iterator, Optional, Tuple

MAX_DEPTH = 4  # a batch nested deeper than this is not looked into
MAX_WIDTH = 64  # nor are more than this many of its parts
LARGEST = 1 << 63

Access = Callable[[Any], Any]
BatchSize = Callable[[Any], Optional[int]]


def find(batch: Any) -> Optional[int]:
    """The size of `batch`, or None if it holds no tensor or array."""
    found = _search(batch, MAX_DEPTH)
    return None if found is None else _first_dimension(found[1])


def finder(loaded: Optional[int] = None, doubt: Callable[[str], None] = lambda text: None) -> BatchSize:
    """A function like `find` for a series of batches alike: it searches the first, then goes straight there.

    `loaded`: the batch size that the loader states. `doubt` is told, once, if nothing agrees with what was found.
    """
    path: Optional[Tuple[Access, ...]] = None
    dimension = 0
    is_known = True

    def size_of(batch: Any) -> Optional[int]:
        nonlocal path, dimension, is_known
        if path is not None:
            try:
                part = batch
                for step in path:
                    part = step(part)
                return _checked(int(part.shape[dimension])) if is_known else None
            except Exception:  # the structure changed: search again
                path = None
        found = _search(batch, MAX_DEPTH)
        if found is None:
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
    except Exception:
        return None


def _dimension_of(tensor: Any, batch: Any, loaded: Optional[int], doubt: Callable[[str], None]) -> Optional[int]:
    """Which dimension of `tensor` counts the items of `batch`; None if none can."""
    try:
        shape = [int(size) for size in tensor.shape]
    except Exception:
        return 0
    shown = " × ".join(map(str, shape))
    if loaded is not None:
        if shape[0] == loaded:
            return 0
        if shape.count(loaded) == 1:
            return shape.index(loaded)
        if shape[0] < loaded and loaded not in shape:
            return 0  # fewer than a whole batch were left
        doubt(
            f"the items of a batch are not known: its loader states {loaded}, and its first tensor is {shown}; "
            "give iterate a batch_size"
        )
        return None
    others = [
        size for size in (_first_dimension(each) for each in islice(_tensors(batch, 2), MAX_WIDTH)) if size is not None
    ]
    if len(others) > 1 and set(others) == {shape[0]}:
        return 0
    doubt(
        f"the first dimension of a batch ({shown}) was taken for its items, and nothing else tells how many it has; "
        "if it is something else, give iterate a batch_size"
    )
    return 0


def guarded(given: Callable[[Any], Any], complain: Callable[[str], None]) -> BatchSize:
    """The user's own function, made safe: when it fails the size is unknown and `complain` is told, once."""
    complained = False

    def size_of(batch: Any) -> Optional[int]:
        nonlocal complained
        try:
            return _checked(int(given(batch)))
        except Exception as error:
            if not complained:
                complained = True
                complain(f"batch_size failed: {type(error).__name__}: {error}; items are unknown for such steps")
            return None

    return size_of


def given_once(size: Any, complain: Callable[[str], None]) -> Optional[int]:
    """The size that was given for all batches; None, and `complain` is told, if it can be none. Anything but an integer: None."""
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


def _first_dimension(tensor: Any) -> Optional[int]:
    return _size_along(tensor, 0)


def _size_along(tensor: Any, dimension: int) -> Optional[int]:
    try:
        return _checked(int(tensor.shape[dimension]))
    except Exception:
        return None


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    """Those below `value`, in order."""
    if _search(value, 0) is not None:
        yield value
    elif depth > 0:
        for _, part in _parts(value):
            yield from _tensors(part, depth - 1)


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
