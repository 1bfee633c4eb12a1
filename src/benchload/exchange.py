"""One process of the client: sends its requests when they are due and stamps what comes back, on one thread.

Everything that is ready is read and stamped before any of it is parsed, so that one answer does not make another look late.
"""

from __future__ import annotations

import errno
import gc
import heapq
import selectors
import socket
import ssl
from collections import deque
from select import select
from time import perf_counter_ns, process_time_ns
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

from benchload.answer import Answer

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
NS = 1_000_000_000
_READ_BYTES = 1 << 18
_LEAST_BREATH_NS = 3_000_000  # to hand over results, no request may be due within this time
_MOST_HELD = 512  # results that wait for such a moment
_HELD_NS = 250_000_000  # before that, results are not handed over
_WINDOW_NS = NS
_ENDLESS = 4  # times the tokens asked for, and some
_REASONS = {
    errno.ECONNREFUSED: "refused",
    errno.EADDRNOTAVAIL: "ports",
    errno.EMFILE: "files",
    errno.ENFILE: "files",
    errno.ENETUNREACH: "unreachable",
    errno.EHOSTUNREACH: "unreachable",
    errno.ETIMEDOUT: "timeout",
}
_OF_THE_CLIENT = {
    "ports": "the client's machine has no free port left",
    "files": "the client may not open more files; raise ulimit -n",
}


class ServerPlace(NamedTuple):
    """Where requests go, resolved once: no look-up of a name is part of a latency."""

    family: int
    address: Any
    host: str
    context: Optional[ssl.SSLContext]


class SentRequest(NamedTuple):
    """One request that ended, in ns of the monotonic clock; `failure` None: it was answered as a whole.

    `begun`: when the client turned to it. `gaps`: between arrivals of text.
    """

    number: int
    planned: int
    begun: int
    first: Optional[int]
    last: Optional[int]
    ended: int
    chunks: int
    gaps: List[int]
    tokens_in: Optional[int]
    tokens_out: Optional[int]
    cached: Optional[int]
    asked: int
    failure: Optional[str]
    said: str = ""


class Own(NamedTuple):
    """How the process itself did: whether its figures are those of the server."""

    cpu_shares: List[float]  # of a core, each second
    lag_p99_ns: int  # how long something that had come could lie unread
    iterations: int
    waited_ns: Optional[int]  # for a core, all of them together; None: not known


class StopAsked(Exception):
    """A signal asked the client to end."""


class _Talk:
    """A request and its connection."""

    __slots__ = tuple("answer asked begun deadline index planned reused sock state to_send".split())

    def __init__(self, index: int, planned: int, begun: int, to_send: bytes, asked: int, deadline: int) -> None:
        self.index, self.planned, self.begun = index, planned, begun
        self.to_send = memoryview(to_send)
        self.asked, self.deadline = asked, deadline
        self.answer = Answer()
        self.reused = False
        self.sock: Any = None
        self.state = "connect"


def run_delay(thread: str = "/proc/thread-self") -> Optional[Tuple[int, int]]:
    """For how long a thread was ready to run while others had its core, in ns, and how often it got one; None: not known."""
    try:
        with open(f"{thread}/schedstat") as file:
            _, waited_ns, slices = map(int, file.read().split())
        return waited_ns, slices
    except (OSError, ValueError):
        return None


class Requests:
    """The requests of one process. `message(index)`: its bytes and the tokens asked for."""

    def __init__(
        self, message: Callable[[int], Tuple[bytes, int]], planned: Iterator[Tuple[int, int]], users: int = 0
    ) -> None:
        self.message = message
        self._planned = planned
        self.users = users  # 0: an open loop
        self.next: Optional[Tuple[int, int]] = next(planned, None)

    def take(self) -> Tuple[int, int]:
        assert self.next is not None
        taken, self.next = self.next, next(self._planned, None)
        return taken


class Exchange:
    """`hand_over` gets the records from time to time, when there is nothing else to do."""

    def __init__(
        self,
        target: ServerPlace,
        requests: Requests,
        hand_over: Callable[[List[SentRequest]], None],
        request_timeout_s: float,
        until_ns: Optional[int] = None,
        given_up: str = "unfinished",
    ) -> None:
        self._target, self._requests, self._hand_over = target, requests, hand_over
        self._timeout_ns = int(request_timeout_s * NS)
        self._until_ns, self._given_up = until_ns, given_up  # the failure of those that are unfinished then
        self._selector = selectors.DefaultSelector()
        self._idle: Deque[Any] = deque()
        self._active: Dict[int, _Talk] = {}  # by the number of its socket
        self._deadlines: List[Tuple[int, int, _Talk]] = []
        self._free_users = requests.users
        self._records: List[SentRequest] = []
        self._flushed = 0
        self._lags: List[int] = []
        self._shares: List[float] = []
        self._iterations = 0

    def run(self) -> Own:
        """Until all is answered, given up, or StopAsked was raised by a signal."""
        gc.collect()
        gc.disable()  # it would stop the clock for everything that comes meanwhile
        window, cpu, waited = perf_counter_ns(), process_time_ns(), run_delay()
        try:
            while self._goes_on():
                woken = self._wait()
                self._read_all(woken)
                self._give_up_late()
                now = self._start_due()
                self._iterations += 1
                self._note_lag(now - woken[0])
                if now - window >= _WINDOW_NS:
                    used = process_time_ns()
                    self._shares.append((used - cpu) / (now - window))
                    window, cpu = now, used
                if self._records and (len(self._records) >= _MOST_HELD or self._has_time(now)):
                    self._flush(now)
        except StopAsked:
            pass
        finally:
            gc.enable()
            self._close("unfinished")
            self._selector.close()
        now = perf_counter_ns()
        if not self._shares or now - window > _WINDOW_NS // 4:
            self._shares.append((process_time_ns() - cpu) / max(1, now - window))
        lags, waited_now = sorted(self._lags), run_delay()
        in_all = None if waited is None or waited_now is None else waited_now[0] - waited[0]
        return Own(self._shares, lags[int(len(lags) * 0.99)] if lags else 0, self._iterations, in_all)

    def _goes_on(self) -> bool:
        if self._until_ns is not None and perf_counter_ns() >= self._until_ns:
            self._close(self._given_up)
            return False
        return bool(self._active) or self._requests.next is not None

    def _due_ns(self) -> Optional[int]:
        """When the next request is to be sent; None: not before an answer came."""
        if self._requests.next is None or (self._requests.users and not self._free_users):
            return None
        return self._requests.next[1]

    def _has_time(self, now: int) -> bool:
        due = self._due_ns()
        return now - self._flushed > _HELD_NS and (due is None or due - now > _LEAST_BREATH_NS)

    def _wait(self) -> Tuple[int, Any]:
        """When it woke, and what is ready."""
        due = [t for t in (self._due_ns(), self._deadlines[0][0] if self._deadlines else None, self._until_ns) if t]
        until_s = (min(due) - perf_counter_ns()) / NS if due else 1.0
        # epoll counts milliseconds; select on its descriptor counts microseconds.
        select([self._selector.fileno()], [], [], min(max(until_s, 0.0), 1.0))
        woken = perf_counter_ns()
        return woken, self._selector.select(0)

    def _read_all(self, woken: Tuple[int, Any]) -> None:
        pieces = []
        for key, mask in woken[1]:
            talk: Optional[_Talk] = key.data
            if talk is None:
                self._drop_idle(key.fileobj)
            elif mask & WRITE:
                self._write(talk)
            elif talk.state == "read":
                pieces.append((talk, *self._receive(talk.sock)))
            else:
                self._write(talk)  # a handshake that waits to read
        for talk, parts, closed in pieces:
            for data, stamp in parts:
                talk.answer.feed(data, stamp)
            if closed is not None:
                talk.answer.cut(closed)
            self._judge(talk)

    @staticmethod
    def _receive(sock: Any) -> Tuple[List[Tuple[bytes, int]], Optional[int]]:
        """The pieces it has received, each with its stamp, and when it was closed, if it was."""
        parts: List[Tuple[bytes, int]] = []
        while True:
            try:
                data = sock.recv(_READ_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return parts, None
            except OSError:
                return parts, perf_counter_ns()
            stamp = perf_counter_ns()
            if not data:
                return parts, stamp
            parts.append((data, stamp))
            if not isinstance(sock, ssl.SSLSocket):  # TLS may hold more that the selector does not know of
                return parts, None

    def _start_due(self) -> int:
        now = perf_counter_ns()
        while (due := self._due_ns()) is not None and due <= now:
            index, planned = self._requests.take()
            if self._requests.users:
                self._free_users -= 1
                planned = now
            to_send, asked = self._requests.message(index)
            now = perf_counter_ns()
            talk = _Talk(index, planned, now, to_send, asked, now + self._timeout_ns)
            heapq.heappush(self._deadlines, (talk.deadline, index, talk))
            self._connect(talk)
            now = perf_counter_ns()
        return now

    def _connect(self, talk: _Talk) -> None:
        while self._idle:
            talk.sock, talk.reused, talk.state = self._idle.popleft(), True, "send"
            self._active[talk.sock.fileno()] = talk
            self._selector.modify(talk.sock, WRITE, talk)
            self._write(talk)
            return
        self._connect_anew(talk)

    def _connect_anew(self, talk: _Talk) -> None:
        talk.reused, talk.state = False, "connect"
        sock: Any = None
        try:
            sock = socket.socket(self._target.family, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = sock.connect_ex(self._target.address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, "")
        except OSError as error:
            if sock is not None:
                sock.close()
            self._end(talk, _REASONS.get(error.errno or 0, "refused"))
            return
        if self._target.context is not None:
            sock = self._target.context.wrap_socket(
                sock, server_hostname=self._target.host, do_handshake_on_connect=False
            )
        talk.sock = sock
        self._active[sock.fileno()] = talk
        self._selector.register(sock, WRITE, talk)

    def _write(self, talk: _Talk) -> None:
        """Goes on with connecting, the handshake or sending, as far as it can without waiting."""
        try:
            if talk.state == "connect":
                code = talk.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    raise OSError(code, "")
                talk.state = "handshake" if self._target.context is not None else "send"
            if talk.state == "handshake":
                talk.sock.do_handshake()
                talk.state = "send"
            while talk.to_send:
                talk.to_send = talk.to_send[talk.sock.send(talk.to_send) :]
            talk.state = "read"
            self._selector.modify(talk.sock, READ, talk)
        except (BlockingIOError, ssl.SSLWantWriteError):
            self._selector.modify(talk.sock, WRITE, talk)
        except ssl.SSLWantReadError:
            self._selector.modify(talk.sock, READ, talk)
        except OSError as error:
            if talk.reused:
                self._again(talk)
                return
            reason = "tls" if isinstance(error, ssl.SSLError) else _REASONS.get(error.errno or 0, "reset")
            self._leave(talk)
            self._end(talk, reason)

    def _again(self, talk: _Talk) -> None:
        """On a new connection: the server had closed the old one before it saw the request."""
        self._leave(talk)
        talk.to_send, talk.answer = memoryview(talk.to_send.obj), Answer()
        self._connect_anew(talk)

    def _judge(self, talk: _Talk) -> None:
        """Ends it if all has come, or if it never will."""
        answer = talk.answer
        if answer.close and answer.whole and talk.reused and not answer.begun:
            self._again(talk)
            return
        if not answer.whole and answer.chunks > _ENDLESS * talk.asked + 64:
            self._leave(talk)
            self._end(talk, "endless")
            return
        if not answer.whole:
            return
        if answer.close:
            self._leave(talk)
        else:
            del self._active[talk.sock.fileno()]
            self._selector.modify(talk.sock, READ, None)
            self._idle.append(talk.sock)
        failure = answer.failure
        if failure is None and not answer.stamps:
            failure = "empty"
        self._end(talk, failure)

    def _leave(self, talk: _Talk) -> None:
        """Closes its connection."""
        self._active.pop(talk.sock.fileno(), None)
        self._selector.unregister(talk.sock)
        talk.sock.close()

    def _drop_idle(self, sock: Any) -> None:
        """A connection that was not in use became readable: the server closed it."""
        self._selector.unregister(sock)
        if sock in self._idle:
            self._idle.remove(sock)
        sock.close()

    def _end(self, talk: _Talk, failure: Optional[str]) -> None:
        answer, stamps = talk.answer, talk.answer.stamps
        talk.deadline = 0
        self._free_users += bool(self._requests.users)
        self._records.append(
            SentRequest(
                talk.index,
                talk.planned,
                talk.begun,
                stamps[0] if stamps else None,
                stamps[-1] if stamps else None,
                answer.ended_ns or perf_counter_ns(),
                answer.chunks,
                [b - a for a, b in zip(stamps, stamps[1:])],
                answer.tokens_in,
                answer.tokens_out,
                answer.cached,
                talk.asked,
                failure,
                _OF_THE_CLIENT.get(failure, answer.error_text) if failure is not None else "",
            )
        )

    def _give_up_late(self) -> None:
        now = perf_counter_ns()
        while self._deadlines and (self._deadlines[0][0] <= now or not self._deadlines[0][2].deadline):
            talk = heapq.heappop(self._deadlines)[2]
            if talk.deadline:
                self._leave(talk)
                self._end(talk, "timeout")

    def _note_lag(self, lag_ns: int) -> None:
        if len(self._lags) < 1 << 17:
            self._lags.append(lag_ns)
        else:
            self._lags[self._iterations & 0x1FFFF] = lag_ns

    def _flush(self, now: int) -> None:
        records, self._records, self._flushed = self._records, [], now
        self._hand_over(records)

    def _close(self, failure: str) -> None:
        """Closes every connection; what was not answered has that failure."""
        for talk in list(self._active.values()):
            self._leave(talk)
            self._end(talk, failure)
        while self._idle:
            self._idle.pop().close()
        self._flush(0)
