"""milabench's `meta` event: the machine, and the versions of what measured."""

from __future__ import annotations

from benchwright.core.events.voir import is_number
from benchwright.core.machine import UNKNOWN, Accelerator, Machine
from benchwright.exchange.imported_run import as_count, make_machine


def machine_of(meta: dict[str, object]) -> Machine:
    """What is not told is unknown."""
    system, cpu = _dict(meta.get("os")), _dict(meta.get("cpu"))
    accelerators = _dict(meta.get("accelerators"))
    gpus = _dict(accelerators.get("gpus")) or _dict(meta.get("gpus"))
    driver = _dict(accelerators.get("system")).get("DRIVER_VERSION")
    found = []
    for index, gpu in enumerate(_dict(about) for about in gpus.values()):
        memory = _dict(gpu.get("memory")).get("total")
        found.append(
            Accelerator(
                index=index,
                name=str(gpu.get("product", UNKNOWN)),
                memory_bytes=as_count(memory * 2**20) or None if is_number(memory) else None,
                driver=str(driver) if driver else None,
            )
        )
    count = cpu.get("count")
    cores = as_count(count) if is_number(count) else 0
    words = {"hostname": "nodename", "system": "sysname", "kernel": "release", "architecture": "machine"}
    return make_machine(
        **{ours: _text(system.get(theirs)) for ours, theirs in words.items()},
        cpu=_text(cpu.get("brand")),
        cores=cores,
        cores_total=cores,
        python=_text(_dict(meta.get("python")).get("version")),
        accelerators=tuple(found),
    )


def labels_of(meta: dict[str, object], config: dict[str, object]) -> dict[str, str]:
    """Of the run: which milabench made it, and what it called it."""
    about = _dict(meta.get("milabench"))
    known = {
        "revision": about.get("commit"),
        "milabench": about.get("tag"),
        "run_name": config.get("run_name"),
        "arch": config.get("arch") or _dict(meta.get("accelerators")).get("arch"),
        "torch": _dict(meta.get("pytorch")).get("torch"),
    }
    return {key: value for key, value in known.items() if isinstance(value, str) and value}


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
