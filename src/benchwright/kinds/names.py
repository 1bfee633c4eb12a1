"""Unique names for benchmarks that share one."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import takewhile

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.secrets import redact_words
from benchwright.kinds.command_words import read_line

_LONGEST = 60  # characters; a name is read in tables


def with_unique_names(benchmarks: Sequence[Benchmark], shared: Collection[str] = ()) -> list[Benchmark]:
    """The same, a second `train.py` called `train.py-2`, so that commands given together have distinct names; scripts of
    different folders by these. `shared`: names of files that others have, which are not among these benchmarks."""
    taken: set[str] = set()
    unique = []
    for benchmark in _by_folder(benchmarks, shared):
        name, number = benchmark.name, 2
        while name in taken:
            name, number = f"{benchmark.name}-{number}", number + 1
        taken.add(name)
        unique.append(msgspec.structs.replace(benchmark, name=name) if name != benchmark.name else benchmark)
    return unique


def _by_folder(benchmarks: Sequence[Benchmark], shared: Collection[str]) -> list[Benchmark]:
    """Scripts of the same name with their folder's: `bert/main.py` and `gpt2/main.py`."""
    times = Counter(b.name for b in benchmarks)
    found = []
    for benchmark in benchmarks:
        path = benchmark.source.partition("::")[0]
        name = os.path.basename(path)
        alike = times[benchmark.name] > 1 or name in shared
        if alike and benchmark.name.startswith(name) and path.endswith(".py"):
            folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
            benchmark = msgspec.structs.replace(
                benchmark, name=f"{folder}/{benchmark.name}" if folder else benchmark.name
            )
        found.append(benchmark)
    return found


def told_apart(benchmarks: Sequence[Benchmark]) -> list[Benchmark]:
    """Commands of one name are called by the words in which they differ: `sleep 0.1` and `sleep 0.2`."""
    groups: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks:
        groups.setdefault(benchmark.name, []).append(benchmark)
    names = {id(b): name for same in groups.values() for b, name in zip(same, _names(same), strict=True)}
    return with_unique_names([msgspec.structs.replace(b, name=names[id(b)]) for b in benchmarks])


def _names(same: Sequence[Benchmark]) -> list[str]:
    """Distinct names for benchmarks of one name; the old one where words would be too long, or reveal a secret."""
    if len(same) == 1:
        return [same[0].name]
    lines = [words_of(b) for b in same]
    names = []
    for benchmark, line, words in zip(same, lines, _differing(lines), strict=True):
        says_it = bool(words) and os.path.basename(words[0]) == benchmark.name  # old/main.py and new/main.py
        name = " ".join((*([] if says_it else [benchmark.name]), *map(_shown, words)))
        fits = len(name) <= _LONGEST and name.isprintable() and redact_words(line) == tuple(line)
        names.append(name if fits else benchmark.name)
    return names


def words_of(benchmark: Benchmark) -> list[str]:
    """Of its command line, without the operators of a shell."""
    work = benchmark.workload
    return [word.text for word in read_line(work.words[0]).words if not word.operator] if work.shell else [*work.words]


def _shown(word: str) -> str:
    return word if word and not any(c.isspace() for c in word) else shlex.quote(word)


def _differing(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Of each line the words that not all share, with the option that a value belongs to."""
    if len({len(line) for line in lines}) == 1:
        places = [n for n, words in enumerate(zip(*lines, strict=True)) if len(set(words)) > 1]
        return [_with_option(line, places) for line in lines]
    start = _shared(lines)
    end = _shared([line[start:][::-1] for line in lines])
    return [_with_option(line, range(start, len(line) - end)) for line in lines]


def _shared(lines: Sequence[Sequence[str]]) -> int:
    """How many words all of them begin with."""
    return sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, zip(*lines, strict=False)))


def _with_option(line: Sequence[str], places: Sequence[int]) -> list[str]:
    wanted = dict.fromkeys(
        at for place in places for at in ((place - 1, place) if place and _is_option(line[place - 1]) else (place,))
    )
    return [line[at] for at in sorted(wanted)]


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and "=" not in word
