"""Benchwright: the truth about machine-learning performance.

import benchwright as bw

run = bw.run(["python", "train.py"], metrics=["speed=Speed: {number} samples/sec"], repeat=6)
print(run)
bw.compare("baseline:main", run)
"""

from __future__ import annotations

from benchwright.version import __version__

TYPE_CHECKING = False  # typing is not imported: the agent on the node starts here too
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Unpack

    from benchwright.api import ComparedRuns, CompareOptions, ShownRun
    from benchwright.core.run import Run
    from benchwright.options.keywords import RunOptions

    Text = str | os.PathLike[str]

__all__ = ["__version__", "benchmark_model", "compare", "load", "load_labels", "run"]


def run(
    target: Text | Sequence[str],
    *,
    cache_dir: Text | None = None,
    progress: bool | None = None,
    **options: Unpack[RunOptions],
) -> ShownRun:
    """Measures `target`, keeps the run as `benchwright run` does, and returns it. A notebook shows it with a picture.

    `target` is a command as a list of words, or the path of a suite, task file, script or model file. The keywords are
    the options of the command line with `_` for `-`, a plural for what is repeatable (`metrics`, `runtimes`), and a
    mapping for pairs (`env`, `labels`, `params`): see `benchwright.options.keywords.RunOptions`. Values are written as on the
    command line (`timeout="10m"`), or as numbers. `progress`: show it on stderr, or below a notebook's cell; None: only
    in a notebook. `cache_dir`: another name of `base`.

    With `on="slurm", nodes=4`, independent benchmarks share the nodes: the run has the results of all, each with the label
    `node`, and its `folder` names the folders of all nodes. Benchmarks that no node could measure are a RuntimeWarning.

    A benchmark that fails is part of the result. Wrong input raises `benchwright.core.errors.InvalidInput`; an option
    that does not apply to the target is wrong input. What went wrong besides is a RuntimeWarning.
    """
    from benchwright.api import run as measured

    return measured(target, cache_dir=cache_dir, progress=progress, **options)


def benchmark_model(
    model: object,
    inputs: object,
    *,
    cache_dir: Text | None = None,
    progress: bool | None = None,
    **options: Unpack[RunOptions],
) -> ShownRun:
    """Measures a `torch.nn.Module` of this process or notebook on `runtimes`, and keeps the run like any other.

    `inputs`: keywords as a mapping, positional ones as a tuple, or the only one. The keywords are those of `run` that make
    sense for a model: `runtimes`, `devices`, `precisions`, `threads`, `streams`, `items`, `name` (else its class), `labels`,
    `profile`, `rebuild`, `build_timeout`, `repeat`, `stop`… `cache_dir`: another name of `base`.

    Runtimes that call the module itself (torch-eager, torch-compile) are measured in this process, with a copy of it; for the
    others it is exported here and measured in a separate process. Outputs are checked against the eager model.
    """
    from benchwright.api import benchmark_model as measured

    return measured(model, inputs, cache_dir=cache_dir, progress=progress, **options)


def load(run: Text, *, base: Text | None = None, store: str | None = None) -> ShownRun:
    """The kept run that `run` names: `last`, an id or its beginning, a run folder, `baseline:NAME`."""
    from benchwright.api import load as found

    return found(run, base=base, store=store)


def compare(control: Run | Text, *treatments: Run | Text, **options: Unpack[CompareOptions]) -> ComparedRuns:
    """Compares the first run with each of the others, as `benchwright compare` does. A notebook shows it with a picture.

    Each is a run, or what `load` takes. The keywords are the options of the command line, percentages as fractions: see
    `benchwright.api.CompareOptions`. With `between=(A, B)`, two benchmarks of one run that were measured interleaved.
    """
    from benchwright.api import compare as compared

    return compared(control, *treatments, **options)


def load_labels(build: str, *, cache_dir: Text | None = None) -> dict[str, list[str]]:
    """The labels that a run kept with a build, such as `bert_google_8c1f02aa` (`benchwright cache list` has the names).

    `cache_dir`: the folder given as `--cache-dir`; None: the usual one. FileNotFoundError if the build has no labels there.
    """
    from benchwright.api import load_labels as found

    return found(build, cache_dir=cache_dir)
