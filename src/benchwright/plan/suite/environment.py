"""The environment a suite's script finds: folders, its configuration, its devices."""

from __future__ import annotations

from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.node.system import Surroundings
from benchwright.core.pack import Pack
from benchwright.core.secrets.redact import redact
from benchwright.plan.process_slots import Seat
from benchwright.plan.words.machine_facts import MachineFacts

_SELECTION = {"rocm": "ROCR_VISIBLE_DEVICES", "hpu": "HABANA_VISIBLE_MODULES", "xpu": "ONEAPI_DEVICE_SELECTOR"}
CUDA_SELECTION = "CUDA_VISIBLE_DEVICES"


def folders_of(pack: Pack, surroundings: Surroundings) -> dict[str, str]:
    """The folders of one benchmark, by the names that suites use."""
    return {
        "base": surroundings.base,
        "venv": f"{surroundings.venv}/{pack.install_group}",
        "data": surroundings.data,
        "runs": surroundings.runs,
        "extra": f"{surroundings.extra}/{pack.group}",
        "cache": surroundings.cache,
        "code": pack.definition,
    }


def made_folders(pack: Pack, surroundings: Surroundings) -> tuple[str, ...]:
    """Those that a script may write to without making them first."""
    folders = folders_of(pack, surroundings)
    return folders["data"], folders["extra"], folders["cache"]


def folder_variables(pack: Pack, surroundings: Surroundings) -> dict[str, str | None]:
    """Where a script finds its things: the same for every process of a benchmark, in every phase."""
    folders = folders_of(pack, surroundings)
    variables: dict[str, str | None] = {
        "BENCHWRIGHT_BASE": surroundings.base,
        "BENCHWRIGHT_DATA_DIR": surroundings.data,
        "MILABENCH_BASE": surroundings.base,
        "MILABENCH_DATA_DIR": surroundings.data,
        **{f"MILABENCH_DIR_{name.upper()}": folder for name, folder in folders.items()},
        "XDG_CACHE_HOME": surroundings.cache,
        "TORCH_HOME": f"{surroundings.cache}/torch",
        "HF_HOME": f"{surroundings.cache}/huggingface",
    }
    if surroundings.python_of(pack.install_group) == f"{folders['venv']}/bin/python":
        variables["VIRTUAL_ENV"] = folders["venv"]
    return variables


def program_folders(pack: Pack, surroundings: Surroundings) -> tuple[str, ...]:
    """What goes in front of $PATH: the programs beside the benchmark's interpreter."""
    folder, slash, _ = surroundings.python_of(pack.install_group).rpartition("/")
    return (folder,) if slash and folder else ()


class Configuration:
    """$MILABENCH_CONFIG: the resolved entry with what is known only of one process."""

    def __init__(self, benchmark: Benchmark, pack: Pack, surroundings: Surroundings) -> None:
        entry: dict[str, Any] = {"name": benchmark.name, **pack.config, "dirs": folders_of(pack, surroundings)}
        entry.setdefault("definition", pack.definition)
        if isinstance(entry.get("env"), dict):
            entry["env"] = redact(
                {str(k): str(v) for k, v in entry["env"].items()}
            )  # programs print it into their logs
        own = ("tag", "device", "devices", "job-number")
        self._name = benchmark.name
        self._common = msgspec.json.encode({k: v for k, v in entry.items() if k not in own}).decode()

    def of(self, seat: Seat, repeat: int | None = None) -> str:
        """As JSON."""
        tag = [self._name]
        if repeat is not None:
            tag.append(f"R{repeat}")
        own: dict[str, Any] = {"tag": tag, "devices": seat.devices}
        if seat.job is not None:
            tag.append(str(seat.job))
            own["job-number"] = seat.job
        elif seat.device is not None:
            tag.append(f"D{seat.device}")
            own["device"] = seat.device
        if seat.machines > 1:
            tag.append(seat.node)
        return self._common[:-1] + "," + msgspec.json.encode(own).decode()[1:]


def device_variables(seat: Seat, facts: MachineFacts) -> dict[str, str | None]:
    """Which devices a process sees, where that is not left to the agent, which knows CUDA's."""
    if not seat.devices:
        return {}
    variable = _SELECTION.get(facts.arch)
    if variable is not None:
        listed = ",".join(map(str, seat.devices))
        # HIP reads CUDA's variable too, and would count again among those that are left.
        return {variable: f"level_zero:{listed}" if facts.arch == "xpu" else listed, CUDA_SELECTION: None}
    if facts.emulated or facts.unseen:
        return {CUDA_SELECTION: ",".join(dict.fromkeys(_real(device, facts) for device in seat.devices))}
    return {}


def _real(device: int, facts: MachineFacts) -> str:
    """Emulated devices share those that are there."""
    return str(facts.real_devices[device % len(facts.real_devices)] if facts.real_devices else device)


def node_variables(seat: Seat, port: int) -> dict[str, str | None]:
    """For scripts that run on several machines without a launcher."""
    if seat.machines == 1:
        return {}
    return {
        "BENCHWRIGHT_NODE_RANK": str(seat.node_rank),
        "BENCHWRIGHT_NODE_COUNT": str(seat.machines),
        "BENCHWRIGHT_MAIN_ADDRESS": seat.address,
        "BENCHWRIGHT_MAIN_PORT": str(port),
    }
