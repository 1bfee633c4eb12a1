"""A launch of the client: checks that the server answers, forks the processes that send, and writes what they saw into the stream.

This process sends none of the requests and only collects, so that writing never delays a stamp.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import resource
import selectors
import signal
import socket
import ssl
import sys
from contextlib import suppress
from statistics import median
from time import perf_counter_ns
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from benchload.exchange import NS, Exchange, Own, Requests, SentRequest, ServerPlace, StopAsked
from benchload.server_state import ServerMetrics, ServerThreads
from benchload.settings import CHAT, FIRST_TOKEN, OPEN, PER_TOKEN, USUAL_REQUESTS, WHOLE, Load, Settings
from benchload.workload import Workload, arrivals_s, fresh_salt

Event = Dict[str, Any]
_HEAD_START_NS = 100_000_000  # until every process is forked
_METRICS_EVERY_S = 0.5
_MOST_PREPARED = 20_000  # bodies made before the start
_CHECK_PATIENCE_S, _CONNECT_PATIENCE_S = 120.0, 5.0
_LEVEL_S, _LEVEL_REQUESTS = 10.0, 60  # of a level of a sweep
_LEAST_LEVEL_S, _LIMITS_LONG = 2.0, 10.0  # so long that a queue that grows breaks the limits: in seconds, and in limits
_PILED_UP, _SLOWER = 2.0, 1.2  # times √requests; times the latency of the first third
_MOST_LEVELS, _CLOSE_ENOUGH = 24, 1.05
_LEAST_DRAIN_S = 5.0
_HTTP = {
    401: "the key is wrong or missing; see --key-from",
    403: "the key does not allow it; see --key-from",
    404: "check --model and the address, which usually ends in /v1",
    429: "it is busy",
}


class CannotServe(Exception):
    """The server cannot be measured: why, for a person."""


def read_key(source: str) -> Optional[str]:
    """From a variable, or @FILE; None: there is none."""
    if not source.startswith("@"):
        return os.environ.get(source) or None
    try:
        with open(os.path.expanduser(source[1:]), encoding="utf-8") as file:
            key = file.read().strip()
    except (OSError, ValueError) as error:
        raise CannotServe(f"the file of --key-from cannot be read: {error}") from None
    if not key.isprintable() or " " in key:
        raise CannotServe("the file of --key-from holds more than a key")
    return key


class Level(NamedTuple):
    """The requests of one rate, and their outcomes."""

    load: Load
    sent: int
    met: int  # requests that were answered within the objective
    fell_behind: bool  # more and more requests waited, for longer and longer: with more time they would be late

    @property
    def share(self) -> float:
        return self.met / self.sent if self.sent else 0.0


def fell_behind(spans: Sequence[Tuple[int, int]]) -> bool:
    """Whether requests were answered more slowly than they came. `spans`: when each was planned and ended."""
    if len(spans) < 12:
        return False
    planned = sorted(begin for begin, _ in spans)
    middle, last = planned[len(planned) // 2], planned[-1]
    came = sum(middle <= begin <= last for begin in planned)
    left = sum(middle <= end <= last for _, end in spans)
    took = [end - begin for begin, end in sorted(spans)]
    third = len(took) // 3
    return came - left > _PILED_UP * came**0.5 and median(took[-third:]) > _SLOWER * median(took[:third])


class LevelPlan(NamedTuple):
    """The requests to send at one level, by all processes together. `arrivals`: in seconds; none: a closed loop."""

    load: Load
    arrivals: Sequence[float]
    began: int
    processes: int
    requests: Optional[int]
    seconds: Optional[float]
    prepared: Dict[int, Tuple[bytes, int]]  # the first messages of an open load
    until: Optional[int] = None  # what is unfinished then is given up


class Client:
    """`put` writes an event into the stream."""

    def __init__(self, settings: Settings, put: Callable[[Event], None]) -> None:
        self._settings, self._put = settings, put
        self._salt = fresh_salt() if settings.salt is None else settings.salt
        self._workload = Workload(settings, self._salt)
        self._until = None if settings.limit_s is None else perf_counter_ns() + int(settings.limit_s * NS)
        self._target = _resolved(settings)
        self._metrics = ServerMetrics(settings.address, self._target.context)
        self._key = read_key(settings.key_from)
        self._sent = 0  # questions that were used up
        self._own: List[Own] = []
        self._level = 0
        self._spans: List[Tuple[int, int]] = []  # of this level

    def run(self) -> None:
        """Raises CannotServe if the server does not answer, StopAsked if asked to end; what was measured is written."""
        _raise_limit_of_files()
        digest = self._workload.digest()
        if self._settings.digest not in (None, digest):
            raise CannotServe("the workload is not the one that was planned: its file has changed")
        about = {"load": str(self._settings.load), "loop": self._settings.load.loop, "api": self._settings.api}
        objective = None if self._settings.objective is None else str(self._settings.objective)
        self._tell("endpoint", **about, digest=digest, salt=self._salt, slo=objective, sweep=self._settings.sweep)
        self._check()
        finished, server = False, ServerThreads(self._target.address, self._target.family)
        try:
            if self._settings.sweep:
                self._sweep()
            else:
                self._run_level(self._settings.load, self._settings.requests, self._settings.seconds)
            finished = True
        finally:
            self._metrics.close()
            cores, server_wait = server.ended()
            self._tell(
                "endpoint_end",
                finished=finished,
                cores=cores,
                server_wait=server_wait,
                cpu=[share for own in self._own for share in own.cpu_shares],
                lag_ns=[own.lag_p99_ns for own in self._own],
                wait_ns=[own.waited_ns // max(1, own.iterations) for own in self._own if own.waited_ns is not None],
            )

    def _tell(self, event: str, **values: Any) -> None:
        self._put({"event": event, "t": perf_counter_ns(), **values})

    def _message(self, index: int) -> Tuple[bytes, int]:
        settings = self._settings
        body, address = self._workload.body(index), settings.address
        path = f"{address.path}/{'chat/completions' if settings.api == CHAT else 'completions'}"
        head = f"POST {path} HTTP/1.1\r\nHost: {address.authority}\r\nContent-Type: application/json\r\n"
        head += f"Accept: text/event-stream\r\nX-Request-Id: {index}\r\nContent-Length: {len(body)}\r\n"
        head += f"Authorization: Bearer {self._key}\r\n" if self._key else ""
        return f"{head}\r\n".encode("latin-1") + body, self._workload.question(index).tokens

    def _check(self) -> None:
        """One request before all others: a server that refuses it would refuse all."""
        seen: List[SentRequest] = []
        requests = Requests(self._message, iter([(0, perf_counter_ns())]))
        patience_s = min(_CHECK_PATIENCE_S, self._settings.request_timeout_s)
        if self._until is not None:
            patience_s = min(patience_s, max(0.0, (self._until - perf_counter_ns()) / NS))
        Exchange(self._target, requests, seen.extend, patience_s).run()
        if not seen or seen[0].failure in (None, "empty"):
            return
        failure, said = str(seen[0].failure), seen[0].said
        code = int(failure[5:]) if failure.startswith("http_") else 0
        why = {
            "refused": "nothing listens there",
            "timeout": f"it did not answer within {patience_s:.3g} s",
            "not_a_stream": "what it answers is no stream of server-sent events",
            "cut": "it closed the connection in the middle of its answer",
        }.get(failure, _HTTP.get(code, failure.replace("_", " ")))
        answered = f"answered {code}" if code else "cannot be measured"
        raise CannotServe(f"{self._settings.url} {answered}: {f'{said}; ' if said else ''}{why}")

    # -- one level -------------------------------------------------------------------------------------------------

    def _run_level(
        self, load: Load, requests: Optional[int], seconds: Optional[float], drain_s: Optional[float] = None
    ) -> Level:
        settings = self._settings._replace(load=load)
        if requests is None and seconds is None and self._workload.times_s is None:
            requests = USUAL_REQUESTS
        timed = load.loop == OPEN or load.kind == "offline"
        arrivals = arrivals_s(settings, self._workload, requests, seconds) if timed else []
        if load.kind == "offline" and not arrivals:
            arrivals = [0.0] * USUAL_REQUESTS
        self._level, self._spans = self._level + 1, []
        last = self._sent + min(len(arrivals), _MOST_PREPARED)
        prepared = {index: self._message(index) for index in range(self._sent, last)}
        began = perf_counter_ns() + _HEAD_START_NS
        drained = None if drain_s is None else began + int(((arrivals[-1] if arrivals else 0.0) + drain_s) * NS)
        until = min((t for t in (drained, self._until) if t is not None), default=None)
        self._tell("level", number=self._level, load=str(load), began=began, arrivals=len(arrivals))
        processes = settings.processes if timed else min(settings.processes, int(load.number))
        plan = LevelPlan(load, arrivals, began, processes, requests, seconds, prepared, until)
        workers = [self._forked(number, plan) for number in range(processes)]
        met = self._collect(workers)
        sent = len(arrivals) or met[1]
        self._sent += sent
        return Level(load, sent, met[0], fell_behind(self._spans))

    def _planned(self, number: int, plan: LevelPlan) -> Tuple[Iterator[Tuple[int, int]], int]:
        """The requests of one of the processes, and its users."""
        step, first = plan.processes, self._sent
        if plan.arrivals:
            mine = range(number, len(plan.arrivals), step)
            return iter([(first + i, plan.began + round(plan.arrivals[i] * NS)) for i in mine]), 0
        users = int(plan.load.number)
        last = None if plan.seconds is None else plan.began + round(plan.seconds * NS)
        indices = itertools.count(number, step) if plan.requests is None else range(number, plan.requests, step)
        return _until(((first + i, plan.began) for i in indices), last), users // step + (number < users % step)

    def _forked(self, number: int, plan: LevelPlan) -> Tuple[int, int]:
        """The process, and the descriptor that its lines come from."""
        read_fd, write_fd = os.pipe()
        planned, users = self._planned(number, plan)
        process = os.fork()
        if process:
            os.close(write_fd)
            return process, read_fd
        code = 1
        try:
            os.close(read_fd)
            _own_core(number, plan.processes)
            lines = _Lines(write_fd)
            exchange = Exchange(
                self._target,
                Requests(lambda index: plan.prepared.pop(index, None) or self._message(index), planned, users),
                lambda records: lines.put({"records": records}),
                self._settings.request_timeout_s,
                plan.until,
                "unfinished" if self._settings.sweep else "timeout",
            )
            own = exchange.run()
            lines.put({"own": own})
            lines.close()
            code = 0
        except StopAsked:
            code = 0
        except Exception as error:
            print(f"benchload: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)

    def _collect(self, workers: List[Tuple[int, int]]) -> Tuple[int, int]:
        """Writes what the processes say until all have ended; how many requests met the objective, and how many there were."""
        selector, open_fds, buffers = selectors.DefaultSelector(), set(), {}
        for _, fd in workers:
            selector.register(fd, selectors.EVENT_READ)
            open_fds.add(fd)
            buffers[fd] = b""
        met = seen = 0
        stopped: Optional[StopAsked] = None
        next_look = perf_counter_ns()
        while open_fds:
            try:
                for key, _ in selector.select(_METRICS_EVERY_S / 2):
                    data = os.read(key.fd, 1 << 20)
                    if not data:
                        selector.unregister(key.fd)
                        open_fds.discard(key.fd)
                        continue
                    *lines, buffers[key.fd] = (buffers[key.fd] + data).split(b"\n")
                    for line in lines:
                        good, count = self._take(json.loads(line))
                        met, seen = met + good, seen + count
                if stopped is None and perf_counter_ns() >= next_look:
                    next_look = perf_counter_ns() + int(_METRICS_EVERY_S * NS)
                    if load := self._metrics.read():
                        self._tell("server_load", **load)
            except StopAsked as asked:
                stopped = asked
                for process, _ in workers:
                    with suppress(OSError):
                        os.kill(process, signal.SIGTERM)
        for process, fd in workers:
            os.waitpid(process, 0)
            os.close(fd)
        if stopped is not None:
            raise stopped
        return met, seen

    def _take(self, line: Dict[str, Any]) -> Tuple[int, int]:
        """A line of a process."""
        if "own" in line:
            self._own.append(Own(*line["own"]))
            return 0, 0
        records = [SentRequest(*fields) for fields in line["records"]]
        if not records:
            return 0, 0
        self._spans += [(r.planned, r.ended) for r in records]
        columns = {name: [getattr(r, name) for r in records] for name in SentRequest._fields if name != "said"}
        said = {r.failure: r.said for r in records if r.failure is not None and r.said}
        self._tell("requests", level=self._level, **columns, **({"said": said} if said else {}))
        objective = self._settings.objective
        if objective is None:
            return 0, len(records)
        return sum(r.failure is None and objective.met(times_of(r)) for r in records), len(records)

    # -- a sweep ---------------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Doubles the rate while the objective is met, then halves the distance to where it is not."""
        objective = self._settings.objective
        assert objective is not None
        drain_s = max(_LEAST_DRAIN_S, 2 * sum(limit for _, limit in objective.limits))
        least_s = max(_LEAST_LEVEL_S, _LIMITS_LONG * max(limit for _, limit in objective.limits))
        lower: Optional[float] = None
        upper: Optional[float] = None
        rate = self._settings.load.number
        for _ in range(_MOST_LEVELS):
            requests, seconds = self._settings.requests, self._settings.seconds
            if requests is None and seconds is None:
                requests = max(_LEVEL_REQUESTS, round(rate * _LEVEL_S))
            requests = None if requests is None else max(requests, math.ceil(rate * least_s))
            seconds = None if seconds is None else max(seconds, least_s)
            level = self._run_level(Load(self._settings.load.kind, rate), requests, seconds, drain_s)
            if self._until is not None and perf_counter_ns() >= self._until:
                return  # this level was cut short, and the highest rate is not known
            meets = level.share >= objective.share and not level.fell_behind
            self._tell("level_end", number=self._level, rate=rate, share=level.share, meets=meets)
            lower, upper = (rate, upper) if meets else (lower, rate)
            if lower is not None and upper is not None and upper / lower <= _CLOSE_ENOUGH:
                break
            if lower is None:
                rate /= 2
            elif upper is None:
                rate *= 2
            else:
                rate = (lower * upper) ** 0.5
        self._tell("capacity", rate=lower, above=upper)


def times_of(record: SentRequest) -> Dict[str, Optional[float]]:
    """In seconds, from the planned time on."""
    first = None if record.first is None else (record.first - record.planned) / NS
    per_token = None
    if record.first is not None and record.last is not None and record.tokens_out and record.tokens_out > 1:
        per_token = (record.last - record.first) / NS / (record.tokens_out - 1)
    return {FIRST_TOKEN: first, PER_TOKEN: per_token, WHOLE: (record.ended - record.planned) / NS}


class _Lines:
    """Writes lines into a pipe without ever waiting for its reader, until the end."""

    def __init__(self, fd: int) -> None:
        self._fd, self._waiting = fd, b""
        os.set_blocking(fd, False)

    def put(self, what: Dict[str, Any]) -> None:
        self._waiting += json.dumps(what, separators=(",", ":")).encode() + b"\n"
        with suppress(BlockingIOError):
            while self._waiting:
                self._waiting = self._waiting[os.write(self._fd, self._waiting) :]

    def close(self) -> None:
        os.set_blocking(self._fd, True)
        while self._waiting:
            self._waiting = self._waiting[os.write(self._fd, self._waiting) :]
        os.close(self._fd)


def _until(planned: Iterator[Tuple[int, int]], last_ns: Optional[int]) -> Iterator[Tuple[int, int]]:
    """Until that time; each is asked for when the one before it was sent."""
    for each in planned:
        if last_ns is not None and perf_counter_ns() >= last_ns:
            return
        yield each


def _own_core(number: int, processes: int) -> None:
    """Each of several processes gets its own core, if there are enough."""
    if processes > 1 and hasattr(os, "sched_getaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= processes:
            os.sched_setaffinity(0, {cores[number]})


def _resolved(settings: Settings) -> ServerPlace:
    address = settings.address
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise CannotServe(f"the name {address.host} cannot be resolved: {error.strerror or error}") from None
    context = ssl.create_default_context() if address.tls else None
    for family, _, _, _, place in found:  # a name such as localhost may have an address that nobody listens at
        with socket.socket(family, socket.SOCK_STREAM) as sock, suppress(OSError):
            sock.settimeout(_CONNECT_PATIENCE_S)
            sock.connect(place)
            if context is not None:
                _check_tls(sock, context, settings)
            return ServerPlace(family, place, address.host, context)
    family, _, _, _, place = found[0]
    return ServerPlace(family, place, address.host, context)


def _check_tls(sock: socket.socket, context: ssl.SSLContext, settings: Settings) -> None:
    """CannotServe with OpenSSL's message, or for a server that does not answer a handshake."""
    try:
        context.wrap_socket(sock, server_hostname=settings.address.host).close()
        return
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", None) or error.reason or str(error)
    except OSError:
        why = f"no handshake within {_CONNECT_PATIENCE_S:g} s"
    what = "its certificate was not accepted, or it speaks no TLS"
    raise CannotServe(f"{settings.url} cannot be measured: {what} ({why})")


def _raise_limit_of_files() -> None:
    """Each request has a socket."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else max(soft, 65536), hard))
