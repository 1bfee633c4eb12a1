"""An Android device as a board: what every board does, and what phones need: they get hot, and programs write to their log."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from tempfile import gettempdir
from types import TracebackType
from typing import Self

import msgspec

from benchwright.core.errors import CannotMeasure
from benchwright.core.file_lock import try_lock
from benchwright.core.machine import ANDROID
from benchwright.executors.android.adb import AdbShell
from benchwright.executors.android.phone import ANDROID_DIR, Before, Heat, Phone, empty_log, read_log, read_phone
from benchwright.executors.boards.base import BoardCommand, BoardExit, BoardOutput, BoardProperties, Progress
from benchwright.executors.boards.shell_board import ShellBoard
from benchwright.executors.transfer.depot import Depot
from benchwright.executors.transfer.manifest import Entry
from benchwright.executors.transfer.shell import ANSWER, ConnectionLost
from benchwright.executors.transfer.survey import Survey

# Sends files with `adb push`.


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


_COOL_S = 120.0  # the longest wait for a device to cool down
_LOOK_S = 2.0
_LOCK_S = 0.2
_SHELL = "/bin/sh"  # older devices have none there
_LOGGED_BY = re.compile(rb"[A-Z]/[^(]*\( *(\d{1,9})\): ")
_SHORTEST = 8  # a shorter line of the log may equal one that was printed by chance


class AdbBoard(ShellBoard):
    """`folder`: where to put files there. `cool_s`: how long to wait for the device to cool down. `waiting`: whether to
    go on waiting for another run that uses it."""

    def __init__(
        self,
        shell: AdbShell,
        folder: str | None = None,
        digests: str | None = None,
        *,
        cool_s: float = _COOL_S,
        look_s: float = _LOOK_S,
        waiting: Callable[[], bool] = lambda: False,
    ) -> None:
        folder = (folder or ANDROID_DIR).rstrip("/")
        super().__init__(shell, f"{folder}/benchwright", digests)
        self._adb = shell
        self._android_dir = folder
        self._cool_s = cool_s
        self._look_s = look_s
        self._waiting = waiting
        self._phone: Phone | None = None
        self._lock: DeviceLock | None = None

    def __enter__(self) -> Self:
        self._lock = _locked(self._adb.serial, self._waiting)
        try:
            self._phone = read_phone(self._adb, self._android_dir)
            return super().__enter__()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._lock is not None:
            self._lock.release()

    def properties(self) -> BoardProperties:
        found, phone = super().properties(), self._phone
        assert phone is not None, "the board is not open"
        machine = msgspec.structs.replace(
            found.machine,
            hostname=self._adb.serial,
            system=ANDROID,
            cpu=f"{phone.model} ({phone.variant})",
            platform=phone.platform,
        )
        return msgspec.structs.replace(found, machine=machine)

    def run(self, command: BoardCommand, output: BoardOutput, stopped: Callable[[], bool]) -> BoardExit:
        if command.argv[0] == _SHELL:
            command = msgspec.structs.replace(command, argv=("sh", *command.argv[1:]))
        try:
            before = self._cool_down(output, stopped)
        except CannotMeasure as error:
            return BoardExit(lost=True, detail=str(error))
        heard = _Heard(output, before.running)
        ended = super().run(command, heard, stopped)
        if not ended.lost and heard.has_started:
            self._add_log(heard)
        return ended

    def _cool_down(self, output: BoardOutput, stopped: Callable[[], bool]) -> Before:
        """Empties the log and waits, not for ever, until the device no longer throttles."""
        last = first = empty_log(self._adb)
        began = time.monotonic()
        while last.heat.why_not_cool and time.monotonic() - began < self._cool_s and not stopped():
            time.sleep(self._look_s)
            last = empty_log(self._adb)
        if first.heat.why_not_cool:
            output.note(_about_waiting(first.heat, last.heat, time.monotonic() - began))
        return last

    def _add_log(self, heard: _Heard) -> None:
        try:
            log = read_log(self._adb)
        except CannotMeasure as error:
            heard.note(f"the device's log could not be read after the program ended: {error}")
            return
        heard.add_log(log)

    def _depot(self) -> Depot:
        return AdbDepot(self._adb, self._known())


def _about_waiting(first: Heat, last: Heat, waited_s: float) -> str:
    if last.why_not_cool:
        return f"{last.why_not_cool} and did not cool down within {waited_s:.0f} s; results may be slower than usual"
    return f"waited {waited_s:.0f} s for the device to cool down, since {first.why_not_cool}"


class _Heard(BoardOutput):
    """Passes on what a program prints. Lines of the device's log that it printed too are left out: a result that a program
    both prints and logs is one result. So are those of processes that were there before: they are not about the program."""

    def __init__(self, output: BoardOutput, others: Collection[int]) -> None:
        self._output = output
        self._others = others
        self._rest = {"stdout": b"", "stderr": b""}
        self._lines: set[bytes] = set()
        self.has_started = False

    def started(self, pid: int) -> None:
        self.has_started = True
        self._output.started(pid)

    def stdout(self, data: bytes) -> None:
        self._remember("stdout", data)
        self._output.stdout(data)

    def stderr(self, data: bytes) -> None:
        self._remember("stderr", data)
        self._output.stderr(data)

    def note(self, text: str) -> None:
        self._output.note(text)

    def add_log(self, log: bytes) -> None:
        lines = [line for line in log.splitlines() if line.strip() and not line.startswith(b"--------- ")]
        lines = [line for line in lines if (of := _LOGGED_BY.match(line)) is None or int(of[1]) not in self._others]
        known = self._lines | {rest.strip() for rest in self._rest.values()}
        new = [line for line in lines if line.partition(b"): ")[2].strip() not in known]
        if new:
            before = b"\n" if any(self._rest.values()) else b""
            self._output.stderr(before + b"\n".join(new) + b"\n")

    def _remember(self, stream: str, data: bytes) -> None:
        *lines, self._rest[stream] = (self._rest[stream] + data).split(b"\n")
        self._lines.update(line.strip() for line in lines if len(line) >= _SHORTEST)


class DeviceInUse(CannotMeasure):
    """Another run uses the device."""


def _locked(serial: str, waiting: Callable[[], bool]) -> DeviceLock:
    while True:
        try:
            return DeviceLock(serial)
        except DeviceInUse:
            if not waiting():
                raise
            time.sleep(_LOCK_S)


class DeviceLock:
    """Held while a run uses a device: two at once would disturb each other. DeviceInUse if another has it."""

    def __init__(self, serial: str) -> None:
        name = hashlib.sha256(serial.encode()).hexdigest()[:16]
        path = os.path.join(gettempdir(), f"benchwright-{os.getuid()}-device-{name}")
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise CannotMeasure(f"{path}: {error.strerror}; remove it") from error
        if not try_lock(self._file):
            holder = os.pread(self._file, 20, 0).decode(errors="replace").strip()
            os.close(self._file)
            who = f" (process {holder})" if holder else ""
            raise DeviceInUse(f"device '{serial}': another run is using it{who}; wait for it to end")
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Twice does no harm."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
