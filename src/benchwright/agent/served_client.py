"""Measures a client against a server: starts the server, waits until it answers, runs the client, stops the server.

    python -m benchprobe.served_client [--ready tcp:HOST:PORT | --ready http://…] [--timeout SECONDS] [--grace SECONDS]
        [--apart] --server N WORD_1 … WORD_N -- CLIENT WORDS…

The N words after `--server` are the server's command. `--apart`: the client gets its own cores. Exit code: the client's (128 + its signal); 1 if the server ended too
early, 2 for a wrong command line, 124 if it did not answer in time, 127 if either could not be started. The server is not
measured: only the client gets the probe's configuration.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Callable, Iterable, List, NamedTuple, NoReturn, Optional

from benchprobe.config import VARIABLE

PR_SET_PDEATHSIG = 1
SERVER_ENDED, WRONG_USE, TOO_LATE, NOT_STARTED = 1, 2, 124, 127
FIRST_LOOK_S, LONGEST_LOOK_S = 0.02, 0.5
CLIENT_ONLY = (VARIABLE, "DATA_FD")  # where the client writes what it measures
USAGE = "python -m benchprobe.served_client [--ready R] [--timeout S] [--grace S] --server N WORDS… -- CLIENT WORDS…"


class Ready(NamedTuple):
    """How to see that a server is up: it accepts TCP connections or, if `url` is set, serves that page."""

    host: str = ""
    port: int = 0
    url: str = ""

    def __str__(self) -> str:
        return self.url or (f"tcp:[{self.host}]:{self.port}" if ":" in self.host else f"tcp:{self.host}:{self.port}")

    def answers(self, timeout_s: float) -> bool:
        """One attempt, of about `timeout_s` at most."""
        from http.client import HTTPException
        from urllib.request import ProxyHandler, build_opener

        try:
            if not self.url:
                socket.create_connection((self.host, self.port), timeout_s).close()
                return True
            opener = build_opener(ProxyHandler({}))  # never through a proxy
            with opener.open(self.url, timeout=timeout_s) as answer:
                return bool(200 <= answer.status < 300)
        except (OSError, HTTPException):
            return False


def parse_ready(text: str) -> Ready:
    """`tcp:HOST:PORT`, `http://…` or `https://…`."""
    if re.match(r"https?://[^/\s]", text):
        return Ready(url=text)
    match = re.fullmatch(r"tcp:(?://)?(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})", text)
    if match is None or not 0 < int(match[3]) < 65536:
        raise argparse.ArgumentTypeError(f"'{text}' is neither tcp:HOST:PORT nor http://HOST:PORT/PATH")
    return Ready(match[1] or match[2], int(match[3]))


class ServingCommand(NamedTuple):
    """`ready` None: the client waits by itself."""

    server: List[str]
    client: List[str]
    ready: Optional[Ready]
    timeout_s: float
    grace_s: float
    apart: bool = False


class Failed(Exception):
    """Why it cannot go on, and the exit code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Failed(WRONG_USE, f"{message}; write {USAGE}")


def parse(words: List[str]) -> ServingCommand:
    """The command line; Failed says what is wrong with it."""
    options = _Options(add_help=False, allow_abbrev=False)
    options.add_argument("--ready", type=parse_ready)
    options.add_argument("--timeout", type=float, default=600.0)
    options.add_argument("--grace", type=float, default=5.0)
    options.add_argument("--apart", action="store_true")
    at = words.index("--server") if "--server" in words else len(words)
    given, programs = options.parse_args(words[:at]), words[at + 1 :]
    count = int(programs[0]) if programs and programs[0].isdecimal() else 0
    server, after = programs[1 : 1 + count], programs[1 + count :]
    if count < 1 or len(server) < count or len(after) < 2 or after[0] != "--":
        options.error("--server needs the number of its words, those words, -- and the client")
    return ServingCommand(server, after[1:], given.ready, given.timeout, given.grace, given.apart)


class SignalWait:
    """Waits for signals and the end of children. For the main thread only."""

    def __init__(self, listened: Iterable[int]) -> None:
        # An ignored one stays ignored: nohup meant it.
        self._listened = [number for number in listened if signal.getsignal(number) is not signal.SIG_IGN]
        self.seen: List[int] = []
        self.on_signal: Callable[[int], None] = lambda number: None

    def __enter__(self) -> SignalWait:
        self._read_fd, self._write_fd = os.pipe()
        for fd in (self._read_fd, self._write_fd):
            os.set_blocking(fd, False)
        self._wakeup_before = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._note) for number in self._listened}
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._read_fd)
        os.close(self._write_fd)

    def wait(self, timeout_s: Optional[float]) -> None:
        """Until a signal, the end of a child, or the time."""
        if select.select([self._read_fd], [], [], timeout_s)[0]:
            with suppress(BlockingIOError):
                os.read(self._read_fd, 4096)

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Whether `condition` came true in time; checked after every event."""
        limit = time.monotonic() + timeout_s
        while not condition():
            left_s = limit - time.monotonic()
            if left_s <= 0:
                return False
            self.wait(left_s)
        return True

    def _note(self, number: int, frame: Any) -> None:
        self.seen.append(number)
        self.on_signal(number)


class _Together:
    """A server and its client, from the server's start to the end of both."""

    def __init__(self, serving: ServingCommand, signals: SignalWait) -> None:
        self._serving = serving
        self._signals = signals
        self._server: Optional[subprocess.Popen[bytes]] = None
        self._client: Optional[subprocess.Popen[bytes]] = None
        self._asked: List[int] = []  # signals that came before there was a client to pass them to

    def run(self) -> int:
        """Returns the exit code once both have ended."""
        self._signals.on_signal = self._pass_on
        ready = self._serving.ready
        if ready is not None and ready.answers(1.0):  # that server would be the one measured
            raise Failed(SERVER_ENDED, f"{ready} already answers: stop the other server, or change the port")
        try:
            self._start_server()
            self._wait_until_ready()
            return self._run_client()
        finally:
            self._end_server()

    def _start_server(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in CLIENT_ONLY}
        # In its own session: Ctrl-C reaches the client first, and its whole group can be ended together.
        options = {"env": environment, "stdin": subprocess.DEVNULL, "start_new_session": True}
        self._server = _start("server", self._serving.server, self._cores(server=True), **options)

    def _cores(self, server: bool) -> Optional[List[int]]:
        """Of one of the two, if they are to be apart and there are cores enough: the last one is the client's."""
        if not self._serving.apart or not hasattr(os, "sched_getaffinity"):
            return None
        cores = sorted(os.sched_getaffinity(0))
        return None if len(cores) < 2 else cores[:-1] if server else cores[-1:]

    def _wait_until_ready(self) -> None:
        ready, began, pause_s = self._serving.ready, time.monotonic(), FIRST_LOOK_S
        while ready is not None:
            left_s = began + self._serving.timeout_s - time.monotonic()
            answers = ready.answers(max(0.05, min(left_s, 2.0)))
            self._give_up_if_asked()
            code = self._server_code()
            if code is not None:
                raise Failed(SERVER_ENDED, f"the server {_ended(code)} before it was ready ({ready})")
            if answers:
                return
            if left_s <= 0:
                raise Failed(TOO_LATE, f"the server did not answer at {ready} within {self._serving.timeout_s:g} s")
            self._signals.wait(min(pause_s, max(left_s, 0.0)))
            pause_s = min(pause_s * 1.5, LONGEST_LOOK_S)

    def _run_client(self) -> int:
        self._give_up_if_asked()
        # Descriptors stay open: the stream of a runner is one of them.
        client = self._client = _start("client", self._serving.client, self._cores(server=False), close_fds=False)
        for number in self._asked:  # while it was being started
            client.send_signal(number)
        while client.poll() is None:
            code = self._server_code()
            if code and not self._signals.seen:  # a signal to all of us ends the server as well
                self._end_client(client)
                raise Failed(SERVER_ENDED, f"the server {_ended(code)} while the client ran; the client was stopped")
            self._signals.wait(None)
        return client.returncode if client.returncode >= 0 else 128 - client.returncode

    def _server_code(self) -> Optional[int]:
        return None if self._server is None else _code_of(self._server)

    def _give_up_if_asked(self) -> None:
        if self._asked:
            name = signal.Signals(self._asked[0]).name
            raise Failed(128 + self._asked[0], f"{name} came before the client was started")

    def _pass_on(self, number: int) -> None:
        if self._client is None:
            self._asked.append(number)
        elif number != signal.SIGINT or not any(os.isatty(fd) for fd in (0, 1, 2)):
            # A terminal sends Ctrl-C to the client itself; a second one would interrupt its shutdown.
            self._client.send_signal(number)

    def _end_client(self, client: subprocess.Popen[bytes]) -> None:
        client.terminate()
        if not self._signals.wait_until(lambda: client.poll() is not None, self._serving.grace_s):
            client.kill()
        client.wait()

    def _end_server(self) -> None:
        """TERM to its whole group, and after the grace period (or a signal to hurry) KILL."""
        server = self._server
        if server is None:
            return
        seen = len(self._signals.seen)
        if _code_of(server) is None:
            _signal_group(server, signal.SIGTERM)
            self._signals.wait_until(
                lambda: _code_of(server) is not None or len(self._signals.seen) > seen, self._serving.grace_s
            )
        _signal_group(server, signal.SIGKILL)
        server.wait()


def _start(what: str, words: List[str], cores: Optional[List[int]], **options: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(words, preexec_fn=_end_with_parent(cores), **options)
    except OSError as error:
        raise Failed(NOT_STARTED, f"the {what} {words[0]} could not be started: {error.strerror}") from None


def _end_with_parent(cores: Optional[List[int]]) -> Optional[Callable[[], None]]:
    """A function for the new process to call first: it asks the kernel to kill the process when this one dies, and keeps to its
    cores, if it has some. None if impossible."""
    if sys.platform != "linux":
        return None
    import ctypes

    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()  # looked up here: nothing may be loaded after the fork

    def before_exec() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if cores is not None:
            os.sched_setaffinity(0, cores)
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


def _code_of(process: subprocess.Popen[bytes]) -> Optional[int]:
    """Its `Popen.returncode`; None: it runs. Not reaped, so that its group keeps its number."""
    if process.returncode is not None or not hasattr(os, "waitid"):
        return process.poll()
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _signal_group(leader: subprocess.Popen[bytes], number: int) -> None:
    with suppress(OSError):  # all of it has ended
        os.killpg(leader.pid, number)


def _ended(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def main(words: Optional[List[str]] = None) -> int:
    try:
        serving = parse(sys.argv[1:] if words is None else words)
        with SignalWait((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)) as signals:
            return _Together(serving, signals).run()
    except Failed as failure:
        print(f"benchprobe.served_client: {failure}", file=sys.stderr, flush=True)
        return failure.code


if __name__ == "__main__":
    sys.exit(main())
