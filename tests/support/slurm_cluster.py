"""A real Slurm cluster for tests: a controller and two nodes on this machine, in a folder of their own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from processes import kill

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel")
NODES = ("n1", "n2")
_CONFIG = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={ports[0]}
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/run/spool-%n
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=15
InactiveLimit=0
MinJobAge=300
KillWait=2
OverTimeLimit=0
MessageTimeout=20
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=1000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=1000
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=1
PartitionName=short Nodes=n1,n2 MaxTime=1 State=UP OverSubscribe=NO PriorityTier=1
PartitionName=urgent Nodes=n1,n2 MaxTime=10 State=UP OverSubscribe=NO PriorityTier=9
"""


class SlurmCluster:
    """`environment`: the variables with which Slurm's programs find it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        self._path = os.environ["PATH"]  # tests put programs before Slurm's own
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        for name in ("run", "state"):
            (self.folder / name).mkdir()
        (self.folder / "run").chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        ports = _free_ports(3)
        text = _CONFIG.format(folder=self.folder, host=socket.gethostname(), ports=ports)
        (self.folder / "slurm.conf").write_text(text)
        run = self.folder / "run"
        self._spawn(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={run}/munge.socket",
            f"--pid-file={run}/munged.pid", f"--log-file={self.folder}/munged.log", f"--seed-file={run}/munged.seed",
        )  # fmt: skip
        wait_until((run / "munge.socket").exists, "munged listens")
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        self.wait_until_idle()

    def start_controller(self) -> None:
        self._spawn("slurmctld", "-D")

    def start_node(self, node: str) -> None:
        self._spawn("slurmd", "-D", "-N", node, key=node)

    def kill(self, what: str) -> None:
        """`slurmctld` or the name of a node: with SIGKILL."""
        process = self._processes.pop(what)
        process.kill()
        process.wait()

    def wait_until_idle(self) -> None:
        states = ["sinfo", "--noheader", "--Node", "--partition=main", "--format=%T"]
        wait_until(lambda: self.call(*states).split() == ["idle"] * len(NODES), "the nodes are idle")

    def call(self, *words: str) -> str:
        environment = {**os.environ, **self.environment, "PATH": self._path}
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False).stdout

    def jobs(self) -> list[str]:
        """Numbers of those that wait or run."""
        return self.call("squeue", "--noheader", "--format=%i").split()

    def stop(self) -> None:
        if "slurmctld" in self._processes:
            self.call("scancel", "--user=root")
        for node in NODES:
            self._end(node, signal.SIGTERM)
        self._end("slurmctld", signal.SIGTERM)
        self._end("munged", signal.SIGTERM)
        self._end_what_a_lost_node_ran()

    def _end_what_a_lost_node_ran(self) -> None:
        """A job whose slurmd was killed runs on, since nobody is left to end it."""
        for process in psutil.process_iter(["cmdline"]):
            if any(str(self.folder) in word and "slurm_script" in word for word in process.info["cmdline"] or ()):
                with suppress(psutil.NoSuchProcess):  # it may end by itself
                    keeper = process.parent()  # slurmstepd
                    kill(*process.children(recursive=True), process, *([keeper] if keeper is not None else []))

    def _end(self, what: str, number: int) -> None:
        process = self._processes.pop(what, None)
        if process is not None:
            process.send_signal(number)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _spawn(self, *words: str, key: str | None = None) -> None:
        path = f"{os.environ['PATH']}:/usr/sbin"
        self._processes[key or words[0]] = subprocess.Popen(
            [shutil.which(words[0], path=path) or words[0], *words[1:]],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def wait_until(condition: object, what: str, seconds: float = 300.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < limit, f"not in time: {what}"
        time.sleep(0.1)


def start_slurm_cluster(folder: Path) -> SlurmCluster:
    """Skips the test where there is no Slurm to be had."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    if os.getuid() != 0 or any(shutil.which(name, path=path) is None for name in PROGRAMS):
        pytest.skip("there is no Slurm on this machine (Debian: apt install slurm-wlm munge), or we are not root")
    cluster = SlurmCluster(folder)
    try:
        cluster.start()
    except BaseException:
        cluster.stop()
        raise
    return cluster


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
