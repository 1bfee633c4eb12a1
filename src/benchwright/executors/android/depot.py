"""Sends files with `adb push`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping

from benchwright.core.errors import CannotMeasure
from benchwright.executors.android.adb import AdbShell
from benchwright.executors.boards.base import Progress
from benchwright.executors.transfer.depot import Depot
from benchwright.executors.transfer.manifest import Entry
from benchwright.executors.transfer.shell import ANSWER, ConnectionLost
from benchwright.executors.transfer.survey import Survey

_FEW = 24  # more files than this travel faster in one tar
# $1: the store, $2: where files arrived, $3: the sum tool. Their names hold their modes, which a push does not keep.
_ARRIVED = f"""\
cd "$1" || exit 1
for file in "$2"/*; do
  mode=${{file%-*}}
  chmod "${{mode##*-}}" "$file"
done
echo '{ANSWER}'
find "$2" -type f -exec $3 {{}} + | sed 's/^/summed /'"""
_MAKE = f"""\
mkdir -p "$1" || exit 1
echo '{ANSWER}'"""


class AdbDepot(Depot):
    """Large files come by `adb push`, many small ones as one archive."""

    def __init__(self, shell: AdbShell, found: Survey) -> None:
        super().__init__(shell, found)
        self._adb = shell

    def _transfer(self, missing: Mapping[str, Entry], progress: Progress) -> bytes:
        if len(missing) > _FEW:
            return super()._transfer(missing, progress)
        arriving = f"{self.folder}/{self._incoming}"
        self._ask(_MAKE, arriving, what="files were sent")
        total, done = sum(entry.size for entry in missing.values()), 0
        for name, entry in missing.items():
            progress(done, total)
            self._push(entry, f"{arriving}/{name}")
            done += entry.size
        progress(done, total)
        return self._ask(_ARRIVED, self.folder, self._incoming, self._found.sum_tool, what="files were checked").text

    def _push(self, entry: Entry, there: str) -> None:
        if entry.source is not None:
            self._push_file(entry.source, there, entry)
            return
        with tempfile.NamedTemporaryFile() as file:
            file.write(entry.content)
            file.flush()
            os.utime(file.name, (entry.mtime_s, entry.mtime_s))
            self._push_file(file.name, there, entry)

    def _push_file(self, here: str, there: str, entry: Entry) -> None:
        # A link would arrive as a link: what it points to is wanted.
        done = subprocess.run(
            self._adb.adb("push", os.path.realpath(here), there),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            check=False,
        )
        said = done.stdout.decode(errors="replace")
        if done.returncode == 0:
            return
        if "No space left" in said:
            raise CannotMeasure(
                f"{self._shell}: it is full; free some space there, or choose another folder with --android-dir"
            )
        what = f"{entry.source or entry.path} could not be pushed"
        why = next((line for line in said.splitlines() if "error" in line), said.strip())
        if self._is_gone():
            raise ConnectionLost(f"the connection to {self._shell} was lost while files were sent: {what}")
        raise CannotMeasure(f"{self._shell}: {what}: {why.removeprefix('adb: error: ')}")

    def _is_gone(self) -> bool:
        state = subprocess.run(self._adb.adb("get-state"), capture_output=True, stdin=subprocess.DEVNULL, check=False)
        return state.stdout.strip() != b"device"
