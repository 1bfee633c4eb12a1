"""The surroundings of a suite's script: interpreter, folders, configuration, devices."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.node.system import SuitePaths
from benchwright.core.secrets.redact import redact
from benchwright.kinds.suite.benchfile.benchfile import BENCHFILE
from benchwright.kinds.suite.plan.machine_facts import MachineFacts
from benchwright.plan.process_slots import ProcessSlot

_SELECTION = {"rocm": "ROCR_VISIBLE_DEVICES", "hpu": "HABANA_VISIBLE_MODULES", "xpu": "ONEAPI_DEVICE_SELECTOR"}
_OF_SYSTEM = re.compile(r"\$\{system\.([\w.]+)\}")
CUDA_SELECTION = "CUDA_VISIBLE_DEVICES"


class BenchmarkPlace:
    """Where one benchmark of a suite finds its interpreter and its folders."""

    def __init__(self, benchmark: Benchmark, paths: SuitePaths) -> None:
        if benchmark.folder is None or benchmark.environment is None:
            raise InvalidInput(f"{benchmark.name} does not belong to a suite", where=benchmark.source)
        self.folder = benchmark.folder
        self.python = paths.python_of(benchmark.environment.name)
        self.folders = {  # by the names that suites use
            "base": paths.base,
            "venv": f"{paths.venv}/{benchmark.environment.name}",
            "data": paths.data,
            "runs": paths.runs,
            "extra": f"{paths.extra}/{self.folder.group}",
            "cache": paths.cache,
            "code": self.folder.path,
        }

    @property
    def made_folders(self) -> tuple[str, ...]:
        """Folders that exist before a script starts, for it to write to."""
        return self.folders["data"], self.folders["extra"], self.folders["cache"]

    @property
    def program_folders(self) -> tuple[str, ...]:
        """Folders to put in front of $PATH: the programs beside the interpreter."""
        programs, slash, _ = self.python.rpartition("/")
        return (programs,) if slash and programs else ()

    def variables(self, facts: MachineFacts) -> dict[str, str | None]:
        """Environment variables that are the same for every process of the benchmark, in every phase."""
        folders = self.folders
        variables: dict[str, str | None] = {
            "BENCHWRIGHT_BASE": folders["base"],
            "BENCHWRIGHT_DATA_DIR": folders["data"],
            "MILABENCH_BASE": folders["base"],
            "MILABENCH_DATA_DIR": folders["data"],
            **{f"MILABENCH_DIR_{name.upper()}": folder for name, folder in folders.items()},
            "XDG_CACHE_HOME": folders["cache"],
            "TORCH_HOME": folders[
                "cache"
            ],  # these two as milabench sets them: a base that it prepared is used as it is
            "HF_HOME": folders["data"],
        }
        if os.path.exists(os.path.join(self.folder.path, BENCHFILE)):  # milabench's `make_env` says so
            variables["OMP_NUM_THREADS"] = str(max(1, facts.names["cpu_per_gpu"]))
        if self.folder.benchmate is not None and not self._has_benchmate():
            variables["PYTHONPATH"] = self.folder.benchmate
        if self.python == f"{folders['venv']}/bin/python":
            variables["VIRTUAL_ENV"] = folders["venv"]
        return variables

    def _has_benchmate(self) -> bool:
        """An environment of ours has it installed; in somebody else's one looks."""
        if self._is_ours:
            return True
        prefix = os.path.dirname(os.path.dirname(self.python))
        return bool(glob.glob(os.path.join(glob.escape(prefix), "lib", "python*", "*-packages", "*benchmate*")))

    @property
    def _is_ours(self) -> bool:
        venv = self.folders["venv"]
        return self.python == f"{venv}/bin/python" and (os.path.islink(venv) or not os.path.lexists(venv))


class MilabenchConfig:
    """$MILABENCH_CONFIG: the resolved entry, and what differs between the processes of a benchmark."""

    def __init__(self, benchmark: Benchmark, place: BenchmarkPlace, facts: MachineFacts, run_name: str) -> None:
        system = described_system(place, facts, run_name)
        entry: dict[str, Any] = {"name": benchmark.name, **_with_system(place.folder.config, system)}
        entry |= {"dirs": place.folders, "system": system, "run_name": run_name}
        entry["capabilities"] = {"nodes": 1} | (entry.get("capabilities") or {})
        entry.setdefault("definition", place.folder.path)
        if isinstance(entry.get("env"), dict):  # programs print it into their logs
            entry["env"] = redact({str(k): str(v) for k, v in entry["env"].items()})
        own = ("tag", "device", "devices", "job-number")
        self._name = benchmark.name
        self._common = msgspec.json.encode({k: v for k, v in entry.items() if k not in own}).decode()

    def of(self, slot: ProcessSlot, repeat: int | None = None, planned_tag: tuple[str, ...] | None = None) -> str:
        """As JSON; with the tag that a benchfile's plan gives the process, if it has one."""
        tag = [self._name]
        if repeat is not None:
            tag.append(f"R{repeat}")
        own: dict[str, Any] = {"tag": tag, "devices": slot.devices}
        if slot.job is not None:
            own["job-number"] = slot.job
        elif slot.device is not None:
            own["device"] = slot.device
        tag += planned_tag[1:] if planned_tag is not None else _tag_of(slot)
        return self._common[:-1] + "," + msgspec.json.encode(own).decode()[1:]


def described_system(place: BenchmarkPlace, facts: MachineFacts, run_name: str) -> dict[str, Any]:
    """The machines and folders, as milabench describes them to a benchmark."""
    known = facts.names["system"]
    gpu = {**known["gpu"], "capacity": f"{(facts.capacity_bytes or 0) >> 20} MiB"}
    folders = {name: place.folders[name] for name in ("data", "runs", "cache")}
    folders |= {name: os.path.dirname(place.folders[name]) for name in ("venv", "extra")}  # theirs are of all groups
    main = known["nodes"][0]
    about = {"gpu": gpu, "sshkey": None, "self": main, "base": place.folders["base"], "dirs": folders}
    return {**known, **about, "run_name": run_name}


def _with_system(value: Any, system: Mapping[str, Any]) -> Any:
    """`value` with every `${system.…}` in its texts filled; one that leads nowhere stays."""
    if isinstance(value, dict):
        return {key: _with_system(item, system) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_system(item, system) for item in value]
    return _OF_SYSTEM.sub(lambda found: _at(system, found), value) if isinstance(value, str) else value


def _at(system: Mapping[str, Any], found: re.Match[str]) -> str:
    value: Any = system
    for key in found[1].split("."):
        if not isinstance(value, Mapping) or key not in value:
            return found[0]
        value = value[key]
    return str(value)


def _tag_of(slot: ProcessSlot) -> list[str]:
    numbered = [str(slot.job)] if slot.job is not None else [f"D{slot.device}"] if slot.device is not None else []
    return numbered + ([slot.node] if slot.machines > 1 else [])


def device_variables(slot: ProcessSlot, facts: MachineFacts) -> dict[str, str | None]:
    """Variables that choose the devices a process sees; the agent sets CUDA's where it can."""
    if not slot.devices:
        return {}
    variable = _SELECTION.get(facts.arch)
    if variable is not None:
        listed = ",".join(map(str, slot.devices))
        # HIP reads CUDA's variable too, and would count again among those that are left.
        return {variable: f"level_zero:{listed}" if facts.arch == "xpu" else listed, CUDA_SELECTION: None}
    if facts.emulated or facts.unseen:
        return {CUDA_SELECTION: ",".join(dict.fromkeys(_real(device, facts) for device in slot.devices))}
    return {}


def _real(device: int, facts: MachineFacts) -> str:
    """Emulated devices share the real ones."""
    return str(facts.real_devices[device % len(facts.real_devices)] if facts.real_devices else device)


def node_variables(slot: ProcessSlot, port: int) -> dict[str, str | None]:
    """For scripts that run on several machines without a launcher."""
    if slot.machines == 1:
        return {}
    return {
        "BENCHWRIGHT_NODE_RANK": str(slot.node_rank),
        "BENCHWRIGHT_NODE_COUNT": str(slot.machines),
        "BENCHWRIGHT_MAIN_ADDRESS": slot.address,
        "BENCHWRIGHT_MAIN_PORT": str(port),
    }
