"""Checks the store against the run folders, and the run folders against their streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.run import Run
from benchwright.kinds.registry import kind_of
from benchwright.results.after_run import written_body
from benchwright.results.kept_runs import Results
from benchwright.results.run_digest import digest_of
from benchwright.runs.known_runs import all_runs
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

_OF_A_METRIC = ("metric", "labels", "value", "values")


def folder_problems(results: Results) -> Iterator[str]:
    """The problems of every run folder, one line each. Reads every stream, so it takes a while."""
    stored = results.existing_store.digests()
    for folder in all_runs(results.base.runs):
        try:
            run = read_run(folder, kind_of)
        except InvalidInput as error:
            yield f"{folder.id}: {error}"
            continue
        if folder.unique_id not in stored:
            if run.ended is not None:
                yield f"{folder.id}: not in the store; add it with: benchwright import {folder.path}"
        elif stored[folder.unique_id] != digest_of(folder):
            yield f"{folder.id}: its files changed after it was stored; update it with: benchwright import {folder.path}"
        yield from _not_following(folder, run)


def _not_following(folder: RunFolder, run: Run) -> Iterator[str]:
    """Numbers in run.json that do not follow from the streams: edited, or written by another version."""
    if run.ended is None:
        return  # it is written every few seconds: it may be older than the streams
    body = folder.read_run()
    if body is None:
        yield f"{folder.id}: run.json is missing or unreadable; show its numbers with: benchwright report"
        return
    derived = msgspec.json.decode(msgspec.json.encode(written_body(run)))
    for benchmark, said, follows in _pairs(body.get("results"), derived["results"]):
        if said != follows:
            yield f"{folder.id}: run.json disagrees with the streams about {benchmark}"


def _pairs(stored: object, derived: list[dict[str, Any]]) -> Iterator[tuple[str, object, object]]:
    there = stored if isinstance(stored, list) else []
    for number, result in enumerate(derived):
        body = there[number] if number < len(there) and isinstance(there[number], dict) else {}
        yield result["benchmark"], _telling(body), _telling(result)


def _telling(result: dict[str, object]) -> list[object]:
    """Status and numbers, without texts, whose wording may change."""
    metrics = result.get("metrics")
    numbers = [
        [metric.get(name) for name in _OF_A_METRIC]
        for metric in (metrics if isinstance(metrics, list) else ())
        if isinstance(metric, dict)
    ]
    return [result.get("benchmark"), result.get("status"), result.get("reason"), *numbers]
