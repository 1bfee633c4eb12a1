"""A main process that may be killed: runs one long job that leaves a daemon, and says when it runs.

python run_jobs.py FOLDER COMMAND...
"""

import sys

from benchwright.core.job import Job
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor


class Announce(Listener):
    def on_started(self, job_id: str, pid: int) -> None:
        print("started", pid, flush=True)


folder, *argv = sys.argv[1:]
job = Job(
    id="job",
    benchmark="job",
    argv=tuple(argv),
    cwd=folder,
    stream=f"{folder}/job.data",
    log=f"{folder}/job.log",
    grace_s=0.5,
    echo=True,
)
with LocalExecutor() as executor:
    executor.run([job], Announce())
