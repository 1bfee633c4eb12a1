"""Points errors about a command line at the line of the suite it comes from; they appear only when placeholders are filled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput, UnfilledWord
from benchwright.kinds.suite.read.resolution import resolve_entries
from benchwright.kinds.suite.read.suite import suite_file
from benchwright.kinds.yaml.value_types import value_at


@contextmanager
def words_placed(benchmarks: Sequence[Benchmark]) -> Iterator[None]:
    """An UnfilledWord of one of `benchmarks` becomes an InvalidInput that points into the suite's file."""
    try:
        yield
    except UnfilledWord as error:
        benchmark = next((b for b in benchmarks if b.name == error.entry), None)
        raise (_placed(error, benchmark) if benchmark is not None else None) or error from None


def _placed(error: UnfilledWord, benchmark: Benchmark) -> InvalidInput | None:
    """None if the file has changed or is gone."""
    path = suite_file(benchmark)
    if path is None or benchmark.folder is None:
        return None
    way = _way_to(benchmark.folder.config, error.word)
    try:
        resolution = resolve_entries(path)
    except InvalidInput:
        return None
    if way is None or benchmark.name not in resolution.entries:
        return None
    if value_at(resolution.entries[benchmark.name], way) != value_at(benchmark.folder.config, way):
        return InvalidInput(error.what, where="--override", remedy=error.remedy, text=error.word)
    return resolution.places.error(benchmark.name, way, error.what, error.remedy)


def _way_to(value: object, word: str) -> tuple[object, ...] | None:
    """The keys and indices that lead to `word`; where a list was joined, to the list."""
    if isinstance(value, str):
        return () if value == word else None
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if (rest := _way_to(item, word)) is not None:
            return (key, *rest)
        if isinstance(item, list) and ",".join(map(str, item)) == word:
            return (key,)
        if key == "command" and isinstance(item, str) and word in item:
            return (key,)
    return None
