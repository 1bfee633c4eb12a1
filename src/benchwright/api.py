"""The Python API behind `benchwright.run`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from benchwright.app.requests import SEARCH, order_of, values_of
from benchwright.app.run import run as run_order
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.run import Run
from benchwright.executors.observer import Observer

Text = str | os.PathLike[str]
Texts = str | Sequence[str]  # one, or several


class RunOptions(TypedDict, total=False):
    """Keywords of `benchwright.run`: the options of `benchwright run`, by their names in `app.options`."""

    # What to measure
    commands: Texts
    shell: bool
    metrics: Texts
    name: str | None
    format: str | None
    as_: str | None
    script_args: Texts | None
    python: Text | None
    cwd: Text | None
    env: Mapping[str, str | None] | None
    search_dirs: Texts
    all_scripts: bool
    params: Mapping[str, Sequence[object]] | None
    sweep: str
    # How to measure it
    repeat: int | str
    warmup_runs: int
    prepare: Texts
    setup: str | None
    cleanup: str | None
    ignore_failure: bool
    interleave: bool | None
    turns: str | float | None
    stop: str | int | None
    warmup: str | int | None
    loop: str | None
    timeout: str | float | None
    cores: str | Sequence[int] | None
    on: str | None
    jobs: int | None
    sample_interval: str | float
    seed: int
    validations: Texts
    # Models
    runtimes: Texts
    devices: Texts
    precisions: Texts
    threads: int | None
    streams: int
    items: int | None
    max_depth: int
    weights: bool
    profile: bool
    shapes: Mapping[str, str | Sequence[int]] | None
    trust: bool
    rebuild: str
    build_timeout: str | float
    # Task files
    tasks: Texts
    framework: str | None
    metrics_suffix: str | None
    num_gpus: int | None
    epochs: int | None
    kvstore: str | None
    dtype: str | None
    set_flags: Mapping[str, str] | None
    remove_flags: Texts
    metrics_policy: str | None
    command_to_execute: str | None
    data_set: str | None
    metrics_template: Text | None
    # Suites
    configs: Texts
    system: Text | None
    select: Texts
    exclude: Texts
    overrides: Texts
    use_current_env: bool
    size: str | int | None
    capacity: str | None
    scaling: Text | None
    save_scaling: Text | None
    # Results
    labels: Mapping[str, str] | None
    tags: Texts
    run_name: str | None
    keep_env: Texts
    share: bool
    discard_logs: bool
    base: Text | None
    resume: str | None
    anyway: bool
    store: str | None
    no_store: bool


def run(target: Text | Sequence[str], **options: Unpack[RunOptions]) -> Run:
    """See `benchwright.run`."""
    for name in options:
        if name not in RunOptions.__annotations__:
            remedy = did_you_mean(name, RunOptions.__annotations__)
            raise TypeError(f"run() got an unexpected keyword argument '{name}'" + (f"; {remedy}" if remedy else ""))
    values = values_of(options)
    if values.get("size") == SEARCH:
        raise InvalidInput(
            "the search for batch sizes makes many runs", where="size", remedy="use: benchwright run --size search"
        )
    given = {name for name, value in values.items() if value not in (False, ())}
    if isinstance(target, str | os.PathLike):
        order = order_of(values, given, targets=[os.fspath(target)])
    else:
        order = order_of(values, given, command=[str(word) for word in target])
    observer = _Collecting()
    made = run_order(order, observer)
    for text in observer.troubles:
        if not any(text.startswith(note.text) for note in made.notes):
            warnings.warn(text, RuntimeWarning, stacklevel=3)
    return made


class _Collecting(Observer):
    """What the command line prints on stderr becomes a warning once the run is complete, unless it is among its notes."""

    def __init__(self) -> None:
        self.troubles: list[str] = []

    def on_trouble(self, text: str) -> None:
        self.troubles.append(text)
