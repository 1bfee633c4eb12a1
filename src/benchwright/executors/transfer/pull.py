"""Brings files and folders back from another machine, whole or not at all."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable
from typing import IO

from benchwright.core.errors import CannotMeasure
from benchwright.executors.transfer.shell import Shell, fetch

_MARK = b"benchwright sends:\n"
# $1: the folder, $2: the name in it. A login may print anything first.
_SEND = """\
cd "$1" && { [ -e "$2" ] || { echo "$1/$2 does not exist" >&2; false; }; } || exit 1
printf 'benchwright sends:\\n'
exec tar -cf - "./$2\""""


def pull(shell: Shell, there: str, here: str, stopped: Callable[[], bool] = lambda: False) -> None:
    """The file or folder `there` becomes `here`; CannotMeasure if it is missing or did not arrive whole."""
    folder, name = os.path.split(there.rstrip("/"))
    aside = f"{here}.{os.urandom(6).hex()}"

    def take(stream: IO[bytes]) -> None:
        _skip_greeting(stream)
        with tarfile.open(fileobj=stream, mode="r|") as packed:
            packed.extractall(aside, filter="data")
        while stream.read(1 << 16):
            pass

    try:
        os.makedirs(aside)
        fetch(shell, _SEND, folder, name, take=take, stopped=stopped)
        if os.path.isdir(here) and not os.path.islink(here):
            shutil.rmtree(here)
        os.replace(os.path.join(aside, name), here)
    except OSError as error:
        raise CannotMeasure(f"{error.filename or here}: {error.strerror or error}; choose another place") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _skip_greeting(stream: IO[bytes]) -> None:
    seen = b""
    while not seen.endswith(_MARK):
        byte = stream.read(1)
        if not byte:
            raise EOFError("nothing was sent")
        seen = (seen + byte)[-len(_MARK) :]
