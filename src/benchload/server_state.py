"""The server as seen from outside: how busy it says it is, whether it runs on the client's cores, and waits for them."""

from __future__ import annotations

import http.client
import os
import re
import socket
import ssl
from glob import glob
from time import perf_counter_ns
from typing import Any, Dict, List, Optional, Set, Tuple

from benchload.exchange import run_delay
from benchload.settings import Address

APART, SHARED, UNKNOWN, ELSEWHERE = "apart", "shared", "unknown", "elsewhere"
_PATIENCE_S = 1.0
_LISTENING = "0A"
_WAKE_NS = 50_000  # until a thread runs that was woken up, on an idle machine
# The names that engines give to what we call running, waiting and cache use: vLLM, llama.cpp, SGLang, TGI.
_NAMES = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "cache",
    "vllm:gpu_cache_usage_perc": "cache",
    "llamacpp:requests_processing": "running",
    "llamacpp:requests_deferred": "waiting",
    "llamacpp:kv_cache_usage_ratio": "cache",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
    "sglang:token_usage": "cache",
    "tgi_batch_current_size": "running",
    "tgi_queue_size": "waiting",
}


class ServerMetrics:
    """Reads `/metrics`, until that fails: then there is none."""

    def __init__(self, address: Address, context: Optional[ssl.SSLContext]) -> None:
        self._address, self._context = address, context
        self._connection: Optional[http.client.HTTPConnection] = None
        self.there = True

    def read(self) -> Dict[str, float]:
        """running, waiting and cache (0 to 1), as far as the server tells them; several models are added up."""
        if not self.there:
            return {}
        try:
            if self._connection is None:
                self._connection = self._opened()
            self._connection.request("GET", "/metrics")
            answer = self._connection.getresponse()
            found = parse_metrics(answer.read(1 << 22).decode("utf-8", "replace")) if answer.status == 200 else {}
        except (OSError, http.client.HTTPException):
            found = {}
        self.there = bool(found)
        if not self.there:
            self.close()
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> http.client.HTTPConnection:
        host, port = self._address.host, self._address.port
        if self._context is not None:
            return http.client.HTTPSConnection(host, port, timeout=_PATIENCE_S, context=self._context)
        return http.client.HTTPConnection(host, port, timeout=_PATIENCE_S)


def parse_metrics(text: str) -> Dict[str, float]:
    """Of Prometheus' text format, those we know."""
    found: Dict[str, float] = {}
    for line in text.splitlines():
        match = re.match(r"([A-Za-z_:][\w:]*)(?:\{[^}]*\})?\s+(-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?:\s|$)", line)
        name = _NAMES.get(match[1]) if match is not None else None
        if match is not None and name is not None:
            found[name] = found.get(name, 0.0) + float(match[2])
    return found


class ServerThreads:
    """Of a server on this machine: on whose cores it runs, and how long its threads wait for them."""

    def __init__(self, address: Any, family: int) -> None:
        self._port = int(address[1])
        self._here = _is_here(address[0], family)
        self._began = perf_counter_ns()
        self._before = _run_delays(self._processes())

    def _processes(self) -> Set[int]:
        owners = _listeners(self._port) if self._here else []
        return _with_descendants(owners) if owners else set()

    def ended(self) -> Tuple[str, Optional[float]]:
        """Where it runs, and the share of the time for which the thread that waited longest was ready while others had its core,
        beyond what waking up takes on an idle machine; None: not known."""
        span, processes = perf_counter_ns() - self._began, self._processes()
        shares = []
        for thread, (waited, slices) in _run_delays(processes).items():
            waited_before, slices_before = self._before.get(thread, (0, 0))
            shares.append((waited - waited_before - _WAKE_NS * (slices - slices_before)) / max(1, span))
        return self._placed(processes), max(0.0, *shares) if shares else None

    def _placed(self, processes: Set[int]) -> str:
        if not self._here:
            return ELSEWHERE
        theirs: Set[int] = set()
        for process in processes if hasattr(os, "sched_getaffinity") else ():
            try:
                theirs |= os.sched_getaffinity(process)
            except OSError:
                continue  # it has ended, or is not ours to look at
        if not theirs:
            return UNKNOWN
        return SHARED if theirs & os.sched_getaffinity(0) else APART


def _run_delays(processes: Set[int]) -> Dict[str, Tuple[int, int]]:
    """Of each thread of these."""
    threads = {thread: run_delay(thread) for process in processes for thread in glob(f"/proc/{process}/task/*")}
    return {thread: found for thread, found in threads.items() if found is not None}


def _is_here(address: str, family: int) -> bool:
    """An address that one can bind to is one of this machine's own."""
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind((address, 0))
        except OSError:
            return False
        return True


def _listeners(port: int) -> List[int]:
    """The processes that listen on a port, as far as we may see."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as file:
                rows = [line.split() for line in file.readlines()[1:]]
        except OSError:
            continue
        inodes |= {r[9] for r in rows if r[3] == _LISTENING and int(r[1].rpartition(":")[2], 16) == port}
    wanted = {f"socket:[{inode}]" for inode in inodes}
    found = []
    for process in filter(str.isdigit, os.listdir("/proc") if wanted else ()):
        try:
            links = (os.readlink(f"/proc/{process}/fd/{fd}") for fd in os.listdir(f"/proc/{process}/fd"))
            if any(link in wanted for link in links):
                found.append(int(process))
        except OSError:
            continue  # it has ended, or is not ours to look at
    return found


def _with_descendants(processes: List[int]) -> Set[int]:
    parents: Dict[int, int] = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/stat", "rb") as file:
                parents[int(process)] = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
    found = set(processes)
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}
