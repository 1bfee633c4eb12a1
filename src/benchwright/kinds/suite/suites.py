"""A suite's selected benchmarks, and the folders, machines and batch sizes they use."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.system import Node, Sizing, SuitePaths, System
from benchwright.kinds.interpreter import default_python
from benchwright.kinds.suite.batch_sizes import read_scaling
from benchwright.kinds.suite.plan.system_options import check_options, number, switch, text, whole_number
from benchwright.kinds.suite.read.suite import read_suite, selected_benchmarks, suite_benchmarks, suite_in
from benchwright.kinds.suite.shipped import named_file
from benchwright.kinds.suite.system_file import read_system
from benchwright.kinds.yaml.value_types import parse_capacity
from benchwright.options.table import Options
from benchwright.options.variables import value_of, values_of


def suite_from_environment(environment: Mapping[str, str]) -> str | None:
    """The default suite, from the environment."""
    # Inside a benchmark's own process such a variable may hold JSON, not a path.
    return next((value for value in values_of("BENCHWRIGHT_CONFIG", environment) if not value.startswith("{")), None)


def read_benchmarks(targets: Sequence[str], options: Options) -> list[Benchmark]:
    """The benchmarks of suite files, as `options` select them; InvalidInput if there is no suite, or it is wrong."""
    wanted = tuple(targets) or tuple(filter(None, [suite_from_environment(os.environ)]))
    if not wanted:
        raise InvalidInput("no suite is named", remedy="name a suite file, or set BENCHWRIGHT_CONFIG")
    return [benchmark for target in wanted for benchmark in selected_benchmarks(suite_path(target), options)]


def wanted_of(benchmarks: Sequence[Benchmark], options: Options) -> list[Benchmark]:
    """Without disabled ones, unless `--select` names them; InvalidInput if none is left."""
    wanted = [b for b in benchmarks if b.enabled or b.name in options.select]
    if not wanted:
        raise InvalidInput("no benchmark is enabled", remedy="name one with --select, or set enabled: true")
    return wanted


def suite_path(target: str) -> str:
    """The file of a suite that is named by its path, its folder, or a word for one that is shipped."""
    path = named_file(target)
    if os.path.isdir(path):
        path = suite_in(path) or os.path.join(path, "suite.yaml")
    if not os.path.isfile(path):
        raise InvalidInput("no such file", where=path, remedy="check the name of the suite")
    return path


def every_benchmark(target: str, options: Options) -> list[Benchmark]:
    """All benchmarks of a suite file, disabled ones too; InvalidInput if there is no such suite, or it is faulty."""
    return suite_benchmarks(read_suite(suite_path(target)), Options(base=options.base))


def suite_paths_of(options: Options, benchmarks: Sequence[Benchmark]) -> SuitePaths:
    """Where these benchmarks find data, environments and machines; reads the system file and scaling files."""
    system = _system(options)
    base = Path(str(options.base))
    data = value_of("BENCHWRIGHT_DATA_DIR", os.environ)
    dirs = {name: str(base / name) for name in ("data", "extra", "cache", "venv", "runs")}
    dirs |= {name: _absolute(path, base) for name, path in system.dirs.items() if name in dirs}
    if data is not None:
        dirs["data"] = _absolute(data, Path.cwd())
    return SuitePaths(
        base=str(base),
        **dirs,
        system=system,
        sizing=_sizing(options, system, benchmarks),
        python=(options.python or current_python()) if options.use_current_env else None,
        overrides=options.overrides,
        interpreters={} if options.use_current_env else _without_environment(benchmarks, dirs["venv"]),
    )


def current_python() -> str:
    """The interpreter of the environment a user is in: the active one, else that of the PATH, else our own."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if home := os.environ.get(variable):
            python = os.path.join(home, "bin", "python")
            if os.access(python, os.X_OK):
                return python

    return default_python()


def _without_environment(benchmarks: Sequence[Benchmark], venv: str) -> dict[str, str]:
    """Groups that need nothing installed run with the interpreter at hand, unless an environment was made for them."""
    needing: dict[str, bool] = {}
    for benchmark in benchmarks:
        folder, environment = benchmark.folder, benchmark.environment
        if folder is None or environment is None:
            continue
        paths = [os.path.join(environment.folder, name) for name in environment.requirements]
        needs = any(_requires_something(path) for path in paths if os.path.exists(path))
        needs = (
            needs
            or not os.path.isdir(folder.path)
            or bool(folder.git or environment.packages or environment.local_packages)
        )
        needing[environment.name] = needing.get(environment.name, False) or needs
    bare = [g for g, needs in needing.items() if not needs and not os.path.lexists(os.path.join(venv, g))]
    return dict.fromkeys(bare, current_python()) if bare else {}


def _requires_something(path: str) -> bool:
    """Whether a requirements file holds anything but comments."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return any(line.strip() and not line.lstrip().startswith("#") for line in file)
    except OSError:
        return True


def _system(options: Options) -> System:
    path = options.system or value_of("BENCHWRIGHT_SYSTEM", os.environ)
    if path is None:
        return _with_options(System(), options.system_options)

    system = read_system(path)[0]
    nodes = tuple(msgspec.structs.replace(node, local=not node.via and is_this_machine(node)) for node in system.nodes)
    return _with_options(msgspec.structs.replace(system, nodes=nodes, file=options.system), options.system_options)


def _with_options(system: System, options: Mapping[str, object]) -> System:
    """`options` as a multirun gives them: dotted names below the system's own."""
    merged = msgspec.json.decode(msgspec.json.encode(system.options))
    for dotted, value in options.items():
        *path, last = dotted.split(".")
        place = merged
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return msgspec.structs.replace(system, options=merged)


def is_this_machine(node: Node) -> bool:
    """Whether a node of a system file is this machine."""
    if node.ip in ("localhost", "127.0.0.1", "::1"):
        return True
    if socket.gethostname() in (node.ip, node.hostname):
        return True
    import psutil

    return any(a.address == node.ip for addresses in psutil.net_if_addrs().values() for a in addresses)


def _sizing(options: Options, system: System, benchmarks: Sequence[Benchmark]) -> Sizing:
    """From the system's `options.sizer`, then what the command line says."""
    check_options(system)
    batch_size = whole_number(system, "sizer", "batch_size")
    auto, optimized = switch(system, "sizer", "auto"), switch(system, "sizer", "optimized")
    if options.size is not None:
        auto, optimized = options.size == "auto", options.size == "optimized"
        batch_size = int(options.size) if options.size.isdecimal() else None
        if not auto and not optimized and batch_size is None and options.size != "default":
            remedy = "write auto, optimized, default, search or a number"
            raise InvalidInput(f"'{options.size}' is not a size", where="--size", remedy=remedy)
    capacity = options.capacity if options.capacity is not None else text(system, "sizer", "capacity")
    scaling_file = options.scaling or text(system, "sizer", "config")
    if scaling_file is None and (auto or optimized):
        scaling_file = _scaling_beside(benchmarks)
    add = number(system, "sizer", "add")
    return Sizing(
        batch_size=batch_size,
        auto=auto,
        optimized=optimized,
        add=None if add is None else int(add),
        mult=number(system, "sizer", "mult"),
        multiple=whole_number(system, "sizer", "multiple") or 8,
        power=whole_number(system, "sizer", "power"),
        capacity_bytes=None if capacity is None else parse_capacity(capacity),
        scaling=read_scaling(scaling_file) if scaling_file is not None and (auto or optimized) else {},
        scaling_file=scaling_file,
        save=options.save_scaling or text(system, "sizer", "save"),
    )


def _scaling_beside(benchmarks: Sequence[Benchmark]) -> str | None:
    """`scaling/<device>.yaml` beside the suite, for the device that is here; else `scaling/default.yaml`."""
    names = [a.name for a in read_machine().accelerators]
    for folder in dict.fromkeys(_suite_folders(benchmarks)):
        files = sorted((folder / "scaling").glob("*.yaml")) if (folder / "scaling").is_dir() else []
        fitting = [f for f in files if any(f.stem.lower() in name.lower() for name in names)]
        for file in [*fitting, *(f for f in files if f.stem == "default")]:
            return str(file)
    return None


def _suite_folders(benchmarks: Iterable[Benchmark]) -> list[Path]:
    found = (b.folder.config.get("config_base") for b in benchmarks if b.folder is not None)
    return [Path(folder) for folder in found if folder]


def _absolute(path: str, start: Path) -> str:
    return os.path.abspath(start / Path(path).expanduser())
