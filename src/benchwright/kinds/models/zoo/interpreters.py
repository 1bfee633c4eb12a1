"""The interpreters that models of zoos are measured with."""

from __future__ import annotations

import functools
import os

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.environments.environment import EnvironmentFolders, read_built, why_broken
from benchwright.executors.registry import is_here
from benchwright.kinds.interpreter import default_python
from benchwright.options.table import Options


class ZooPythons(msgspec.Struct, frozen=True):
    """The interpreters of zoos: the one `given`, else that of the zoo's own environment in `folder`, else python on the PATH."""

    given: str | None = None
    folder: str = ""

    @staticmethod
    def meant(options: Options) -> ZooPythons:
        """Environments of zoos' own are this machine's; those of others are not known."""
        return ZooPythons(options.python, options.zoos if is_here(options.on) else "")

    def of(self, zoo: str) -> str:
        """InvalidInput if the zoo's own environment no longer works."""
        return self.given or _own_python(self.folder, zoo) or default_python()

    def own(self, zoo: str) -> str | None:
        """The path of the zoo's own environment, if its models are measured there."""
        found = None if self.given else _own_python(self.folder, zoo)
        return found and os.path.dirname(os.path.dirname(found))


def is_own_environment(python: str, zoo: str) -> bool:
    """Whether `python` is of an environment that was made for `zoo`."""
    built = read_built(os.path.dirname(os.path.dirname(python)))
    return built is not None and built.group == zoo


@functools.lru_cache(maxsize=64)
def _own_python(folder: str, zoo: str) -> str | None:
    folders = EnvironmentFolders(folder)
    current = folders.current(zoo) if folder else None
    if current is None:
        return None
    built = read_built(current)
    why = "it is incomplete" if built is None else why_broken(current, built, changed_too=False)
    if why is not None:
        raise InvalidInput(
            f"its separate environment cannot be used: {why}",
            where=f"{zoo} ({folders.link(zoo)})",
            remedy=f"run 'benchwright install --zoo {zoo} --own-env --force', or choose an interpreter with --python",
        )
    return os.path.join(folders.link(zoo), "bin", "python")


def forget_own_environments() -> None:
    """After an install: they are looked up again."""
    _own_python.cache_clear()
