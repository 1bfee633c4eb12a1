"""A node agent seen from the main process: starting it, talking to it, and cleaning up after it."""

from __future__ import annotations

import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import msgspec

import benchwright.agent
from benchwright.agent.processes import job_group, leftovers
from benchwright.agent.processes.process_tree import LINUX, MARKER, ProcessStat, all_processes, kill_all, read_stat
from benchwright.core.errors import AgentLost
from benchwright.core.secrets import STORE_TOKEN

_SWEEP_S = 5.0
WORD_S = 10.0  # between words to an agent on another node
LEASE_S = 60.0  # without a word, such an agent ends its jobs and itself
SILENCE_S = LEASE_S + 30.0  # without an answer, it is given up: by then it has ended
_WORD = b'{"do":"word"}\n'
AGENT_FOLDER = os.path.dirname(os.path.abspath(benchwright.agent.__file__))


def agent_words(python: str, folder: str = AGENT_FOLDER, *more: str) -> list[str]:
    """The command that starts an agent. `more`: see `benchwright.agent.__main__`."""
    # -P: a json.py in the user's folder must not replace Python's.
    return [python, "-P", os.path.join(folder, "__main__.py"), *more]


def new_token() -> str:
    """A unique mark for the processes of one agent."""
    return f"{os.getpid()}-{os.urandom(8).hex()}"


class AgentProcess:
    """One agent, or the connection to one on another node.

    The agent and every process it starts carry `token` in their environment. If it did not end by itself, `sweep` is called
    with its control group, if any, to end what it left; None: it runs here, where everything with its mark can be found.
    One elsewhere has a lease: see `executors.lease`.
    """

    def __init__(
        self,
        pid: int,
        token: str,
        orders: int,
        messages: int,
        errors: int,
        sweep: Callable[[str | None], None] | None = None,
    ) -> None:
        self._pid = pid
        self._token = token
        self._sweep = sweep or self._sweep_here
        self._is_here = sweep is None
        self._orders = orders
        self._messages = messages
        self._errors = errors
        self._unread = b""
        self._ordering = threading.Lock()  # words come from another thread
        self._heard_at = time.monotonic()
        self._group: str | None = None  # the control group of all it starts, if any
        self._leaders: dict[int, int] = {}  # pid of a job's program → when it started
        self._handle = _open_handle(pid)
        self._last_words = ""
        self.printed = ""  # the end of what it, or the connection to it, printed about itself
        self._exit_status: int | None = None
        self.was_ready = False
        self.is_attentive = False  # it has answered since it was last greeted
        self.is_dead = False
        self.is_silent = False  # nobody is left at the other end

    @classmethod
    def start(cls, argv: list[str], token: str, sweep: Callable[[str | None], None] | None = None) -> Self:
        """Start an agent in a separate session, so that Ctrl-C reaches only the main process."""
        orders_read, orders = os.pipe()
        messages, messages_write = os.pipe()
        errors = _open_scratch()
        try:
            pid = os.posix_spawnp(
                argv[0],
                argv,
                # An agent elsewhere is marked there; the connection must not be mistaken for one of our jobs.
                _without_secret({**os.environ, MARKER: token} if sweep is None else os.environ),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, orders_read, 0),
                    (os.POSIX_SPAWN_DUP2, messages_write, 1),
                    (os.POSIX_SPAWN_DUP2, errors, 2),
                ],
                setsid=True,
            )
        except OSError as error:
            for fd in (orders, messages, errors):
                os.close(fd)
            raise AgentLost(f"{argv[0]} could not be started: {error.strerror}") from error
        finally:
            os.close(orders_read)
            os.close(messages_write)
        return cls(pid, token, orders, messages, errors, sweep)

    def order(self, order: dict[str, object]) -> None:
        """Send one order; `listen` notices if the agent is dead."""
        line = memoryview(msgspec.json.encode(order) + b"\n")
        with self._ordering:
            try:
                while line and self._orders >= 0:
                    line = line[os.write(self._orders, line) :]
            except BrokenPipeError:
                pass

    def send_word(self) -> None:
        """Prolong the lease of an agent elsewhere, which answers. Never blocks."""
        if self._is_here or not self._ordering.acquire(blocking=False):
            return  # an order is a word as well
        try:
            poll = select.poll()
            if self._orders >= 0:
                poll.register(self._orders, select.POLLOUT)
            if any(event & select.POLLOUT for _, event in poll.poll(0)):
                os.write(self._orders, _WORD)
        except BrokenPipeError:
            pass
        finally:
            self._ordering.release()

    @property
    def is_mute(self) -> bool:
        """It has a lease and did not answer for longer than that."""
        return not self._is_here and time.monotonic() - self._heard_at > SILENCE_S

    def greet(self) -> None:
        """Ask for a sign of life: a lost connection may go unnoticed."""
        self.is_attentive = False
        self.order({"do": "greet"})

    def watched(self) -> list[int]:
        """Descriptors that become readable when it says something or ends."""
        return [self._messages] if self._handle is None or self.is_dead else [self._messages, self._handle]

    @property
    def has_no_handle(self) -> bool:
        """Its end wakes nobody, so it has to be polled."""
        return self._handle is None

    @property
    def has_lease(self) -> bool:
        """It is elsewhere, so its silence has to be noticed."""
        return not self._is_here

    def take(self, ready: set[int]) -> list[dict[str, object]]:
        """Its messages, given the descriptors that are readable."""
        if self._handle is None or self._handle in ready:
            self._reap()
        return self._read() if self._messages in ready else []

    def _read(self) -> list[dict[str, object]]:
        data = os.read(self._messages, 1 << 16)
        self.is_silent = not data
        self._heard_at = time.monotonic()
        *lines, self._unread = (self._unread + data).split(b"\n")
        messages: list[dict[str, object]] = []
        for line in lines:
            message = self._understood(line)
            if message is None or message["say"] == "word":  # an answer to a word may be old: it is no greeting
                continue
            messages.append(message)
            if message["say"] == "ready":
                self.was_ready = self.is_attentive = True
                self._group = message.get("group")
            elif message["say"] == "started" and LINUX and self._is_here:
                stat = read_stat(message["pid"])
                if stat is not None:
                    self._leaders[stat.pid] = stat.start_ticks
        return messages

    def _understood(self, line: bytes) -> dict[str, Any] | None:
        """A message; None for anything else, such as what a login on another node prints first."""
        try:
            message = json.loads(line)  # reads NaN and Infinity: a loss may be either
        except (ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) and isinstance(message.get("say"), str) else None

    @property
    def was_killed(self) -> bool:
        """It ended by a signal, not by itself."""
        return self._exit_status is not None and os.WIFSIGNALED(self._exit_status)

    @property
    def exit_code(self) -> int | None:
        """As from `os.waitstatus_to_exitcode`; None while it runs."""
        return None if self._exit_status is None else os.waitstatus_to_exitcode(self._exit_status)

    def is_alive(self) -> bool:
        """Whether it can take orders."""
        self._reap()
        return not self.is_dead

    def _reap(self, *, wait: bool = False) -> None:
        if not self.is_dead:
            try:
                pid, self._exit_status = os.waitpid(self._pid, 0 if wait else os.WNOHANG)
                self.is_dead = pid != 0
            except ChildProcessError:
                self.is_dead, self._exit_status = True, None

    def say_goodbye(self) -> None:
        """No more orders: it ends its jobs and itself."""
        with self._ordering:
            if self._orders >= 0:
                os.close(self._orders)
                self._orders = -1

    def close(self, patience_s: float) -> None:
        """Have the agent end its jobs and itself, and wait for it; kill what does not end in time."""
        self.say_goodbye()
        deadline = time.monotonic() + patience_s
        while not self.is_dead and time.monotonic() < deadline:
            self._discard_messages(0.2)
            self._reap()
        self._end()

    def abandon(self) -> str:
        """Kill the agent and all that carries its mark; returns the last line it printed about itself."""
        self.say_goodbye()
        self._end()
        return self._last_words

    def _end(self) -> None:
        if not self.is_dead:
            os.kill(self._pid, signal.SIGKILL)  # our own child, not yet reaped: the pid is still its own
            self._reap(wait=True)
        # If it did not end by itself it may have left processes; one elsewhere that never spoke started none.
        if self._exit_status != 0 and (self._is_here or self.was_ready):
            self._sweep(self._group)
        length = os.fstat(self._errors).st_size
        self.printed = os.pread(self._errors, 2000, max(0, length - 2000)).decode(errors="replace")
        lines = self.printed.split("\n")
        self._last_words = next((line.strip() for line in reversed(lines) if line.strip()), "")
        for fd in (self._messages, self._errors, self._handle):
            if fd is not None:
                os.close(fd)

    def _discard_messages(self, timeout_s: float) -> None:
        poll = select.poll()
        poll.register(self._messages, select.POLLIN)
        if self._handle is not None:
            poll.register(self._handle, select.POLLIN)
        if any(fd == self._messages for fd, _ in poll.poll(timeout_s * 1000)) and not os.read(self._messages, 1 << 16):
            time.sleep(0.001)

    def _sweep_here(self, group: str | None) -> None:
        """Kill what the agent left: processes with its mark, and those in its programs' sessions."""
        if LINUX:
            job_group.kill(group, self._token)
            kill_all(self._survivors, _SWEEP_S)
            job_group.remove(group)

    def _survivors(self) -> list[ProcessStat]:
        found = {stat.pid: stat for stat in leftovers.find([(self._token, self._group)])}
        for stat in all_processes():
            # A program may clear its environment, but it cannot join an older session.
            if stat.session in self._leaders and self._is_our_session(stat.session):
                found[stat.pid] = stat
        return list(found.values())

    def _is_our_session(self, session: int) -> bool:
        leader = read_stat(session)
        return leader is None or leader.start_ticks == self._leaders[session]


def listen(agents: Iterable[AgentProcess], wake_fd: int, timeout_s: float | None) -> list[dict[str, object]]:
    """Wait for a message of any of them, for `wake_fd`, for the end of an agent or for the timeout."""
    poll = select.poll()
    poll.register(wake_fd, select.POLLIN)
    for agent in agents:
        for fd in agent.watched():
            poll.register(fd, select.POLLIN)
        if timeout_s is None and (agent.has_no_handle or agent.has_lease):
            timeout_s = 0.5 if agent.has_no_handle else WORD_S
    ready = {fd for fd, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)}
    return [message for agent in agents for message in agent.take(ready)]


def _without_secret(environment: Mapping[str, str]) -> dict[str, str]:
    """The programs that are measured must not see the token of the store."""
    return {name: value for name, value in environment.items() if name != STORE_TOKEN}


def _open_handle(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None if the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _open_scratch() -> int:
    """A nameless file for what the agent prints when it fails."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("benchwright-agent")
    return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
