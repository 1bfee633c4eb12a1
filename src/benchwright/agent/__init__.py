"""What runs on the node beside the measured program.

`node` serves one main process: it forks a supervisor (`supervise/`) for each job. A supervisor starts the program, keeps
track of all it starts (`processes/`), reads what it prints (`output/`, `extractors/`) and how it does (`samplers/`), and
writes that into the job's stream (`stream`). `machine/` says what the node is. `node_probe` answers without an agent.

A first job must cost little, so nothing imported at start needs msgspec, psutil, typing or dataclasses.
"""
