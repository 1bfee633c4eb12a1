"""Paths as benchfiles use them."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path, PosixPath
from typing import IO, Any

from . import actions

_NO_LARGE_FILES = {"GIT_LFS_SKIP_SMUDGE": "1"}
_DOWNLOAD = (
    "import shutil, sys, urllib.request as u; shutil.copyfileobj(u.urlopen(sys.argv[1]), open(sys.argv[2], 'wb'))"
)


class XPath(PosixPath):
    """A path with milabench's additional methods."""

    def __len__(self) -> int:
        return len(str(self))

    def open(self, mode: str = "r", buffering: int = -1, encoding: Any = None, *more: Any, **options: Any) -> IO[Any]:  # type: ignore[override]
        encoding = encoding or (None if "b" in mode else "utf-8")
        return super().open(mode, buffering, encoding, *more, **options)

    def rm(self) -> None:
        if self.is_dir() and not self.is_symlink():
            shutil.rmtree(self)
        else:
            self.unlink(missing_ok=True)

    def copy(self, target: str | Path) -> XPath:
        made = XPath(target)
        made.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if self.is_dir() else shutil.copy)(self, made)
        return made

    def merge_into(
        self, target: str | Path, manifest: str | Path = "*", move: bool = False, readonly: bool = False
    ) -> None:
        """Its files that the manifest, lines as in .gitignore, names."""
        if isinstance(manifest, Path):
            manifest = manifest.read_text() if manifest.exists() else ""
        lines = [line.strip() for line in manifest.splitlines()]
        patterns = [line for line in lines if line and not line.startswith("#")]
        for path in sorted(self.rglob("*")):
            relative = path.relative_to(self)
            if path.is_dir() or not _named(str(relative), patterns):
                continue
            made = XPath(target) / relative
            made.parent.mkdir(parents=True, exist_ok=True)
            if readonly and made.exists():
                made.chmod(made.stat().st_mode | stat.S_IWUSR)
            (shutil.move if move else shutil.copy2)(path, made)
            if readonly:
                made.chmod(made.stat().st_mode & 0o555)

    def sub(self, pattern: str, replacement: Any) -> None:
        self.write_text(re.sub(pattern, str(replacement), self.read_text()))

    def prepend_lines(self, *lines: str) -> None:
        self.write_text("".join(f"{line}\n" for line in lines) + self.read_text())

    def append_lines(self, *lines: str) -> None:
        self.write_text(self.read_text() + "".join(f"{line}\n" for line in lines))

    def download(self, url: str, dest: str | None = None) -> None:
        target = self / (dest or url.partition("?")[0].rpartition("/")[2])
        actions.execute(["python", "-c", _DOWNLOAD, url, target], str(self), {})

    def clone_subtree(self, remote: str, commit: str, subtree: str | None = None, dest: Path | None = None) -> Path:
        """A repository at a commit or branch, or one folder of it, copied here or to `dest`."""
        target = Path(self if dest is None else self / dest)
        with tempfile.TemporaryDirectory() as clone:
            for words in (
                ("init", "--quiet"),
                ("fetch", "--quiet", "--depth=1", remote, commit),
                ("checkout", "--quiet", "--detach", "FETCH_HEAD"),
            ):
                actions.execute(["git", *words], clone, _NO_LARGE_FILES)
            shutil.copytree(os.path.join(clone, subtree or ""), target, dirs_exist_ok=True)
        return target


def _named(path: str, patterns: list[str]) -> bool:
    """Whether the last pattern that fits the path, or a folder of it, takes it in."""
    parts = path.split("/")
    tops = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    named = False
    for pattern in patterns:
        word = pattern.removeprefix("!")
        anchored = "/" in word.rstrip("/")
        only_folders = word.endswith("/")
        word = word.strip("/")
        candidates = tops[:-1] if only_folders else tops
        texts = candidates if anchored else [one.rpartition("/")[2] for one in candidates]
        if any(fnmatch.fnmatchcase(text, word) for text in texts):
            named = not pattern.startswith("!")
    return named
