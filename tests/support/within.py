"""A program of ours called within this process, which spares the start of Python and its imports.

It has the arguments, folder, environment and descriptors that a process of its own would have.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path


def called(
    work: Callable[[], object], argv: list[str], env: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What `work` said, and the exit code it ended with; `argv[0]` is what it takes for its own name."""
    with ExitStack() as stack:
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        with _descriptors(out.fileno(), err.fileno()), _surroundings(argv, env, cwd), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as Python does with most of them, in a process of its own
            code = _ended(work)
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode(errors="replace").replace("\r\n", "\n"))
    return subprocess.CompletedProcess(argv, code, *said)


def _ended(work: Callable[[], object]) -> int:
    """The exit code; what was not caught is told as Python tells it."""
    try:
        work()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _surroundings(argv: list[str], env: Mapping[str, str], cwd: Path | None) -> Iterator[None]:
    before, folder, words, path = dict(os.environ), os.getcwd(), sys.argv, list(sys.path)
    temporary, tempfile.tempdir = tempfile.tempdir, None  # to be found anew, with that environment
    os.chdir(cwd or folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = argv
    program = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")  # click tells by it what the user typed
    try:
        yield
    finally:
        sys.modules["__main__"] = program
        tempfile.tempdir = temporary
        sys.path[:] = path
        sys.argv = words
        os.environ.clear()
        os.environ.update(before)
        os.chdir(folder)


@contextmanager
def _descriptors(out: int, err: int) -> Iterator[None]:
    """Nothing to read, and what is said goes into those files; children that inherit them are heard as well."""
    streams = sys.stdin, sys.stdout, sys.stderr
    for stream in streams[1:]:
        stream.flush()
    kept = [os.dup(number) for number in range(3)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        for number, file in enumerate((nothing, out, err)):
            os.dup2(file, number)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.BufferedWriter(io.FileIO(number, "w", closefd=False)), "utf-8", errors)
            for number, errors in ((1, "strict"), (2, "backslashreplace"))
        )
        try:
            yield
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(nothing)
