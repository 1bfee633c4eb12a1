"""The order in which interleaved benchmarks are launched.

Each block holds one launch of every benchmark, so that a block's launches can be compared as pairs. Over the blocks the
order is balanced: every benchmark stands equally often in every place and follows every other one equally often (a
Williams design), so that neither drift of the machine nor the effect of the predecessor favours one of them.
For two benchmarks that is A B, B A, A B, …; where a verdict is wanted it is random within that, by the run's seed, so that no
rhythm of the machine can keep step with it.
"""

from __future__ import annotations

import random

# Four blocks of two benchmarks: balanced, and a block is as often like the one before it as not. Strict alternation would
# let correlated noise pass for a difference more often (AR .6, 20 pairs: 1.5 % instead of 1 %).
_FOUR_BLOCKS = ((0, 0, 1, 1), (0, 1, 1, 0), (1, 1, 0, 0), (1, 0, 0, 1))


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


def random_blocks(count: int, blocks: int, *, seed: int) -> list[tuple[int, ...]]:
    """The same, but random: balanced after every 4 blocks of two benchmarks, or after every Williams design."""
    chance = random.Random(seed)  # noqa: S311
    rows, made = williams_rows(count), list[tuple[int, ...]]()
    while rows and len(made) < blocks:
        if count == 2:
            made += [rows[row] for row in _FOUR_BLOCKS[_below(4, chance)]]
        else:
            made += _shuffled(rows, chance)
    return made[:blocks]


def _shuffled(rows: list[tuple[int, ...]], chance: random.Random) -> list[tuple[int, ...]]:
    left = list(rows)
    return [left.pop(_below(len(left), chance)) for _ in rows]


def _below(count: int, chance: random.Random) -> int:
    """A number below `count`. `random()` is the one method whose numbers no version of Python changes."""
    return int(chance.random() * count)
