"""The machines a suite runs on, as a system file describes them, and the folders a suite uses."""

from __future__ import annotations

from typing import Any

import msgspec

# The keys that each section of a system's options may have.
OPTION_KEYS: dict[str, tuple[str, ...]] = {
    "cpu": ("auto", "enabled", "n_workers", "min", "max", "reserved_cores", "total_count"),
    "sizer": ("batch_size", "auto", "optimized", "add", "mult", "multiple", "power", "capacity", "save", "config"),
    "torchrun": ("port", "backend"),
}


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A machine of the cluster. `local`: this machine, reached without ssh. `user` and `port` None: as ssh is configured.
    `via`: words that run the command after them on the node; empty: it is reached by ssh."""

    name: str
    ip: str
    user: str | None = None
    port: int | None = None
    main: bool = False
    hostname: str | None = None
    local: bool = False
    via: tuple[str, ...] = ()


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """A container engine and the image to run benchmarks in."""

    executable: str  # docker, podman…
    image: str
    base: str | None = None
    args: tuple[str, ...] = ()


class System(msgspec.Struct, frozen=True, kw_only=True):
    """`arch`, `gpu_count` and `gpu_capacity_bytes` are None if they are to be detected."""

    arch: str | None = None
    nodes: tuple[Node, ...] = ()
    sshkey: str | None = None
    gpu_count: int | None = None
    gpu_capacity_bytes: int | None = None
    container: Container | None = None
    dirs: dict[str, str] = {}  # data, extra, cache, venv, runs: replace those of the base folder
    options: dict[str, Any] = {}  # options.cpu, options.torchrun…: as written
    secrets: tuple[str, ...] = ()  # names of variables and options, beside those known everywhere; `*` for anything
    file: str | None = None  # as given on the command line

    @property
    def main_node(self) -> Node | None:
        """The one marked as main, else the first; None: only this machine."""
        return next((n for n in self.nodes if n.main), self.nodes[0] if self.nodes else None)


class MultirunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence of runs: one for each combination of `matrix`, whose keys are options."""

    name: str  # may hold {sizer.capacity}, {time}…
    matrix: dict[str, Any] = {}  # option → a value, or a list of values


class Multirun(msgspec.Struct, frozen=True, kw_only=True):
    """The section `multirun` of a system file."""

    runs: tuple[MultirunEntry, ...] = ()


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The memory one batch size needed. `memory_bytes` None: it did not fit."""

    batch_size: int
    memory_bytes: int | None
    perf: float | None = None
    cpu: int | None = None
    time: float | None = None


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """Observations of a benchmark's memory at several batch sizes."""

    observations: tuple[Observation, ...] = ()
    arg: str | None = None  # the argument that holds the batch size
    optimized: int | None = None


class Sizing(msgspec.Struct, frozen=True, kw_only=True):
    """How `auto_batch(default)` chooses a batch size. With all settings unchanged: the default."""

    batch_size: int | None = None  # the same for every benchmark
    auto: bool = False  # by a fit of `scaling`
    optimized: bool = False
    add: int | None = None
    mult: float | None = None
    multiple: int = 8
    power: int | None = None
    capacity_bytes: int | None = None  # None: the device's own
    scaling: dict[str, Scaling] = {}  # by benchmark
    scaling_file: str | None = None
    save: str | None = None  # the scaling file to add this run's observations to


class SuitePaths(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of a suite's benchmarks; kept with the run, so that resuming uses the same.

    `python`: `--use-current-env`, one interpreter for all instead of `venv/<install_group>/bin/python`;
    `interpreters`: for install groups without an environment, which need nothing installed.
    """

    base: str
    data: str
    extra: str
    cache: str
    venv: str
    runs: str
    system: System = System()
    sizing: Sizing = Sizing()
    python: str | None = None
    interpreters: dict[str, str] = {}
    overrides: tuple[str, ...] = ()  # of the suite, as given on the command line

    def python_of(self, install_group: str) -> str:
        """The interpreter of an install group's benchmarks."""
        return self.python or self.interpreters.get(install_group) or f"{self.venv}/{install_group}/bin/python"
