"""A node of a Slurm allocation: commands are steps of its job."""

from __future__ import annotations

import os
import re

from benchwright.core.system import Node
from benchwright.executors.connection import last_line
from benchwright.executors.via_connection import ViaConnection

# Those that a job sets for its steps: when benchwright itself runs in a job, they would speak about the wrong one.
_OF_JOBS = ("SLURM_", "SRUN_", "SLURMD_", "PMI")
_OPTIONS = ("--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mem=0", "--quiet")
# What srun and slurmd print → what it means and what to do.
_MEANINGS = (
    (r"DUE TO TIME LIMIT", "reached its time limit; ask for more with --slurm '--time=…' and go on with --resume"),
    (r"DUE TO PREEMPTION", "was preempted; go on with --resume"),
    (r"NODE FAILURE|[Nn]ode fail", "lost this node"),
    (r"CANCELLED AT|has expired|Invalid job id|already complet|job/step already completing", "has ended; somebody may "
        "have cancelled it; go on with --resume"),
    (r"task \d+: Terminated", "has ended, or somebody stopped its processes; go on with --resume"),  # srun may say no more
    (r"Unable to contact slurm controller|Connection refused|timed out", "cannot be reached, since the controller does "
        "not answer; try: sinfo"),
)  # fmt: skip


class SlurmConnection(ViaConnection):
    """`job`: the number of a job that has the node."""

    foreign_variables = (*_OF_JOBS, "OMP_")

    def __init__(self, name: str, job: str, python: str) -> None:
        ours = [name for name in os.environ if name.startswith(_OF_JOBS) and name != "SLURM_CONF"]
        clean = ["env", *(word for name in ours for word in ("-u", name))] if ours else []
        words = (*clean, "srun", f"--jobid={job}", f"--nodelist={name}", *_OPTIONS)
        super().__init__(Node(name=name, ip=name, via=words), python)
        self.program = "srun"
        self._job = job

    def __str__(self) -> str:
        return f"node '{self.node.name}' of allocation {self._job}"

    def explain_loss(self, printed: str) -> str:
        last = last_line(printed)
        for pattern, meaning in _MEANINGS:
            if re.search(pattern, printed):
                return f"the allocation {meaning} ({last})"
        return super().explain_loss(printed)
