"""`install --zoo`: what a zoo or a corpus of scripts needs, into the interpreter that models are measured with."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from benchwright.core.errors import CannotMeasure, Interrupted
from benchwright.environments.environment import Installed
from benchwright.environments.installers import Pip, Uv
from benchwright.environments.tools import Stopped, Tools
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.observer import Observer
from benchwright.kinds.models.zoo.catalogue import forget_listings, listed_zoos
from benchwright.kinds.models.zoo.trial import TriedEnvironment, broken_by, environment_of, undoing
from benchwright.kinds.models.zoo.wanted import ALWAYS, Wanted, still_missing


def install_wanted(
    wanted: Sequence[Wanted], python: str, installer: Uv | Pip, folder: Path, observer: Observer
) -> list[Installed]:
    """Install each in turn, keeping an installed torch: only packages compatible with it are installed.

    An install that breaks the import of a library, or brings one that cannot be imported, is undone and counts as failed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotMeasure(f"{folder}: {error.strerror}; choose another folder with --base") from None
    tools = Tools()
    with stops_on_signals(tools.stop):
        try:
            return [_install(one, python, installer, folder, tools, observer) for one in wanted]
        except Stopped:
            raise Interrupted("interrupted; run the same command again") from None


def _install(
    one: Wanted, python: str, installer: Uv | Pip, folder: Path, tools: Tools, observer: Observer
) -> Installed:
    began, log = time.monotonic(), str(folder / f"{one.name}.log")
    torch = next(iter(listed_zoos(python).values())).torch
    pins = folder / f"{one.name}.constraints"
    pins.write_text(f"torch=={torch}\n" if torch else "")
    Path(log).unlink(missing_ok=True)
    observer.on_step(one.name, f"installing into the environment of {python}", log)
    before = environment_of(python)
    argv = installer.install(python, [*ALWAYS, *one.words, "-c", str(pins)])
    code = tools.run(argv, log=log, env=installer.environment(os.environ))
    forget_listings()
    why = _failure(log) if code else _undone_if_broken(one, python, before, installer, log, tools)
    why = why or still_missing(one, python)
    seconds = round(time.monotonic() - began, 3)
    observer.on_step_done(one.name, "failed" if why else "")
    status = "failed" if why else "built" if _changed(log) else "reused"
    path = os.path.dirname(os.path.dirname(python))
    return Installed(name=one.name, status=status, path=path, seconds=seconds, detail=why, log=log)


def _undone_if_broken(
    one: Wanted, python: str, before: TriedEnvironment, installer: Uv | Pip, log: str, tools: Tools
) -> str | None:
    """Why the install was taken back; None if every library imports as before."""
    after = environment_of(python)
    broken = broken_by(before, after)
    if not broken:
        return None
    back = undoing(before.packages, after.packages)
    steps = [installer.uninstall(python, back.remove)] if back.remove else []
    steps += [installer.install(python, ["--no-deps", *back.restore])] if back.restore else []
    for argv in steps:
        tools.run(argv, log=log, env=installer.environment(os.environ))
    forget_listings()
    now = environment_of(python)
    name, why = next(iter(broken.items()))
    brought = ", ".join(f"{each} {after.packages[each]}" for each in back.remove if each in broken) or "what it brought"
    torch = after.packages.get("torch", "")
    message = f"with {brought} beside torch {torch}, {name} does not import ({why})"
    undone = "undone" if now.packages == before.packages else f"could not be undone completely; see {log}"
    return f"{message}; {undone}; {_remedy(one, torch)}"


def _remedy(one: Wanted, torch: str) -> str:
    """Builds for that torch, or an environment of the zoo's own."""
    label = torch.partition("+")[2]
    index = f"add --index with PyTorch's address of builds for {label}, or " if label else ""
    if one.zoo:
        own = shlex.join(["benchwright", "install", "--zoo", one.zoo, "--own-env", *one.options])
        return f"{index}give it a separate environment: {own}"
    own = f"python -m venv {one.name}-env, then benchwright install --corpus {one.name} --python {one.name}-env/bin/python"
    return f"{index}give it a separate environment: {own}, and run it with the same --python"


def _failure(log: str) -> str:
    lines = [line.strip() for line in Path(log).read_text(encoding="utf-8", errors="replace").splitlines()]
    errors = [line for line in lines if line.lower().startswith(("error", "× ", "no solution"))]
    return (errors or lines or ["the installer failed"])[-1 if not errors else 0]


def _changed(log: str) -> bool:
    lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.startswith((" + ", " ~ ", " - ", "Successfully installed")) for line in lines)
