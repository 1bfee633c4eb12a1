"""torchrun whose processes inherit the descriptor that voir writes its data to."""

from __future__ import annotations

import importlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import unknown_names


@contextmanager
def forward_voir_file() -> Iterator[None]:
    """Processes started in this context inherit $DATA_FD."""
    descriptor = os.getenv("DATA_FD")
    if descriptor is None:
        yield
        return
    original = subprocess.Popen.__init__

    def started(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs["pass_fds"] = (*kwargs.get("pass_fds", ()), int(descriptor))
        original(self, *args, **kwargs)

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    try:
        yield
    finally:
        subprocess.Popen.__init__ = original  # type: ignore[method-assign]


def main(args: list[str] | None = None) -> None:
    torchrun: Any = importlib.import_module("torch.distributed.run")
    with forward_voir_file():
        torchrun.run(torchrun.parse_args(args))


if __name__ == "__main__":
    main()


__getattr__ = unknown_names(__name__)
