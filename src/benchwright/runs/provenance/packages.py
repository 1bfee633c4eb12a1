"""Which packages the measured programs could import, found without running anything."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from benchwright.agent.machine.packages import list_packages
from benchwright.core.run import Launch, Plan


def environments_of(launches: Iterable[Launch], plan: Plan) -> dict[str, dict[str, str]]:
    """For each interpreter that was measured, its packages and their versions.

    A program that used benchprobe reported its own path; for others started as `python …`, the interpreter's own folders
    are listed.
    """
    paths: dict[str, list[str]] = {}
    known = set()
    for launch in launches:
        python = launch.facts.get("python")
        if python:
            known.add(launch.job)
            paths.setdefault(str(python["executable"]), [str(entry) for entry in python["path"] or ()])
    for jobs in plan.launches:
        for job in jobs:
            program = job.argv[0] if job.argv and not job.shell else ""
            if job.id not in known and _is_python(program):
                executable = shutil.which(program, path=os.environ.get("PATH"))
                if executable and executable not in paths:
                    paths[executable] = site_folders(Path(executable))
    return {executable: found for executable, entries in paths.items() if (found := list_packages(entries))}


def editable_packages(folders: Iterable[str]) -> dict[str, list[str]]:
    """Of each folder of source that an environment has installed as editable: the packages."""
    found: dict[str, list[str]] = {}
    for folder in folders:
        try:
            names = sorted(name for name in os.listdir(folder or ".") if name.endswith(".dist-info"))
        except OSError:
            continue
        for name in names:
            try:
                with open(os.path.join(folder, name, "direct_url.json"), "rb") as file:
                    origin = msgspec.json.decode(file.read(), type=_Origin)
            except (OSError, msgspec.MsgspecError):
                continue
            if origin.dir_info.editable and origin.url.startswith("file://"):
                found.setdefault(unquote(urlsplit(origin.url).path), []).append(name.partition("-")[0])
    return found


class _Directory(msgspec.Struct, frozen=True):
    editable: bool = False


class _Origin(msgspec.Struct, frozen=True):
    """direct_url.json (PEP 610), as far as it matters here."""

    url: str
    dir_info: _Directory = _Directory()


def interpreters_of(plan: Plan) -> list[str]:
    """The Python interpreters that a plan's commands start by name."""
    programs = {job.argv[0] for jobs in plan.launches for job in jobs if job.argv and not job.shell}
    found = (shutil.which(p, path=os.environ.get("PATH")) for p in sorted(programs) if _is_python(p))
    return [executable for executable in found if executable]


def _is_python(program: str) -> bool:
    return re.fullmatch(r"python[\d.]*", os.path.basename(program)) is not None


def site_folders(executable: Path) -> list[str]:
    """The site-packages below an interpreter's prefix, and its base's if it is a virtual environment that shows them."""
    prefix = executable.absolute().parent.parent
    folders = [str(p) for p in sorted(prefix.glob("lib/python3*/site-packages"))]
    settings = prefix / "pyvenv.cfg"
    if settings.is_file() and "include-system-site-packages = true" in settings.read_text(errors="replace"):
        home = re.search(r"^home\s*=\s*(.+)$", settings.read_text(errors="replace"), re.MULTILINE)
        if home:
            folders += [str(p) for p in sorted(Path(home[1].strip()).parent.glob("lib/python3*/site-packages"))]
    if not settings.is_file() and not folders:
        resolved = executable.resolve()
        if resolved != executable:
            return site_folders(resolved)
    return folders
