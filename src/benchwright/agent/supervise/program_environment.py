"""Environment, folders and files of a measured program at its start."""

from __future__ import annotations

import json
import os

from benchwright.agent.processes.process_tree import MARKER
from benchwright.core.secrets import redact_text, redact_words
from benchwright.core.whole_file import write_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchwright.core.job import Job

IN_LOG = ("1", "2")  # values of $DATA_FD for which lines come hidden in the output


def build_environment(job: Job, inherited: Mapping[str, str], marker: str) -> dict[str, str]:
    """The caller's environment with the job's changes, benchprobe's configuration and the job's devices."""
    environment = dict(inherited)
    for name, value in job.env.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    if job.path:
        environment["PATH"] = os.pathsep.join([*job.path, environment.get("PATH", os.defpath)])
    environment["BENCHPROBE_CONFIG"] = json.dumps(probe_configuration(job))
    environment[MARKER] = marker
    if job.probe_path is not None:
        environment["PYTHONPATH"] = python_path(job.probe_path, environment)
    if job.data_file is not None and "DATA_FD" not in job.env:
        environment["DATA_FD"] = "3"
    if environment.get("DATA_FD") in IN_LOG and "DATA_FD" in job.env:
        # A hidden line must be a single write: buffered lines of several processes would get mixed.
        environment.setdefault("PYTHONUNBUFFERED", "1")
    if job.devices and "CUDA_VISIBLE_DEVICES" not in job.env:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(device_tokens(job.devices, inherited))
        if "CUDA_VISIBLE_DEVICES" not in inherited:
            # Then indices mean the same to CUDA and to NVML, whose order the fingerprint shows.
            environment.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    return environment


def python_path(probe_path: str, environment: Mapping[str, str]) -> str:
    """$PYTHONPATH with our packages before the user's own."""
    return os.pathsep.join(filter(None, (probe_path, environment.get("PYTHONPATH"))))


def probe_configuration(job: Job) -> dict[str, object]:
    """The configuration that benchprobe reads inside the program."""
    configuration: dict[str, object] = {**job.probe, "stream": job.stream}
    if job.built is not None:
        configuration["built"] = {"since": job.built.since, "beside": job.built.beside}
    if job.turn is not None:
        configuration["turn"] = {
            "folder": job.turn.folder,
            "place": job.turn.place,
            "cores": job.turn.cores,
            "aside": job.cores,
        }
    if job.barrier is not None:
        configuration["barrier"] = {
            "folder": job.barrier.folder,
            "size": job.barrier.size,
            "rank": job.barrier.rank,
            "turn_s": job.barrier.turn_s,
        }
    return configuration


def start_facts(job: Job, shown: Mapping[str, str], *, is_warm: bool) -> dict[str, object]:
    """The `start` event's details. `shown`: the environment, as far as it is kept."""
    flags = {"warm": is_warm, "ahead": job.turn is not None}
    return {
        "argv": (redact_text(job.argv[0]),) if job.shell else redact_words(job.argv),
        "cwd": job.cwd,
        "env": shown,
        "devices": job.devices,
        "cores": job.cores if job.turn is None else job.turn.cores or job.cores,
        **{name: True for name, holds in flags.items() if holds},
        **(_narrowed() if job.cores is None else {}),
    }


def _narrowed() -> dict[str, object]:
    """How many cores programs that are started here may use, if the scheduler or a control group withholds some."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {} if allowed == os.cpu_count() else {"allowed_cores": allowed, "all_cores": os.cpu_count()}


def visible_devices(environment: Mapping[str, str]) -> list[str] | None:
    """The accelerators CUDA_VISIBLE_DEVICES allows, as written there; None if it restricts nothing."""
    text = environment.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return None
    tokens = []
    for token in (part.strip() for part in text.split(",")):
        if token == "-1" or not token:
            break  # CUDA ignores what follows the first invalid one
        tokens.append(token)
    return tokens


def device_tokens(devices: tuple[int, ...], environment: Mapping[str, str]) -> list[str]:
    """CUDA's names for the job's devices, which are indices into those visible to the caller.

    Raises LookupError if there are not that many.
    """
    visible = visible_devices(environment)
    if visible is None:
        return [str(device) for device in devices]
    for device in devices:
        if device >= len(visible):
            raise LookupError(
                f"device {device} was requested, but CUDA_VISIBLE_DEVICES={environment['CUDA_VISIBLE_DEVICES']} "
                f"allows {len(visible)}; unset it or request fewer"
            )
    return [visible[device] for device in devices]


def visible_to(job: Job, environment: Mapping[str, str]) -> list[str] | None:
    """The accelerators that the job's program sees, as CUDA names them; None: all."""
    if job.devices and "CUDA_VISIBLE_DEVICES" not in job.env:
        return device_tokens(job.devices, os.environ)
    tokens = visible_devices(environment)
    return tokens if tokens is not None else _visible_elsewhere(environment)


def _visible_elsewhere(environment: Mapping[str, str]) -> list[str] | None:
    """Devices allowed by the variables of AMD and Intel: HIP's narrows down ROCr's; a part of a device counts as the device."""
    rocr, hip = (_words_of(environment.get(f"{name}_VISIBLE_DEVICES")) for name in ("ROCR", "HIP"))
    if rocr is not None and hip is not None:
        return [rocr[int(token)] for token in hip if token.isdigit() and int(token) < len(rocr)]
    if rocr is not None or hip is not None:
        return rocr if rocr is not None else hip
    mask = environment.get("ZE_AFFINITY_MASK")
    if mask is None:
        backend, colon, mask = environment.get("ONEAPI_DEVICE_SELECTOR", "").partition(":")
        if not colon or backend not in ("level_zero", "*") or not mask[:1].isdigit():
            return None
    return list(dict.fromkeys(token.partition(".")[0] for token in _words_of(mask) or ()))


def _words_of(text: str | None) -> list[str] | None:
    return None if text is None else [word for part in text.split(",") if (word := part.strip()) and word != "-1"]


def prepare_files(job: Job) -> None:
    """Makes its folders and writes its files, each whole or not at all. Data folders may be read-only; a program that needs
    one will say so."""
    for folder in job.folders:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            pass
    for path, text in job.files.items():
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        write_whole(path, text.encode(), sync=False)
