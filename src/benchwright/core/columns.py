"""Operations on columns of numbers: in Python for a few thousand, with numpy for an `array` of millions.

numpy is imported only for that many, so that small reports stay quick.
"""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from numpy.typing import NDArray

MANY = 1 << 13


def joined(series: Sequence[Sequence[float]]) -> Sequence[float]:
    """All series concatenated."""
    if len(series) == 1:
        return series[0]
    if not any(isinstance(values, array) for values in series):
        return [value for values in series for value in values]
    column = array("d")
    for values in series:
        column.extend(values)
    return column


def as_list(values: object) -> list[float]:
    """An `array` as a list: the `enc_hook` of msgspec for whatever holds samples."""
    if isinstance(values, array):
        return values.tolist()
    raise NotImplementedError(f"{type(values).__name__} cannot be written")


def ordered(values: Sequence[float]) -> Sequence[float]:
    """Sorted; none may be NaN."""
    if not _are_many(values):
        return sorted(values)
    numpy = _numpy_library()
    column = values[:]
    numpy.frombuffer(column, dtype=column.typecode).sort()
    return column


def median(values: Sequence[float], *, overwrite: bool = False) -> float:
    """Like `statistics.median`; NaN if any is NaN. `overwrite`: may reorder the values, which saves a copy."""
    if _are_many(values):
        numpy = _numpy_library()
        return float(numpy.median(_numpy(values), overwrite_input=overwrite))
    return math.nan if any(map(math.isnan, values)) else float(statistics.median(values))


def not_finite(values: Sequence[float]) -> int:
    """How many are NaN or infinite."""
    if _are_many(values):
        numpy = _numpy_library()
        return len(values) - int(numpy.count_nonzero(numpy.isfinite(_numpy(values))))
    return len(values) - sum(map(math.isfinite, values))


def first_not_finite(values: Sequence[float]) -> int | None:
    """The index of the first that is NaN or infinite."""
    if not not_finite(values):
        return None
    return next(place for place, value in enumerate(values) if not math.isfinite(value))


def not_positive(values: Sequence[float]) -> int:
    """How many are zero or less."""
    if _are_many(values):
        numpy = _numpy_library()
        return int(numpy.count_nonzero(_numpy(values) <= 0))
    return sum(1 for value in values if value <= 0)


def ratios(numerators: Sequence[float], denominators: array[float]) -> array[float]:
    """Each over its denominator, for denominators above 0; a single numerator is used for all."""
    if _are_many(denominators):
        numpy = _numpy_library()
        below = _numpy(denominators)
        over = _numpy(numerators) if isinstance(numerators, array) and len(numerators) > 1 else numerators[0]
        where = below > 0
        with numpy.errstate(all="ignore"):  # overflow becomes infinite, as in Python's own arithmetic
            if not where.all():
                return _column((over[where] if isinstance(over, type(below)) else over) / below[where], "d")
            column = _empty(len(below))
            numpy.divide(over, below, out=_numpy(column))
            return column
    if len(numerators) == 1:
        return array("d", [numerators[0] / value for value in denominators if value > 0])
    return array("d", [n / value for n, value in zip(numerators, denominators, strict=True) if value > 0])


def difference(left: array[float], right: array[float]) -> array[float]:
    """Each of `left` minus its partner in `right`."""
    if _are_many(left):
        numpy = _numpy_library()
        column = _empty(len(left))
        numpy.subtract(_numpy(left), _numpy(right), out=_numpy(column))
        return column
    return array("d", [a - b for a, b in zip(left, right, strict=True)])


def magnitudes(values: Sequence[float]) -> tuple[float, float]:
    """The smallest and the largest absolute value other than 0; (0, 0) if there is none, NaN if any is NaN."""
    if _are_many(values):
        numpy = _numpy_library()
        sizes = numpy.abs(_numpy(values))
        sizes = sizes[sizes != 0]
        return (float(sizes.min()), float(sizes.max())) if len(sizes) else (0.0, 0.0)
    present = [abs(value) for value in values if value]
    if any(map(math.isnan, present)):
        return math.nan, math.nan
    return (min(present), max(present)) if present else (0.0, 0.0)


def products(left: Sequence[float], right: Sequence[float]) -> Sequence[float]:
    """Each of `left` times its partner in `right`."""
    if _are_many(left) and _are_many(right):
        numpy = _numpy_library()
        column = _empty(len(left))
        with numpy.errstate(all="ignore"):
            numpy.multiply(_numpy(left), _numpy(right), out=_numpy(column))
        return column
    return [a * b for a, b in zip(left, right, strict=True)]


def above(values: array[float], limit: float) -> array[float]:
    """The values larger than `limit`."""
    if _are_many(values):
        numbers = _numpy(values)
        return _column(numbers[numbers > limit], values.typecode)
    return array(values.typecode, [value for value in values if value > limit])


def _are_many(values: Sequence[float]) -> TypeGuard[array[Any]]:
    return isinstance(values, array) and len(values) >= MANY


def _numpy_library() -> Any:
    import numpy

    return numpy


def _numpy(values: array[Any]) -> NDArray[Any]:
    """A view of an array, not a copy."""
    view: NDArray[Any] = _numpy_library().frombuffer(values, dtype=values.typecode)
    return view


def _empty(length: int) -> array[float]:
    return array("d", bytes(8)) * length


def _column(numbers: NDArray[Any], typecode: str) -> array[Any]:
    column: array[Any] = array(typecode)
    column.frombytes(numbers.astype(typecode, copy=False).tobytes())
    return column
