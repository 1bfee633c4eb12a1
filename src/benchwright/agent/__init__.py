"""The part of benchwright that runs on the node, beside the measured program.

`node` serves one main process: it forks a supervisor (`supervise/`) for each job. A supervisor starts the program, keeps
track of all it starts (`processes/`), reads its output (`output/`, `extractors/`), samples it (`samplers/`), and writes all
of that into the job's stream (`stream`). `machine/` describes the node. `node_probe` answers without an agent.

A first job must cost little, so nothing imported at start needs msgspec, psutil, typing or dataclasses.
"""
