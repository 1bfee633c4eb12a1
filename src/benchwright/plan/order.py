"""The order in which interleaved benchmarks are launched.

Each block holds one launch of every benchmark, so that a block's launches can be compared as pairs. Over the blocks the
order is balanced: every benchmark stands equally often in every place and follows every other one equally often (a
Williams design), so that neither drift of the machine nor the effect of the predecessor favours one of them.
For two benchmarks that is A B, B A, A B, …
"""

from __future__ import annotations


def williams_rows(count: int) -> list[tuple[int, ...]]:
    """Rows of a Williams design for `count` treatments: `count` rows if even, twice as many if odd."""
    if count < 1:
        return []
    zigzag = [0]
    low, high = 1, count - 1
    while len(zigzag) < count:
        zigzag.append(low)
        low += 1
        if len(zigzag) < count:
            zigzag.append(high)
            high -= 1
    rows = [tuple((place + shift) % count for place in zigzag) for shift in range(count)]
    if count % 2:
        rows += [tuple(reversed(row)) for row in rows]
    return rows


def balanced_blocks(count: int, blocks: int, *, start: int = 0) -> list[tuple[int, ...]]:
    """The order within each of `blocks` blocks of `count` benchmarks; `start` rotates the first row."""
    rows = williams_rows(count)
    return [rows[(start + block) % len(rows)] for block in range(blocks)] if rows else []
