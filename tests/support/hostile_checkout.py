"""A checkout from somebody who wants to run a program on this machine: its git configuration names one wherever git takes one.

What ran leaves a file in the folder `ran`.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from builders import git

FILTERS = ("plain", "long-running", "with=equals", "Mixed Case")


class HostileCheckout:
    """`root`: the checkout, whose remote `origin` is a repository beside it. `ran`: the names of what was run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "ran"
        self.folder.mkdir()
        self.root = folder / "hostile"
        git(folder, "init", "-q", "-b", "main", "hostile")
        attributes = [
            f'{number}.txt filter="{name}"' if " " in name else f"{number}.txt filter={name}"
            for number, name in enumerate(FILTERS)
        ]
        (self.root / ".gitattributes").write_text("\n".join([*attributes, "*.txt diff=shown", ""]))
        for number in range(len(FILTERS)):
            (self.root / f"{number}.txt").write_text("one\n")
        (self.root / "true.sh").write_text("#!/bin/sh\n")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "first")
        git(folder, "clone", "-q", "--bare", "hostile", "origin.git")
        git(self.root, "remote", "add", "origin", str(folder / "origin.git"))
        git(self.root, "update-ref", "refs/remotes/origin/main", "HEAD")
        (self.root / "true.sh").write_text("#!/bin/sh\n#\n")
        git(self.root, "commit", "-qam", "second")
        self.commit = git(self.root, "rev-parse", "HEAD")
        self._configure()
        for number in range(len(FILTERS)):  # same size, another time: git must read them again, through their filters
            (self.root / f"{number}.txt").write_text("two\n")
            os.utime(self.root / f"{number}.txt", (time.time() - 100, time.time() - 100))

    def _configure(self) -> None:
        for number, name in enumerate(FILTERS):
            for what in ("clean", "smudge", "process"):
                if what != "process" or number == 1:
                    self._set(f"filter.{name}.{what}", f"filter-{number}-{what}")
            git(self.root, "config", f"filter.{name}.required", "true")
        hooks = self.root / ".git" / "evil-hooks"
        hooks.mkdir()
        for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "post-merge"):
            (hooks / hook).write_text(f"#!/bin/sh\n{self._program('hook-' + hook)}\n")
            (hooks / hook).chmod(0o755)
        git(self.root, "config", "core.hooksPath", str(hooks))
        for key in (
            *(
                "core.fsmonitor",
                "core.sshCommand",
                "core.pager",
                "pager.log",
                "pager.diff",
                "core.editor",
                "core.askPass",
            ),
            *(
                "core.gitProxy",
                "core.alternateRefsCommand",
                "diff.external",
                "diff.shown.textconv",
                "diff.shown.command",
            ),
            *("gpg.program", "credential.helper", "credential.https://h.helper", "remote.origin.uploadpack"),
            *("uploadpack.packObjectsHook", "merge.shown.driver", "sequence.editor", "interactive.diffFilter"),
        ):
            self._set(key, key.replace("/", "-"))
        for key, value in (
            ("log.showSignature", "true"),
            ("core.untrackedCache", "true"),
            ("protocol.ext.allow", "always"),
            ("remote.other.url", f"ext::sh -c {self._program('ext').replace(' ', '% ')}"),
            ("submodule.sub.update", f"!{self._program('submodule')}"),
        ):
            git(self.root, "config", key, value)

    def _program(self, name: str) -> str:
        return f"touch '{self.folder}/{name}'"

    def _set(self, key: str, name: str) -> None:
        then = "exec cat" if name.startswith("filter") and "process" not in name else "exit 1"
        script = self.root / ".git" / f"evil-{abs(hash(key))}"
        script.write_text(f"#!/bin/sh\n{self._program(name)}\n{then}\n")
        script.chmod(0o755)
        git(self.root, "config", key, str(script))

    @property
    def ran(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def by_plain_git(self) -> set[str]:
        """What plain git runs here: the checkout is as hostile as it says."""
        for words in (["status"], ["diff", "HEAD"], ["fetch", "origin"]):
            subprocess.run(["git", *words], cwd=self.root, capture_output=True, timeout=20, stdin=subprocess.DEVNULL)
        ran = self.ran
        for path in self.folder.iterdir():
            path.unlink()
        return ran
