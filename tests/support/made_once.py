"""What several tests look at and none changes is made once for the whole test run, by whichever worker needs it first."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path


class MadeOnce:
    """Folders by name, shared by all workers of a test run; a test that changes one takes a copy."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(exist_ok=True)

    def __call__(self, name: str, make: Callable[[Path], object]) -> Path:
        """The folder `name`, filled by `make(folder)` unless it has been already; others wait meanwhile.

        If `make` fails, it fails here for every test that asks, and is not tried again.
        """
        folder, done, failed = (self._root / f"{name}{suffix}" for suffix in ("", ".done", ".failed"))
        maker = f"{make.__module__}.{make.__qualname__}"
        with open(self._root / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if failed.exists():
                raise AssertionError(f"making {name} failed: {failed.read_text()}")
            if done.exists():
                assert done.read_text() == maker, f"{name} is the name of two things: of {done.read_text()} and {maker}"
            else:
                folder.mkdir()
                try:
                    make(folder)
                except BaseException as error:
                    failed.write_text(f"{type(error).__name__}: {error}")
                    raise
                done.write_text(maker)
        return folder
