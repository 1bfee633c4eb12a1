"""Looks at the machine while a benchmark runs, and what a voirfile asks of voir."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from voir.instruments.cpu import cpu_monitor, process_monitor
from voir.instruments.gpu import gpu_monitor, select_backend
from voir.instruments.io import io_monitor
from voir.instruments.monitor import monitor as voir_monitor
from voir.instruments.network import network_monitor
from voir.instruments.utils import monitor as polled
from voir.tools import instrument_definition

from . import unknown_names
from .metrics import sumggle_push
from .toggles import get_observation_count, get_poll_interval

_BASE = ("value", "progress", "rate", "units", "loss", "time")
_LEAN = (*_BASE, "gpudata", "memory_peak", "cpudata", "process", "iodata", "netdata")
_DEBUG = ("__iter__", "overhead", "process_time")


def log_patterns() -> tuple[str, ...] | str:
    """Names of the data that voir writes down; $BENCHMATE_LOG_MODE is lean, debug or all."""
    mode = os.getenv("BENCHMATE_LOG_MODE", "lean").lower()
    return "*" if mode == "all" else (*_LEAN, *_DEBUG) if mode == "debug" else _LEAN


def monitors(one_device: bool) -> dict[str, Callable[[], Any]]:
    """What is looked at: the devices, and for several of them the whole machine."""
    found: dict[str, Callable[[], Any]] = {"gpudata": gpu_monitor()}
    if not one_device:
        found.update(iodata=io_monitor(), netdata=network_monitor(), cpudata=cpu_monitor())
    return found


def choose_backend(arch: str | None = None) -> None:
    select_backend(arch, force=True)


@instrument_definition
def monitor_monogpu(ov: Any, poll_interval: float = 1, arch: str | None = None) -> Any:
    interval = get_poll_interval(poll_interval)
    return voir_monitor(ov, poll_interval=interval, worker_init=lambda: choose_backend(arch), **monitors(True))


@instrument_definition
def monitor_process_monogpu(ov: Any, poll_interval: float = 1) -> Any:
    return voir_monitor(ov, poll_interval=get_poll_interval(poll_interval), process=process_monitor(os.getpid()))


@instrument_definition
def monitor_node(ov: Any, poll_interval: float = 1, arch: str | None = None) -> Any:
    interval = get_poll_interval(poll_interval)
    return voir_monitor(ov, poll_interval=interval, worker_init=lambda: choose_backend(arch), **monitors(False))


def voirfile_monitor(ov: Any, options: Any) -> None:
    """What every voirfile wants: the log, the early stop on rank 0, and monitors."""
    from voir.instruments import dash, early_stop, log

    rank, interval = int(os.getenv("RANK", "-1")), get_poll_interval(options.gpu_poll)
    wanted = [*([dash] if options.dash else []), log(*log_patterns(), context="task")]
    if rank <= 0:
        count = get_observation_count(options.stop)
        wanted.append(early_stop(n=count, key="rate", task="train", signal="stop"))
    if rank == -1:
        wanted += [monitor_monogpu(poll_interval=interval), monitor_process_monogpu(poll_interval=interval)]
    elif rank == 0:
        wanted.append(monitor_node(poll_interval=interval))
    ov.require(*wanted)


def setupvoir(monogpu: bool = True, enabled: bool = True, interval: float = 1) -> tuple[Callable[[Any], None], Any]:
    """For programs that voir does not run: a function that hides data in the output, and a monitor, started, that does so too."""
    push = sumggle_push()

    def log(data: dict[str, Any]) -> None:
        try:
            push(**data)
        except ValueError:  # the output is closed: the program is ending
            pass

    looks = monitors(monogpu)

    def look() -> dict[str, Any]:
        return {name: seen() for name, seen in looks.items()}

    def tell(seen: dict[str, Any]) -> None:
        for name, value in seen.items():
            log({"task": "main", name: value})

    poller = polled(get_poll_interval(interval), look, tell, process=False, worker_init=choose_backend)
    if enabled:
        poller.start()
    return log, poller


def milabench_sys_monitor(monogpu: bool = False) -> tuple[Callable[[Any], None], Any]:
    return setupvoir(monogpu)


@contextmanager
def hidden_monitor(one_device: bool, poll_interval: float = 1, enabled: bool = True) -> Iterator[Any]:
    if not enabled:
        yield None
        return
    log, poller = setupvoir(one_device, interval=poll_interval)
    try:
        yield log
    finally:
        poller.stop()


@contextmanager
def multigpu_monitor(poll_interval: float = 1, enabled: bool = True, **_: Any) -> Iterator[Any]:
    with hidden_monitor(False, poll_interval, enabled) as log:
        yield log


@contextmanager
def bench_monitor(poll_interval: float = 1, enabled: bool = True, **_: Any) -> Iterator[Any]:
    """One device outside of torchrun, the whole machine on its rank 0, nothing on the other ranks."""
    rank = int(os.getenv("RANK", "-1"))
    with hidden_monitor(rank == -1, poll_interval, enabled and rank <= 0) as log:
        yield log


__getattr__ = unknown_names(__name__)
