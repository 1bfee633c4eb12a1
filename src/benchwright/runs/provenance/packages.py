"""Which packages the measured programs could import, found without running anything."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

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
            if job.id not in known and re.fullmatch(r"python[\d.]*", os.path.basename(program)):
                executable = shutil.which(program, path=os.environ.get("PATH"))
                if executable and executable not in paths:
                    paths[executable] = site_folders(Path(executable))
    return {executable: found for executable, entries in paths.items() if (found := list_packages(entries))}


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
