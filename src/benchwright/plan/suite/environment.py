"""The environment a suite's script finds: folders, its configuration, its devices."""

from __future__ import annotations

from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.benchmark_folder import BenchmarkFolder
from benchwright.core.node.system import SuitePaths
from benchwright.core.secrets.redact import redact
from benchwright.plan.process_slots import ProcessSlot
from benchwright.plan.words.machine_facts import MachineFacts

_SELECTION = {"rocm": "ROCR_VISIBLE_DEVICES", "hpu": "HABANA_VISIBLE_MODULES", "xpu": "ONEAPI_DEVICE_SELECTOR"}
CUDA_SELECTION = "CUDA_VISIBLE_DEVICES"


def folders_of(folder: BenchmarkFolder, paths: SuitePaths) -> dict[str, str]:
    """The folders of one benchmark, by the names that suites use."""
    return {
        "base": paths.base,
        "venv": f"{paths.venv}/{folder.install_group}",
        "data": paths.data,
        "runs": paths.runs,
        "extra": f"{paths.extra}/{folder.group}",
        "cache": paths.cache,
        "code": folder.path,
    }


def made_folders(folder: BenchmarkFolder, paths: SuitePaths) -> tuple[str, ...]:
    """Those that a script may write to without making them first."""
    folders = folders_of(folder, paths)
    return folders["data"], folders["extra"], folders["cache"]


def folder_variables(folder: BenchmarkFolder, paths: SuitePaths) -> dict[str, str | None]:
    """Where a script finds its things: the same for every process of a benchmark, in every phase."""
    folders = folders_of(folder, paths)
    variables: dict[str, str | None] = {
        "BENCHWRIGHT_BASE": paths.base,
        "BENCHWRIGHT_DATA_DIR": paths.data,
        "MILABENCH_BASE": paths.base,
        "MILABENCH_DATA_DIR": paths.data,
        **{f"MILABENCH_DIR_{name.upper()}": folder for name, folder in folders.items()},
        "XDG_CACHE_HOME": paths.cache,
        "TORCH_HOME": f"{paths.cache}/torch",
        "HF_HOME": f"{paths.cache}/huggingface",
    }
    if paths.python_of(folder.install_group) == f"{folders['venv']}/bin/python":
        variables["VIRTUAL_ENV"] = folders["venv"]
    return variables


def program_folders(folder: BenchmarkFolder, paths: SuitePaths) -> tuple[str, ...]:
    """What goes in front of $PATH: the programs beside the benchmark's interpreter."""
    programs, slash, _ = paths.python_of(folder.install_group).rpartition("/")
    return (programs,) if slash and programs else ()


class Configuration:
    """$MILABENCH_CONFIG: the resolved entry with what is known only of one process."""

    def __init__(self, benchmark: Benchmark, folder: BenchmarkFolder, paths: SuitePaths) -> None:
        entry: dict[str, Any] = {"name": benchmark.name, **folder.config, "dirs": folders_of(folder, paths)}
        entry.setdefault("definition", folder.path)
        if isinstance(entry.get("env"), dict):
            entry["env"] = redact(
                {str(k): str(v) for k, v in entry["env"].items()}
            )  # programs print it into their logs
        own = ("tag", "device", "devices", "job-number")
        self._name = benchmark.name
        self._common = msgspec.json.encode({k: v for k, v in entry.items() if k not in own}).decode()

    def of(self, slot: ProcessSlot, repeat: int | None = None) -> str:
        """As JSON."""
        tag = [self._name]
        if repeat is not None:
            tag.append(f"R{repeat}")
        own: dict[str, Any] = {"tag": tag, "devices": slot.devices}
        if slot.job is not None:
            tag.append(str(slot.job))
            own["job-number"] = slot.job
        elif slot.device is not None:
            tag.append(f"D{slot.device}")
            own["device"] = slot.device
        if slot.machines > 1:
            tag.append(slot.node)
        return self._common[:-1] + "," + msgspec.json.encode(own).decode()[1:]


def device_variables(slot: ProcessSlot, facts: MachineFacts) -> dict[str, str | None]:
    """Which devices a process sees, where that is not left to the agent, which knows CUDA's."""
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
    """Emulated devices share those that are there."""
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
