"""$MILABENCH_CONFIG: what milabench tells a process of its benchmark and its machine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.secrets import redact
from benchwright.kinds.suite.plan.machine_facts import MachineFacts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.plan.process_slots import ProcessSlot

_OF_SYSTEM = re.compile(r"\$\{system\.([\w.]+)\}")


class MilabenchConfig:
    """$MILABENCH_CONFIG: the resolved entry, with the values of each process of a benchmark."""

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
