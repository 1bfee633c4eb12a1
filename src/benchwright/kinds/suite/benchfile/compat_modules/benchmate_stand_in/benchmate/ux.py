"""Signs of life."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from . import unknown_names


@contextmanager
def long_action(msg: str, interval: float = 1) -> Iterator[None]:
    """Prints every `interval` seconds how long it has taken."""
    done, began_s = threading.Event(), time.monotonic()

    def tell() -> None:
        while not done.wait(interval):
            print(f"\r{msg} {time.monotonic() - began_s:10.2f}", end="", flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


__getattr__ = unknown_names(__name__)
