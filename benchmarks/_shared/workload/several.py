"""Programs of several processes. Nothing of benchprobe is used here: the process that starts the others is not measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

import torch

from workload.devices import world_size


def torchrun(processes: int, program: Sequence[str]) -> list[str]:
    """The command that starts `program`, a script and its words, in so many processes on this machine."""
    start = ["-m", "torch.distributed.run", "--standalone", "--nnodes=1", f"--nproc-per-node={processes}"]
    return [sys.executable, *start, *program]


def become_several(processes: int) -> None:
    """This program again, in so many processes, in the place of this one; returns if it is one of several already."""
    if world_size() > 1 or processes == 1 or "TORCHELASTIC_RUN_ID" in os.environ:
        return
    sys.stdout.flush()
    command = torchrun(processes, sys.argv)
    os.execv(command[0], command)


def check_in_several(processes: int, device: torch.device) -> bool:
    """Whether this program, with `--check`, succeeds in so many processes; what they print is shown if they fail.

    With fewer devices than processes they use the CPU.
    """
    enough = device.type != "cuda" or torch.cuda.device_count() >= processes
    words = ["--device", device.type if enough else "cpu"]
    done = subprocess.run(torchrun(processes, [*sys.argv, *words]), capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
    return done.returncode == 0


def need_devices(device: torch.device, needed: int | None = None) -> None:
    """Processes that share a device measure neither it nor each other. Without `needed`: those that torchrun started here."""
    if device.type != "cuda":
        return
    there = torch.cuda.device_count()
    needed = needed or int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if needed > there:
        refuse(f"{needed} processes need as many devices, there {'is' if there == 1 else 'are'} {there}")


def refuse(why: str) -> NoReturn:
    """Ends the program: what was asked for cannot be measured here."""
    raise SystemExit(f"cannot be measured here: {why}")
