"""Programs that start one process for each device: their command lines."""

from __future__ import annotations

import msgspec

from benchwright.core.benchmark import Launcher
from benchwright.core.errors import InvalidInput, did_you_mean

DEFAULT_PORT = 29400
STATIC = "static"  # torchrun's plain rendezvous: every node gets its rank and the address of the first


class Gathering(msgspec.Struct, frozen=True):
    """Where the processes of one launch meet: `processes` on each of `machines`, of which this is number `rank`."""

    processes: int
    machines: int = 1
    rank: int = 0
    address: str = "127.0.0.1"  # of the main machine
    port: int = DEFAULT_PORT
    backend: str = STATIC
    name: str = "benchwright"
    deepspeed: bool = False
    cpu: bool = False  # no accelerator is to be used


def launched(launcher: Launcher, python: str, program: tuple[str, ...], gathering: Gathering) -> tuple[str, ...]:
    """The command that starts `program` (a script and its words, or `-m`, a module and its words) on this machine."""
    compose = _LAUNCHERS.get(launcher.name)
    if compose is None:
        raise InvalidInput(
            f"'{launcher.name}' is not a launcher",
            remedy=did_you_mean(launcher.name, _LAUNCHERS) or f"use {' or '.join(_LAUNCHERS)}",
        )
    return (python, *compose(gathering), *launcher.args, *program)


def _torchrun(gathering: Gathering) -> list[str]:
    words = ["-m", "torch.distributed.run"]
    if gathering.machines == 1:
        words += ["--standalone", "--nnodes=1"]
    elif gathering.backend == STATIC:
        words += [
            f"--nnodes={gathering.machines}",
            f"--node-rank={gathering.rank}",
            f"--master-addr={gathering.address}",
            f"--master-port={gathering.port}",
        ]
    else:
        words += [
            f"--nnodes={gathering.machines}",
            f"--rdzv-backend={gathering.backend}",
            f"--rdzv-endpoint={gathering.address}:{gathering.port}",
            f"--rdzv-id={gathering.name}",
            f"--rdzv-conf=is_host={int(gathering.rank == 0)}",
        ]
    return [*words, f"--nproc-per-node={gathering.processes}"]


def _accelerate(gathering: Gathering) -> list[str]:
    total = gathering.processes * gathering.machines
    words = ["-m", "accelerate.commands.launch", f"--num_processes={total}", f"--num_machines={gathering.machines}"]
    if gathering.machines > 1:
        words += [
            f"--machine_rank={gathering.rank}",
            f"--main_process_ip={gathering.address}",
            f"--main_process_port={gathering.port}",
        ]
    if gathering.deepspeed:
        return [*words, "--use_deepspeed", "--deepspeed_multinode_launcher=standard", "--zero_stage=2"]
    if gathering.cpu:
        return [*words, "--cpu"]
    return [*words, "--multi_gpu"] if total > 1 else words


_LAUNCHERS = {"torchrun": _torchrun, "accelerate": _accelerate}
