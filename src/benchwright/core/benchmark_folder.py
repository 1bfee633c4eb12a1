"""The folder a suite's benchmark is made of, and what its phases need to know of it."""

from __future__ import annotations

from typing import Any

import msgspec


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark of a server: its program is started first, and ended when the client that measures it has ended."""

    script: str  # a file of the folder, or a program of the environment
    args: tuple[str, ...] = ()  # may hold placeholders
    ready: str | None = None  # tcp:HOST:PORT, http://…, or None: the client waits by itself
    ready_timeout_s: float = 600.0


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """What starts one process for each device: torchrun or accelerate."""

    name: str
    processes: int | None = None  # on each machine; None: one for each device, or one
    args: tuple[str, ...] = ()  # for the launcher itself


class BenchmarkFolder(msgspec.Struct, frozen=True, kw_only=True):
    """What a suite's entry says of its code; paths are absolute, and files are named relative to `path`.

    `config` is the resolved entry with the keys of the suite file: what scripts see in $MILABENCH_CONFIG.
    """

    path: str
    group: str
    git: str | None = None  # the folder is a clone of this, made by `install`
    branch: str | None = None
    prepare_script: str | None = "prepare.py"
    main_script: str = "main.py"
    voir: dict[str, Any] | None = None  # the script is run by voir, with this as its configuration
    launcher: Launcher | None = None
    serving: Serving | None = None
    config: dict[str, Any] = {}

    @property
    def written_words(self) -> list[str]:
        """What becomes a word of the launcher's, the server's or git's command line."""
        launcher = self.launcher.args if self.launcher is not None else ()
        server = self.serving.args if self.serving is not None else ()
        return [*launcher, *server, self.git or ""]
