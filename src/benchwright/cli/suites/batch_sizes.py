"""`run --size search`: what it prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchwright import runner
from benchwright.cli.answer import answer
from benchwright.core.quantities import format_bytes

if TYPE_CHECKING:
    from benchwright.runner.batch_search import BatchSearch, Trial
    from benchwright.runner.progress import Progress
    from benchwright.runner.run import RunOrder


def search_batches(order: RunOrder, progress: Progress) -> int:
    """Looks for the largest batch of every benchmark whose size is ours to choose; each trial is a separate run."""

    def tell(benchmark: str, size: int, trial: Trial) -> None:
        with progress.aside():
            click.echo(_trial(benchmark, size, trial), err=True)

    found = runner.batch_search.search_suite(order, progress, tell)
    file = found.scaling_file
    body = {"scaling_file": file, "searches": [_body(s) for s in found.searches]}
    words = [*map(_words, found.searches), f"saved: {file}; use it with --size auto --scaling {file}"]
    with progress.aside():
        answer(lambda: body, lambda: "\n".join(words))
    return 1 if any(search.problem for search in found.searches) else 0


def _trial(benchmark: str, size: int, trial: Trial) -> str:
    word = "fits" if trial.fits else "does not fit" if not trial.failed else "failed"
    memory = "" if trial.memory_bytes is None else f", {format_bytes(trial.memory_bytes)}"
    return f"{benchmark}: batch {size} {word}{memory}"


def _words(search: BatchSearch) -> str:
    largest = "no batch fits" if search.largest is None else f"largest batch that fits: {search.largest}"
    return f"{search.benchmark}: {largest}" + (f" ({search.problem})" if search.problem else "")


def _body(search: BatchSearch) -> dict[str, object]:
    return {
        "benchmark": search.benchmark,
        "largest": search.largest,
        "problem": search.problem,
        "trials": [
            {"batch_size": size, "fits": t.fits, "memory_bytes": t.memory_bytes, "perf": t.perf, "detail": t.detail}
            for size, t in search.trials.items()
        ],
    }
