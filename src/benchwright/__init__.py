"""Benchwright: the truth about machine-learning performance.

import benchwright as bw

run = bw.run(["python", "train.py"], metrics=[r"speed=Speed: ([\\d.]+) samples/sec"], repeat=6)
print(run.result("train.py").status, run.folder)
"""

from __future__ import annotations

from benchwright.version import __version__

TYPE_CHECKING = False  # typing is not imported: the agent on the node, too, begins here
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from benchwright.core.run import Run

__all__ = ["__version__", "run"]


def run(
    target: str | os.PathLike[str] | Sequence[str],
    *,
    metrics: Sequence[str] = (),
    repeat: int = 1,
    warmup_runs: int = 0,
    stop: str | None = None,
    warmup: str | None = None,
    timeout: str | float | None = None,
    name: str | None = None,
    env: Mapping[str, str | None] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    base: str | os.PathLike[str] | None = None,
    resume: str | None = None,
    anyway: bool = False,
    commands: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    overrides: Sequence[str] = (),
    system: str | os.PathLike[str] | None = None,
    use_current_env: bool = False,
    validations: Sequence[str] = (),
    runtimes: Sequence[str] = (),
    devices: Sequence[str] = (),
    precisions: Sequence[str] = (),
    items: int | None = None,
    trust: bool = False,
    params: Mapping[str, Sequence[object]] | None = None,
) -> Run:
    """Measures `target`, as `benchwright run` does, and returns the Run.

    `target` is a command as a list of words, or the path of a suite, task file, script or model file; `commands` are further commands, one
    text each, interleaved with it. The other arguments are those of the command line, in its notation. A benchmark that
    fails is part of the result; wrong input raises `benchwright.core.errors.InvalidInput`.
    """
    from benchwright.api import run as measured

    return measured(
        target,
        metrics=metrics,
        repeat=repeat,
        warmup_runs=warmup_runs,
        stop=stop,
        warmup=warmup,
        timeout=timeout,
        name=name,
        env=env,
        cwd=cwd,
        base=base,
        resume=resume,
        anyway=anyway,
        commands=commands,
        labels=labels,
        select=select,
        exclude=exclude,
        overrides=overrides,
        system=system,
        use_current_env=use_current_env,
        validations=validations,
        runtimes=runtimes,
        devices=devices,
        precisions=precisions,
        items=items,
        trust=trust,
        params=params,
    )
