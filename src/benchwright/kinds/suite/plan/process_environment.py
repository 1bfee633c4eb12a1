"""The surroundings of a suite's script: interpreter, folders, configuration, devices."""

from __future__ import annotations

import os

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.system import SuitePaths
from benchwright.kinds.suite.plan.machine_facts import MachineFacts
from benchwright.plan.process_slots import ProcessSlot

_SELECTION = {"rocm": "ROCR_VISIBLE_DEVICES", "hpu": "HABANA_VISIBLE_MODULES", "xpu": "ONEAPI_DEVICE_SELECTOR"}
CUDA_SELECTION = "CUDA_VISIBLE_DEVICES"


class BenchmarkPlace:
    """Where one benchmark of a suite finds its interpreter and its folders."""

    def __init__(self, benchmark: Benchmark, paths: SuitePaths) -> None:
        if benchmark.folder is None or benchmark.environment is None:
            raise InvalidInput(f"{benchmark.name} does not belong to a suite", where=benchmark.source)
        self.folder = benchmark.folder
        self.environment = benchmark.environment
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

    def variables(self) -> dict[str, str | None]:
        """Environment variables that are the same for every process of the benchmark, whatever its dialect."""
        folders = self.folders
        variables: dict[str, str | None] = {
            "BENCHWRIGHT_BASE": folders["base"],
            "BENCHWRIGHT_DATA_DIR": folders["data"],
            "XDG_CACHE_HOME": folders["cache"],
        }
        if self.python == f"{folders['venv']}/bin/python":
            variables["VIRTUAL_ENV"] = folders["venv"]
        return variables

    @property
    def is_ours(self) -> bool:
        """Whether the environment is one that we made."""
        venv = self.folders["venv"]
        return self.python == f"{venv}/bin/python" and (os.path.islink(venv) or not os.path.lexists(venv))


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
