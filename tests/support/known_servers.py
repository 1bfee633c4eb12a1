"""Starts `known_server.py`, and runs the client against it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("known_server.py")
SOURCE = Path(__file__).parents[2] / "src"


@contextmanager
def known_server(*words: str) -> Iterator[str]:
    """Its address."""
    process = subprocess.Popen([sys.executable, str(SERVER), *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def client_words(url: str, *words: str, model: str = "known") -> list[str]:
    return [sys.executable, "-m", "benchload", url, "--model", model, *words]


def measured(url: str, *words: str, model: str = "known", **variables: str) -> list[dict[str, Any]]:
    """The events of a client on its own."""
    return events_of(client_words(url, *words, model=model), **variables)


def events_of(command: list[str], **variables: str) -> list[dict[str, Any]]:
    environment = {name: value for name, value in os.environ.items() if name != "BENCHPROBE_CONFIG"}
    environment |= {"PYTHONPATH": str(SOURCE), **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def column(events: list[dict[str, Any]], name: str) -> list[Any]:
    """Of all requests, in the order they were planned."""
    rows = [r for e in events if e["event"] == "requests" for r in zip(e["planned"], e["number"], e[name], strict=True)]
    return [value for _, _, value in sorted(rows, key=lambda row: row[:2])]


def failure(events: list[dict[str, Any]]) -> str:
    return next((str(e["text"]) for e in events if e["event"] == "failure"), "")
