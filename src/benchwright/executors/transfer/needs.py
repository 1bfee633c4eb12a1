"""Which files and folders of this machine a job uses, from the paths in its command, folder and environment."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from tempfile import gettempdir

import msgspec

from benchwright.core.job import Job
from benchwright.executors.transfer.manifest import is_within

# Part of the system: each machine has its own.
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/dev",
    "/proc",
    "/sys",
    "/run",
    "/boot",
    "/opt",
    "/snap",
)
# Never sent whole, only what lies below.
_TOO_LARGE = ("/", "/home", "/root", "/var", "/mnt", "/media", "/srv", "/data")
_PYTHON = re.compile(r"(python|pypy)[\d.]*")


class Needs(msgspec.Struct, frozen=True):
    """`trees`: files and folders, none inside another. `environments`: virtual environments, by folder. `pythons`:
    interpreters that belong to none. `notes`: what a user should know."""

    trees: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def needs_of(
    jobs: Iterable[Job], made: Collection[str] = (), anchors: Collection[str] = (), apart: Collection[str] = ()
) -> Needs:
    """`made`: folders of which nothing is needed: jobs write there. `anchors`: folders that are named, of which only parts are
    needed, unless a job runs in one. `apart`: folders that are sent on their own, if at all."""
    trees: dict[str, None] = {}
    environments: dict[str, None] = {}
    pythons: dict[str, None] = {}
    notes: dict[str, None] = {}
    for job in jobs:
        for path in _paths(job):
            venv = _environment(path)
            if (
                _is_system(path)
                or (path in anchors and path != job.cwd)
                or any(is_within(path, folder) for folder in made)
            ):
                continue
            if venv is not None:
                environments[venv] = None
            elif _PYTHON.fullmatch(os.path.basename(path)) and os.access(path, os.X_OK) and os.path.isfile(path):
                pythons[path] = None
            elif _is_too_large(path):
                if path == job.cwd:
                    notes[
                        f"{path} is not sent, since it may hold everything; run from a folder with what the program needs"
                    ] = None
            else:
                trees[_whole(path)] = None
    kept = [p for p in trees if not any(_is_part(p, other, apart) for other in trees)]
    kept = [p for p in kept if not any(is_within(p, venv) for venv in environments)]
    return Needs(tuple(kept), tuple(environments), tuple(pythons), tuple(notes))


def _is_part(path: str, tree: str, apart: Collection[str]) -> bool:
    """Whether it is sent with that tree."""
    alone = any(is_within(path, folder) and is_within(folder, tree) for folder in apart)
    return path != tree and is_within(path, tree) and not alone


def _paths(job: Job) -> Iterator[str]:
    """Existing absolute paths in the words of a job."""
    yield job.cwd
    if job.probe_path is not None:
        yield job.probe_path
    yield from job.path
    written = [word for text in job.files.values() for word in _words(text)]
    for word in (*job.argv, *(value for value in job.env.values() if value is not None), *written):
        for part in dict.fromkeys([word, *re.split(r"[=:,;\s\"']", word)]):
            if part.startswith("/") and len(part) < 4096 and "\0" not in part and os.path.exists(part):
                yield os.path.normpath(part)
    program = job.argv[0] if job.argv else ""
    if "/" in program and not os.path.isabs(program) and os.path.exists(os.path.join(job.cwd, program)):
        yield os.path.normpath(os.path.join(job.cwd, program))


def _words(text: str) -> list[str]:
    """Of a script that was written for a job."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()  # not a shell's quotes


def _whole(path: str) -> str:
    """A Python script imports its neighbours: its folder is needed."""
    return os.path.dirname(path) if path.endswith(".py") and not _is_too_large(os.path.dirname(path)) else path


def _environment(path: str) -> str | None:
    """The virtual environment that `path` lies in."""
    folder = path
    while len(folder) > 1:
        if os.path.isfile(os.path.join(folder, "pyvenv.cfg")):
            return folder
        folder = os.path.dirname(folder)
    return None


def _is_system(path: str) -> bool:
    return any(is_within(path, folder) for folder in _SYSTEM)


def _is_too_large(path: str) -> bool:
    return path in (*_TOO_LARGE, os.path.expanduser("~"), gettempdir())
