"""The virtual environment a benchmark runs in, as its source describes it; `benchwright.environments` makes it."""

from __future__ import annotations

import msgspec

UNPINNED = "unpinned"  # the variant that installs from requirements.in itself


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Benchmarks whose environments have the same `name` share one. Requirements are files of `folder`."""

    name: str
    folder: str
    requirements: tuple[str, ...] = ("requirements.in",)
    variant: str | None = None  # of requirements.<variant>.txt; None: the system's arch
    packages: tuple[str, ...] = ()  # installed too, if no requirements file names them
    constraints: tuple[str, ...] = ()  # lines for pip
    pip_args: tuple[str, ...] = ()
    python: str | None = None  # a path or a version; None: the interpreter benchwright runs with
