"""Folders whose Python files are parts of the system, or far too many: they are never run as a folder of scripts."""

from __future__ import annotations

import os

from benchwright.core.errors import InvalidInput

# With everything below them, and by themselves.
_WHOLE = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr")
_ALONE = ("/", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var", "/Library", "/System", "/Users")  # noqa: S108
_OURS = ("/dev/shm", "/run/user", "/usr/src", "/usr/local/src")  # noqa: S108 where people keep things of their own


def refuse_system_folder(folder: str) -> str:
    """`folder`; InvalidInput if it is one of the system, the user's home, or holds the home. Links are followed."""
    real, home = os.path.realpath(folder), os.path.realpath(os.path.expanduser("~"))
    system = any(_is_in(real, place) for place in _WHOLE) and not any(_is_in(real, place) for place in _OURS)
    if system or real in _ALONE or _is_in(home, real):
        what = "is your home folder" if real == home else "is a folder of the system"
        raise InvalidInput(
            f"{what}; its scripts are not run", where=folder, remedy="name the folder of your scripts, or a script"
        )
    return folder


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
