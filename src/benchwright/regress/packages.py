"""Environments with other package versions than the current one, which they inherit: `pip:numpy==2.1 scipy`."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchwright.agent.machine.packages import list_packages
from benchwright.core.errors import InvalidInput
from benchwright.environments.failures import failure_of
from benchwright.environments.installers import Pip
from benchwright.environments.package_indexes import configured_indexes
from benchwright.environments.requirement_files import package_name
from benchwright.environments.tools import Tools
from benchwright.executors.observer import Observer
from benchwright.regress.build_environment import InheritedPython, inherited_python, make_environment, variables_of
from benchwright.regress.builds import BuildMarker, BuiltRevision, Making, RevisionNotBuilt, last_lines, now

_KEPT = ("torch",)  # never changed unless named: a newer one may bring gigabytes of libraries for another machine


def build_packages(
    wanted: Sequence[str],
    cache: Path,
    *,
    python: str | None = None,
    observer: Observer | None = None,
    tools: Tools | None = None,
    where: str = "pip:",
) -> BuiltRevision:
    """An environment with the packages that pip understands by `wanted`; RevisionNotBuilt if it cannot be made.

    Without any, it has what it inherits: the other side of a comparison, started in the same way.
    """
    if refused := [word for word in wanted if word.startswith("-")]:
        remedy = "set it in pip's configuration or as a PIP_ variable"
        raise InvalidInput(f"'{refused[0]}' is an option of pip, not a package", where=where, remedy=remedy)
    inherited = inherited_python(python)
    present = list_packages(inherited.sites)
    folder = cache / "packages" / _identity(wanted, inherited, present)
    making = Making(
        folder,
        f"pip:{' '.join(wanted)}" if wanted else "the current packages",
        observer or Observer(),
        tools or Tools(),
    )
    with making.alone():
        if (known := making.known()) is not None:
            return known
        began = time.monotonic()
        with making.anew():
            making.say("making its environment")
            venv = folder / "venv"
            interpreter = make_environment(venv, inherited, None)
            if wanted:
                making.say(f"installing {' '.join(wanted)}")
                _install(making, wanted, interpreter, present)
            built = BuiltRevision(
                commit=None,
                python=str(interpreter),
                path=(str(venv / "bin"),),
                env=variables_of(venv),
                seconds=round(time.monotonic() - began, 3),
                log=str(making.log),
            )
            found = BuildMarker(repository="", built=built, command=None, when=now(), packages=tuple(wanted))
            making.finish(found)
        return built


def installed_in(built: BuiltRevision) -> dict[str, str]:
    """The packages installed in an environment itself, without inherited ones: package → version."""
    if built.python is None:
        return {}
    return list_packages(map(str, Path(built.python).parent.parent.glob("lib/python3*/site-packages")))


def _install(making: Making, wanted: Sequence[str], python: Path, present: dict[str, str]) -> None:
    installer = Pip(configured_indexes(os.environ))
    named = {package_name(word) for word in wanted}
    kept = [f"{name}=={present[name]}" for name in _KEPT if name in present and name not in named]
    constraints = making.folder / "constraints.txt"
    constraints.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    places = [os.path.abspath(word) if _is_place(word) else word for word in wanted]
    argv = installer.install(str(python), ["-c", str(constraints), *places])
    try:
        making.run(argv, cwd=making.folder, env=installer.environment(os.environ))
    except RevisionNotBuilt as error:
        reason = failure_of(making.log.read_text(encoding="utf-8", errors="replace"))
        what = f"{making.name} could not be installed: {reason.what}"
        raise RevisionNotBuilt(what, error.log, last_lines(making.log)[-3:]) from None


def _identity(wanted: Sequence[str], inherited: InheritedPython, present: dict[str, str]) -> str:
    """Of what decides which versions are installed; a folder of source may change at any time, so it is never reused."""
    states = [_state(word) for word in wanted if _is_place(word)]
    parts = [list(wanted), msgspec.to_builtins(inherited), present, states]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _is_place(word: str) -> bool:
    """Whether pip takes it for a file or folder."""
    return (os.sep in word or word.endswith((".whl", ".gz", ".zip"))) and os.path.exists(word)


def _state(path: str) -> str:
    status = os.stat(path)
    changes = time.time_ns() if os.path.isdir(path) else status.st_mtime_ns
    return f"{os.path.abspath(path)} {status.st_size} {changes}"
