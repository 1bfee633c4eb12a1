"""The Python API behind `benchwright.run`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchwright.app.after_run import write_driver_files
from benchwright.app.resolve import resolve
from benchwright.app.run import run as make_run
from benchwright.core.numbers.quantities import parse_duration
from benchwright.core.options import MeasureOptions
from benchwright.core.request import Request, SuiteRequest
from benchwright.core.run import Run
from benchwright.core.stop_rule import parse_stop_rule, parse_warmup
from benchwright.executors.observer import Observer
from benchwright.kinds.models.options import model_options_of
from benchwright.kinds.suite.suites import current_python
from benchwright.runs.base_folder import BaseFolder


def run(
    target: str | os.PathLike[str] | Sequence[str],
    *,
    metrics: Sequence[str],
    repeat: int,
    warmup_runs: int,
    stop: str | None,
    warmup: str | None,
    timeout: str | float | None,
    name: str | None,
    env: Mapping[str, str | None] | None,
    cwd: str | os.PathLike[str] | None,
    base: str | os.PathLike[str] | None,
    resume: str | None,
    anyway: bool,
    commands: Sequence[str],
    labels: Mapping[str, str] | None,
    select: Sequence[str],
    exclude: Sequence[str],
    overrides: Sequence[str],
    system: str | os.PathLike[str] | None,
    use_current_env: bool,
    validations: Sequence[str],
    runtimes: Sequence[str],
    devices: Sequence[str],
    precisions: Sequence[str],
    items: int | None,
    trust: bool,
    params: Mapping[str, Sequence[object]] | None,
) -> Run:
    """See `benchwright.run`."""
    folder = BaseFolder.choose(base, os.environ)
    is_path = isinstance(target, str | os.PathLike)
    request = Request(
        targets=(os.fspath(target),) if isinstance(target, str | os.PathLike) else (),
        command=() if is_path else tuple(str(word) for word in target),  # type: ignore[union-attr]
        lines=tuple(commands),
        metrics=tuple(metrics),
        name=name,
        cwd=None if cwd is None else os.fspath(cwd),
        repeat=repeat,
        warmup_runs=warmup_runs,
        options=MeasureOptions(
            stop=None if stop is None else parse_stop_rule(stop),
            warmup=None if warmup is None else parse_warmup(warmup),
            timeout_s=None if timeout is None else parse_duration(str(timeout), where="timeout"),
            env=dict(env or {}),
            labels=dict(labels or {}),
        ),
        suite=SuiteRequest(
            base=str(folder.path),
            select=tuple(select),
            exclude=tuple(exclude),
            overrides=tuple(overrides),
            system=None if system is None else os.fspath(system),
            use_current_env=current_python() if use_current_env else None,
            validations=tuple(validations),
        ),
        models=model_options_of(
            {"runtimes": runtimes, "devices": devices, "precisions": precisions, "items": items, "trust": trust}
        ),
        params=tuple(f"{name}={','.join(map(str, values))}" for name, values in (params or {}).items()),
        builds=str(folder.builds),
    )
    resolved = resolve(request, allow_nothing=resume is not None)
    run = make_run(resolved, folder, Observer(), resume=resume, labels=request.options.labels, anyway=anyway)
    write_driver_files(run, Path.cwd())
    return run
