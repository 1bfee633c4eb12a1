"""The processes of a benchmark whose benchfile.py builds its own run plan, and what they are started with."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchwright.compat.milabench import benchfile
from benchwright.compat.milabench.benchfile.child import VOIR_CONFIG, PlannedProcess, ask_benchfile
from benchwright.compat.milabench.configuration import described_system
from benchwright.compat.voir.company import STREAM, own_voirfile
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Reports
from benchwright.kinds.suite.dialect import DialectProcess, Fill, variables_of
from benchwright.kinds.suite.folder_facts import BENCHFILE
from benchwright.kinds.suite.plan.machine_facts import MachineFacts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.plan.process_slots import LOCALHOST, ProcessSlot

RUN_IN_ORDER = Path(benchfile.__file__).parent / "compat_modules" / "run_in_order.py"
_MODULES = {"voir": "voir", "benchrun": "benchmate.benchrun"}  # programs that are started as modules


class MilabenchPlan(msgspec.Struct, frozen=True):
    """Each process with its slot; of a server and its client, the client's. `steps`: of one that runs several in turn."""

    settings: str  # of voir, as JSON
    processes: dict[ProcessSlot, PlannedProcess]
    servers: dict[ProcessSlot, PlannedProcess]
    steps: dict[ProcessSlot, list[PlannedProcess]]

    @property
    def slots(self) -> list[ProcessSlot]:
        return list(self.processes)

    def tag(self, slot: ProcessSlot) -> tuple[str, ...]:
        return self.processes[slot].tag

    def process(self, slot: ProcessSlot, python: str, stem: str, fill: Fill, *, contained: bool) -> DialectProcess:
        config, process = f"{stem}.voir.json", self.processes[slot]
        in_order = os.path.join(os.path.dirname(stem), RUN_IN_ORDER.name)
        argv = self._words(slot, python, config, in_order, fill)
        env = dict(process.env)
        files = {config: self.settings} if config in argv else {}
        if in_order in argv:
            files[in_order] = RUN_IN_ORDER.read_text(encoding="utf-8")
        if process.use_stdout:
            env["MILABENCH_USE_STDOUT"] = "1"
        # Only voir itself, started by us, inherits descriptor 3: else, events are hidden in the output.
        inherits = argv[1:3] == ("-m", "voir") and not process.use_stdout and not contained
        runs_voir = any(os.path.basename(word) == "voir" for word in argv)
        if process.logs and (process.use_stdout or runs_voir):
            env["DATA_FD"] = "3" if inherits else "1"
        data_file = f"{stem}.voir" if inherits else None
        dialect = STREAM if inherits or "DATA_FD" in env else None
        together = slot.together > 1 and slot.reports == "always"
        if dialect is not None and (together if inherits else env["DATA_FD"] in ("1", "2")):
            more_env, more_files = own_voirfile(os.path.dirname(stem))
            env, files = more_env | env, files | more_files
        return DialectProcess(argv=argv, cwd=process.cwd, env=env, files=files, data_file=data_file, dialect=dialect)

    def _words(self, slot: ProcessSlot, python: str, config: str, in_order: str, fill: Fill) -> tuple[str, ...]:
        """The command of the process; a server is started around its client. `in_order`: the file that runs several steps."""
        if len(self.steps[slot]) > 1:
            commands = [(one.cwd, started_words(one.argv, python, fill, config)) for one in self.steps[slot]]
            return (python, in_order, *(word for cwd, argv in commands for word in (cwd, str(len(argv)), *argv)))
        client = started_words(self.processes[slot].argv, python, fill, config)
        server = self.servers.get(slot)
        if server is None:
            return client
        started = started_words(server.argv, python, fill, config)
        return (python, "-m", "benchprobe.served_client", "--server", str(len(started)), *started, "--", *client)


def own_plan(benchmark: Benchmark, place: BenchmarkPlace, facts: MachineFacts, fill: Fill) -> MilabenchPlan:
    """The plan of the folder's benchfile. `fill` fills the placeholders of a word. InvalidInput names the file and line of a
    plan that fails or that we cannot run."""
    folder = place.folder
    path = os.path.join(folder.path, BENCHFILE)
    request = request_of(benchmark, place, facts) | {"devices": facts.devices}
    processes = msgspec.convert(ask_benchfile(path, "run", request, fill=fill)["processes"], list[PlannedProcess])
    in_turn = _in_turn([process for process in processes if process.role != "server"])
    measured = [_together(steps, path) for steps in in_turn]
    if not measured:
        raise InvalidInput("its run plan starts nothing", where=path, remedy="return a command from build_run_plan")
    together: dict[str, int] = {}
    slots: dict[ProcessSlot, PlannedProcess] = {}
    machines = len({process.node_name for process in measured})
    steps: dict[ProcessSlot, list[PlannedProcess]] = {}
    beside = Counter(map(_seat, measured))
    named: Counter[tuple[str, ...]] = Counter()
    for process, own in zip(measured, in_turn, strict=True):
        node = process.node_name or (facts.nodes[0].name if facts.nodes else LOCALHOST)
        reports: Reports = "never" if not process.logs else "perhaps" if beside[_seat(process)] > 1 else "always"
        rank = together.get(node, 0)
        together[node] = rank + (reports == "always")
        process, named[process.tag] = _renamed(process, named[process.tag]), named[process.tag] + 1
        slot = _slot(process, node, rank, machines, facts, reports)
        slots[slot], steps[slot] = process, own
    final = {slot: msgspec.structs.replace(slot, together=together[slot.node]) for slot in slots}
    slots = {final[slot]: one for slot, one in slots.items()}
    settings = folder.runner.settings if folder.runner is not None else {}
    return MilabenchPlan(
        msgspec.json.encode(settings or folder.config.get("voir") or {}).decode(),
        slots,
        _servers(slots, processes),
        {final[slot]: own for slot, own in steps.items()},
    )


def _seat(process: PlannedProcess) -> tuple[object, ...]:
    """The same for processes that milabench lets write to one file: of those, at least one has to report."""
    return process.tag, process.node_name, process.device, process.job


def _renamed(process: PlannedProcess, before: int) -> PlannedProcess:
    """With a unique tag, where `before` others have the same one: each process writes separate files."""
    return msgspec.structs.replace(process, tag=(*process.tag, str(before))) if before else process


def _in_turn(processes: Iterable[PlannedProcess]) -> list[list[PlannedProcess]]:
    """Each process alone, and the steps of a sequence together."""
    found: list[list[PlannedProcess]] = []
    for process in processes:
        if process.sequence:
            found[-1].append(process)
        else:
            found.append([process])
    return found


def _together(steps: Sequence[PlannedProcess], path: str) -> PlannedProcess:
    """The one process that runs `steps`. InvalidInput where two of them want different values of a variable."""
    env: dict[str, str | None] = {}
    for step in steps:
        for name, value in step.env.items():
            if name != "MILABENCH_CONFIG" and env.setdefault(name, value) != value:
                raise InvalidInput(
                    f"the steps of its SequenceCommand want different values of {name}",
                    where=path,
                    remedy="set it in the scripts",
                )
    shown = [step for step in steps if step.logs] or list(steps)
    out = any(step.use_stdout for step in steps) or None
    return msgspec.structs.replace(shown[-1], env=env, use_stdout=out, cwd=steps[0].cwd)


def request_of(benchmark: Benchmark, place: BenchmarkPlace, facts: MachineFacts) -> dict[str, Any]:
    """The benchfile's configuration and environment."""
    placement, folder = benchmark.placement, place.folder
    plan = {"method": "per_gpu" if placement.per_device else "njobs", "n": placement.jobs}
    system = described_system(place, facts, "run")
    config = {"name": benchmark.name, **folder.config, "definition": folder.path, "dirs": place.folders}
    config.update(tag=[benchmark.name], plan=plan, num_machines=placement.machines, system=system, run_name="run")
    config.setdefault("group", folder.group)
    variables = {name: value for name, value in variables_of(place, facts).items() if value is not None}
    return {"config": config, "variables": variables}


def _slot(
    process: PlannedProcess, node: str, rank: int, machines: int, facts: MachineFacts, reports: Reports
) -> ProcessSlot:
    return ProcessSlot(
        devices=process.devices if facts.devices else (),
        device=process.device,
        job=process.job,
        node=node,
        rank=rank,
        node_rank=process.node_rank or 0,
        machines=machines,
        address=facts.nodes[0].ip if facts.nodes else ProcessSlot().address,
        tag=process.tag[1:],
        reports=reports,
    )


def _servers(
    slots: dict[ProcessSlot, PlannedProcess], processes: Iterable[PlannedProcess]
) -> dict[ProcessSlot, PlannedProcess]:
    """The server of each client: of the same job or device."""
    waiting = [process for process in processes if process.role == "server"]
    return {
        slot: server
        for slot, client in slots.items()
        for server in waiting
        if client.role == "client" and (server.job, server.device) == (client.job, client.device)
    }


def started_words(
    argv: Iterable[str], python: str, fill: Callable[[str], str], voir_config: str = ""
) -> tuple[str, ...]:
    """The words of a benchfile's command as they are started: scripts, voir and benchrun by the environment's Python, and the
    programs of its environment from where that Python is."""
    first, *rest = (voir_config if word == VOIR_CONFIG else fill(word) for word in argv)
    programs = os.path.dirname(python)
    rest = [os.path.join(programs, "voir") if word.endswith("/bin/voir") else word for word in rest]
    module = _MODULES.get(os.path.basename(first))
    if module is not None:
        return (python, "-m", module, *rest)
    if first == "python" or first.endswith("/bin/python"):
        return (python, *rest)
    return (python, first, *rest) if first == "-m" or first.endswith(".py") else (first, *rest)
