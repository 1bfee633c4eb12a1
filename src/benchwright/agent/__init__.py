"""What runs on the node beside the measured program: starts it, supervises it, samples it, reads its log.

One node agent (`node.py`) serves a run. It forks one supervisor (`supervise.py`) for each job, which starts the
program. A first job must cost little, so nothing imported at start needs msgspec, psutil, typing or dataclasses.
"""
