"""The search for the largest batch that fits: double until one does not, then halve the gap."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look. Sizes are multiples of `multiple`, except below it: there every size is looked at."""

    start: int = 8
    multiple: int = 8
    most: int = 1 << 20
    trials: int = 20
    within: float = 0.0  # the search ends when the largest is known up to this share of it


def next_size(fits: Mapping[int, bool], bounds: Bounds) -> int | None:
    """The size to try after those in `fits` (size → whether it fitted); None: the largest is known.

    What fits is taken to fit at every smaller size, too.
    """
    most = _down(max(1, bounds.most), bounds.multiple)
    if not fits:
        return min(most, _down(max(1, bounds.start), bounds.multiple))
    largest = max((size for size, fitted in fits.items() if fitted), default=0)
    too_large = min((size for size, fitted in fits.items() if not fitted and size > largest), default=None)
    if too_large is None:
        return None if largest >= most else min(most, _down(2 * largest, bounds.multiple))
    if largest and too_large - largest <= bounds.within * largest:
        return None
    # Below the first multiple the steps are of one; above it they are of the multiple.
    step = bounds.multiple if too_large > bounds.multiple else 1
    middle = _down((largest + too_large) // 2, step)
    if middle <= largest:
        middle = _down(largest, step) + step
    return middle if largest < middle < too_large else None


def _down(size: int, step: int) -> int:
    """The nearest multiple of `step` that is not larger; a size below the first stays as it is."""
    return size - size % step if size >= step else size
