"""An Android device for tests: a daemon that speaks the device's side of the adb protocol over TCP.

    device = AdbDevice(folder); device.start()      # then: adb connect 127.0.0.1:PORT

Programs run on this machine, with few tools on their PATH and with the folders of a phone inside `folder`. Attributes make
it misbehave: a device that was not authorised, that is full, that is pulled out in the middle of something.
"""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_HEADER = struct.Struct("<6I")
_CNXN, _AUTH, _OPEN, _OKAY, _CLSE, _WRTE = (
    int.from_bytes(name, "little") for name in (b"CNXN", b"AUTH", b"OPEN", b"OKAY", b"CLSE", b"WRTE")
)
_VERSION, _MOST_BYTES = 0x01000001, 256 * 1024
_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)
_PACKET = struct.Struct("<BI")
_TOKEN = 1
# Folders of a phone, each inside the device's own.
_PLACES = ("/data/local/tmp", "/sys/class/thermal", "/sys/class/power_supply")
TOOLS = """sh cat cp date df env expr find grep kill ls mkdir mv nproc rm rmdir sed setsid sha256sum sleep sort stat tail tar
taskset touch tr uname xargs head wc printf ln chmod echo true false""".split()
_PROPERTIES = {
    "ro.product.model": "Test Phone/1",
    "ro.product.cpu.abi": "arm64-v8a",
    "ro.build.version.release": "12",
    "ro.build.version.sdk": "31",
    "dalvik.vm.isa.arm64.variant": "cortex-a76",
    "ro.serialno": "TEST0001",
}
_BATTERY = """Current Battery Service state:
  AC powered: false
  USB powered: true
  level: 87
  scale: 100
  voltage: 4123
  temperature: 251
"""


class AdbDevice:
    """One device. `serial`: as adb names it."""

    def __init__(self, folder: Path, **properties: str) -> None:
        self.folder = folder
        self.is_authorised = True
        self.answers = True  # False: adb calls it offline
        self.features = "shell_v2,cmd"
        self.full_after: int | None = None  # bytes that can be pushed
        self.unplug_after: int | None = None  # bytes that come by `adb push`
        self.services: list[str] = []  # that were opened
        self.pushed = 0  # bytes that came by `adb push`
        self._listener: socket.socket | None = None
        self._connections: list[_Connection] = []
        self.port = 0
        self.server: AdbServer | None = None  # that it is attached to
        self._outfit({**_PROPERTIES, **properties})

    @property
    def serial(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def is_plugged_in(self) -> bool:
        return self._listener is not None

    @property
    def temporary(self) -> Path:
        """What the device calls /data/local/tmp."""
        return self.folder / "data/local/tmp"

    def _outfit(self, properties: dict[str, str]) -> None:
        programs = self.folder / "system/bin"
        programs.mkdir(parents=True)
        for place in _PLACES:
            (self.folder / place[1:]).mkdir(parents=True)
        for tool in TOOLS:
            found = shutil.which("dash" if tool == "sh" and shutil.which("dash") else tool)
            os.symlink(found or pytest.skip(f"there is no {tool} here"), programs / tool)
        (self.folder / "properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        (self.folder / "dumpsys.battery").write_text(_BATTERY)
        (self.folder / "dumpsys.thermalservice").write_text("IsStatusOverride: false\nThermal Status: 0\n")
        (self.folder / "logcat").write_text("I/Old( 1): from before\n")
        self._script("getprop", f'sed -n "s/^$1=//p" {self.folder}/properties')
        self._script("dumpsys", f'cat {self.folder}/dumpsys.$1 2>/dev/null || echo "Can\'t find service: $1"')
        self._script("log", f'echo "I/$2( $$): $3" >>{self.folder}/logcat')
        self._script("logcat", f'case "$*" in *-c*) : >{self.folder}/logcat;; *) cat {self.folder}/logcat;; esac')

    def _script(self, name: str, text: str) -> None:
        path = self.folder / "system/bin" / name
        path.write_text(f"#!{shutil.which('dash') or '/bin/sh'}\n{text}\n")
        path.chmod(0o755)

    def forbid_hard_links(self) -> None:
        """As SELinux does on phones: unpacking one fails."""
        tar = self.folder / "system/bin/tar"
        real, packed = os.readlink(tar), self.folder / "packed"
        tar.unlink()
        look = "import sys, tarfile; sys.exit(any(member.islnk() for member in tarfile.open(sys.argv[1])))"
        check = f"{sys.executable} -c '{look}' {packed} || {{ echo 'tar: Permission denied' >&2; exit 1; }}"
        self._script(
            "tar", f'case $1 in -x*) cat >{packed}; {check}; exec {real} "$@" <{packed};; esac; exec {real} "$@"'
        )

    def zone(self, kind: str, millidegrees: int) -> None:
        """A sensor."""
        zones = self.folder / "sys/class/thermal"
        zone = zones / f"thermal_zone{len(list(zones.iterdir()))}"
        zone.mkdir()
        (zone / "type").write_text(f"{kind}\n")
        (zone / "temp").write_text(f"{millidegrees}\n")

    def start(self, port: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", port or self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(self, accepted)
            self._connections.append(connection)
            threading.Thread(target=connection.serve, daemon=True).start()

    def unplug(self) -> None:
        """As if its cable were pulled out."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for connection in self._connections:
            connection.close()
        self._connections.clear()

    def path(self, there: str) -> str:
        """Where a path of the device lies on this machine; one that is here already stays."""
        for place in _PLACES:
            if there.startswith(place):
                return f"{self.folder}{there}"
        if not os.path.normpath(there).startswith(f"{self.folder}/"):
            raise PermissionError(13, "Permission denied", there)
        return there

    def command(self, text: str) -> str:
        """A command with the folders of this device in it."""
        for place in _PLACES:
            text = text.replace(f"{self.folder}{place}", place).replace(place, f"{self.folder}{place}")
        return text

    def count(self, size: int) -> None:
        """`adb push` brought this much."""
        self.pushed += size
        if self.unplug_after is not None and self.pushed > self.unplug_after:
            self.unplug()
            raise ConnectionResetError
        if self.full_after is not None and self.pushed > self.full_after:
            raise OSError(28, "No space left on device")


class _Connection:
    """To one adb server."""

    def __init__(self, device: AdbDevice, connected: socket.socket) -> None:
        self.device = device
        self._socket = connected
        self._sending = threading.Lock()
        self._streams: dict[int, _Stream] = {}
        self._numbers = itertools.count(1)  # never used again: a late answer to one stream must not reach another

    def serve(self) -> None:
        try:
            while True:
                command, first, second, size, _, _ = _HEADER.unpack(self._take(_HEADER.size))
                self._answer(command, first, second, self._take(size))
        except (OSError, EOFError):
            self.close()

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed already
        self._socket.close()
        for stream in list(self._streams.values()):
            stream.end()

    def _take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def send(self, command: int, first: int, second: int, data: bytes = b"") -> None:
        header = _HEADER.pack(command, first, second, len(data), sum(data) & 0xFFFFFFFF, command ^ 0xFFFFFFFF)
        with self._sending:
            self._socket.sendall(header + data)

    def _answer(self, command: int, first: int, second: int, data: bytes) -> None:
        if command == _CNXN and self.device.answers:
            if self.device.is_authorised:
                banner = f"device::ro.product.name=test;ro.product.model=Test;ro.product.device=test;features={self.device.features}"
                self.send(_CNXN, _VERSION, _MOST_BYTES, banner.encode())
            else:
                self.send(_AUTH, _TOKEN, 0, os.urandom(20))
        elif command == _AUTH:
            self.send(_AUTH, _TOKEN, 0, os.urandom(20)) if first == 2 else None  # no signature is known
        elif command == _OPEN:
            self._open(first, data.rstrip(b"\0").decode())
        elif command == _WRTE and second in self._streams:
            self._streams[second].given(data)
        elif command == _OKAY and second in self._streams:
            self._streams[second].may_send.release()
        elif command == _CLSE and second in self._streams:
            self._streams.pop(second).end()

    def _open(self, remote: int, service: str) -> None:
        self.device.services.append(service)
        kind, _, command = service.partition(":")
        run: Callable[[_Stream], None] | None = None
        if kind.split(",")[0] in ("shell", "exec"):
            is_v2 = "v2" in kind.split(",")
            run = lambda stream: _Shell(stream, self.device, self.device.command(command), is_v2).run()  # noqa: E731
        elif kind == "sync":
            run = lambda stream: _Sync(stream, self.device).run()  # noqa: E731
        if run is None:
            self.send(_CLSE, 0, remote)
            return
        local = next(self._numbers)
        stream = self._streams[local] = _Stream(self, local, remote)
        self.send(_OKAY, local, remote)
        threading.Thread(target=stream.serve, args=(run,), daemon=True).start()


class _Stream:
    """One service that is in use. Each packet is answered before the next is sent."""

    def __init__(self, connection: _Connection, local: int, remote: int) -> None:
        self._connection = connection
        self._local, self._remote = local, remote
        self._arrived, write_end = os.pipe()
        self._inlet = open(write_end, "wb", buffering=0)  # noqa: SIM115 knows that it is closed; a number is used again
        self._writing, self._ending = threading.Lock(), threading.Lock()
        self.may_send = threading.Semaphore(1)
        self.is_over = False

    def serve(self, run: Callable[[_Stream], None]) -> None:
        try:
            run(self)
            self._connection.send(_CLSE, self._local, self._remote)
        except (OSError, EOFError):
            pass  # the other side is gone
        finally:
            self.end()

    def given(self, data: bytes) -> None:
        """In a thread of its own, so that a service that does not read holds up no other."""

        def pass_on() -> None:
            with self._writing:
                try:
                    view = memoryview(data)
                    while view:
                        view = view[self._inlet.write(view) :]
                    self._connection.send(_OKAY, self._local, self._remote)
                except (OSError, ValueError):
                    pass  # it has ended

        threading.Thread(target=pass_on, daemon=True).start()

    def take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = os.read(self._arrived, size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self.may_send.acquire()
            if self.is_over:
                raise BrokenPipeError
            self._connection.send(_WRTE, self._local, self._remote, bytes(view[:_MOST_BYTES]))
            view = view[_MOST_BYTES:]

    def end(self) -> None:
        with self._ending:
            if not self.is_over:
                self.is_over = True
                self._inlet.close()
                self.may_send.release()


class _Shell:
    """`shell:`: a command. Its pipes are closed when the connection ends, as on a phone: nothing is killed."""

    def __init__(self, stream: _Stream, device: AdbDevice, command: str, is_v2: bool) -> None:
        self._stream = stream
        self._is_v2 = is_v2
        self._process = subprocess.Popen(
            [f"{device.folder}/system/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if is_v2 else subprocess.STDOUT,
            env={"PATH": f"{device.folder}/system/bin", "HOME": "/"},
            cwd=device.folder,
            start_new_session=True,
        )

    def run(self) -> None:
        process, sending = self._process, threading.Lock()
        assert process.stdout is not None

        def forward(source: int, number: int) -> None:
            while data := os.read(source, 1 << 15):
                with sending:
                    self._stream.send(_PACKET.pack(number, len(data)) + data if self._is_v2 else data)

        def guarded(source: int, number: int) -> None:
            try:
                forward(source, number)
            except OSError:
                pass  # nobody listens

        threading.Thread(target=self._feed, daemon=True).start()
        readers = [(process.stdout, _STDOUT), *([(process.stderr, _STDERR)] if process.stderr else [])]
        threads = [threading.Thread(target=guarded, args=(pipe.fileno(), number)) for pipe, number in readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for pipe, _ in readers:
            pipe.close()
        code = process.wait()
        if self._is_v2:
            self._stream.send(_PACKET.pack(_EXIT, 1) + bytes([code if code >= 0 else 128 - code]))

    def _feed(self) -> None:
        assert self._process.stdin is not None
        try:
            while True:
                number, size = _PACKET.unpack(self._stream.take(_PACKET.size))
                data = self._stream.take(size)
                if number == _CLOSE_STDIN:
                    break
                if number == _STDIN:
                    self._process.stdin.write(data)
                    self._process.stdin.flush()
        except (OSError, EOFError):
            pass  # the connection or the program has ended
        try:
            self._process.stdin.close()
        except OSError:
            pass


class _Sync:
    """`sync:`: files."""

    def __init__(self, stream: _Stream, device: AdbDevice) -> None:
        self._stream = stream
        self._device = device

    def run(self) -> None:
        while True:
            what, size = self._stream.take(4), struct.unpack("<I", self._stream.take(4))[0]
            if what == b"QUIT":
                return
            argument = os.fsdecode(self._stream.take(size))
            try:
                {b"STAT": self._stat, b"LIST": self._list, b"SEND": self._receive, b"RECV": self._deliver}[what](
                    argument
                )
            except ConnectionError:
                raise
            except OSError as error:
                said = f"{error.strerror}".encode()
                self._stream.send(b"FAIL" + struct.pack("<I", len(said)) + said)
                if what == b"SEND":
                    self._drain()

    def _numbers(self, path: str) -> bytes:
        try:
            found = os.lstat(self._device.path(path))
        except OSError:
            return struct.pack("<3I", 0, 0, 0)
        return struct.pack("<3I", found.st_mode, found.st_size & 0xFFFFFFFF, int(found.st_mtime))

    def _stat(self, path: str) -> None:
        self._stream.send(b"STAT" + self._numbers(path))

    def _list(self, path: str) -> None:
        answer = b""
        for name in os.listdir(self._device.path(path)):
            word = os.fsencode(name)
            answer += b"DENT" + self._numbers(f"{path}/{name}") + struct.pack("<I", len(word)) + word
        self._stream.send(answer + b"DONE" + bytes(16))

    def _receive(self, argument: str) -> None:
        there, _, mode = argument.rpartition(",")
        path = self._device.path(there)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            while self._stream.take(4) == b"DATA":
                data = self._stream.take(struct.unpack("<I", self._stream.take(4))[0])
                file.write(data)
                self._device.count(len(data))
        time_s = struct.unpack("<I", self._stream.take(4))[0]
        os.chmod(path, int(mode) & 0o777)
        os.utime(path, (time_s, time_s))
        self._stream.send(b"OKAY" + bytes(4))

    def _drain(self) -> None:
        while self._stream.take(4) == b"DATA":
            self._stream.take(struct.unpack("<I", self._stream.take(4))[0])
        self._stream.take(4)

    def _deliver(self, path: str) -> None:
        with open(self._device.path(path), "rb") as file:
            while data := file.read(1 << 16):
                self._stream.send(b"DATA" + struct.pack("<I", len(data)) + data)
        self._stream.send(b"DONE" + bytes(4))


class AdbServer:
    """A real adb server with a port and a home of its own. `environment`: for those who use it."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        home = folder / "adb-home"
        home.mkdir(parents=True)
        self.environment = {"ANDROID_ADB_SERVER_PORT": str(self.port), "HOME": str(home)}
        self._log = open(folder / "adb.log", "wb")  # noqa: SIM115
        self._server = subprocess.Popen(
            ["adb", "-P", str(self.port), "nodaemon", "server"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, **self.environment, "ADB_LOCAL_TRANSPORT_MAX_PORT": "5554"},
            start_new_session=True,
        )
        self._wait_until_it_listens()  # before: a client that finds no server starts one of its own, which would stay

    def _wait_until_it_listens(self) -> None:
        limit = time.monotonic() + 30
        while self._server.poll() is None and time.monotonic() < limit:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError(Path(self._log.name).read_text(errors="replace"))

    def adb(self, *words: str) -> str:
        found = subprocess.run(
            ["adb", *words], capture_output=True, text=True, env={**os.environ, **self.environment}, timeout=300
        )
        return found.stdout + found.stderr

    def connect(self, device: AdbDevice) -> str:
        """Attach it; returns what adb says."""
        return self.adb("connect", device.serial)

    def stop(self) -> None:
        """Ends it; AssertionError if another server took its place, which is then ended too."""
        was_alive = self._server.poll() is None
        self._server.terminate()
        self._server.wait()
        self._log.close()
        with socket.socket() as other:
            is_left = other.connect_ex(("127.0.0.1", self.port)) == 0
        if is_left:
            self.adb("kill-server")
        assert not is_left, "a client of adb started a server of its own"
        assert was_alive, "the adb server ended by itself"


def start_adb_server(folder: Path) -> AdbServer:
    """Skips the test where there is no adb."""
    if shutil.which("adb") is None:
        pytest.skip("there is no adb on this machine (Debian: apt install adb)")
    return AdbServer(folder)


@contextmanager
def attached(folder: Path, **properties: str) -> Iterator[AdbDevice]:
    """A device, and an adb server that knows it: adb finds that one as long as this lasts."""
    server = start_adb_server(folder)
    device = AdbDevice(folder / "phone", **properties)
    device.start()
    device.server = server
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        server.connect(device)
        try:
            yield device
        finally:
            device.unplug()
            server.stop()
