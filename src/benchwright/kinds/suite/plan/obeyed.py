"""The processes of a benchmark whose benchfile.py builds its own run plan, and what they are started with."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Reports
from benchwright.core.node.system import SuitePaths
from benchwright.kinds.suite import benchfile
from benchwright.kinds.suite.benchfile.benchfile import BENCHFILE, RUN_METHODS, read_benchfile
from benchwright.kinds.suite.benchfile.child import VOIR_CONFIG, PlannedProcess, ask_benchfile
from benchwright.kinds.suite.plan.filled_words import filled_words
from benchwright.kinds.suite.plan.machine_facts import MachineFacts, machine_facts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace, described_system
from benchwright.plan.process_slots import LOCALHOST, ProcessSlot

RUN_IN_ORDER = Path(benchfile.__file__).parent / "compat_modules" / "run_in_order.py"
_MODULES = {"voir": "voir", "benchrun": "benchmate.benchrun"}  # programs that are started as modules


class ObeyedPlan(msgspec.Struct, frozen=True):
    """Each process with its slot; of a server and its client, the client's. `steps`: of one that runs several in turn."""

    processes: dict[ProcessSlot, PlannedProcess]
    servers: dict[ProcessSlot, PlannedProcess]
    steps: dict[ProcessSlot, list[PlannedProcess]]

    @property
    def slots(self) -> list[ProcessSlot]:
        return list(self.processes)

    def words(
        self, slot: ProcessSlot, python: str, voir_config: str, in_order: str, fill: Callable[[str], str]
    ) -> tuple[str, ...]:
        """The command of the process; a server is started around its client. `in_order`: the file that runs several steps."""
        if len(self.steps[slot]) > 1:
            commands = [(one.cwd, started_words(one.argv, python, fill, voir_config)) for one in self.steps[slot]]
            return (python, in_order, *(word for cwd, argv in commands for word in (cwd, str(len(argv)), *argv)))
        client = started_words(self.processes[slot].argv, python, fill, voir_config)
        server = self.servers.get(slot)
        if server is None:
            return client
        started = started_words(server.argv, python, fill, voir_config)
        return (python, "-m", "benchprobe.serving", "--server", str(len(started)), *started, "--", *client)


def obeyed_plan(
    benchmark: Benchmark, place: BenchmarkPlace, facts: MachineFacts, fill: Callable[[str], str]
) -> ObeyedPlan | None:
    """None if the folder's benchfile does nothing of its own about running, or the entry says what to do instead.
    `fill` fills the placeholders of a word. InvalidInput names the file and line of a plan that fails or that we cannot run."""
    folder = place.folder
    if not read_benchfile(folder.path).obeyed(RUN_METHODS, folder.config):
        return None
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
    return ObeyedPlan(slots, _servers(slots, processes), {final[slot]: own for slot, own in steps.items()})


def _seat(process: PlannedProcess) -> tuple[object, ...]:
    """The same for processes that milabench lets write to one file: of those, at least one has to report."""
    return process.tag, process.node_name, process.device, process.job


def _renamed(process: PlannedProcess, before: int) -> PlannedProcess:
    """With a tag of its own, where `before` others have the same one: each process has files of its own here."""
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
    """What the benchfile finds as its configuration and around it."""
    placement, folder = benchmark.placement, place.folder
    plan = {"method": "per_gpu" if placement.per_device else "njobs", "n": placement.jobs}
    system = described_system(place, facts, "run")
    config = {"name": benchmark.name, **folder.config, "definition": folder.path, "dirs": place.folders}
    config.update(tag=[benchmark.name], plan=plan, num_machines=placement.machines, system=system, run_name="run")
    config.setdefault("group", folder.group)
    variables = {name: value for name, value in place.variables(facts).items() if value is not None}
    return {"config": config, "variables": variables}


def unrunnable(benchmarks: Iterable[Benchmark]) -> Iterator[str]:
    """A sentence for each whose folder, script or benchfile cannot be used. A folder out of git may be cloned later."""
    from benchwright.agent.machine.fingerprint import read_machine
    from benchwright.kinds.suite.read.suite import refuse_unrunnable

    base = tempfile.gettempdir()  # nothing is written there
    paths = SuitePaths(base=base, data=base, extra=base, cache=base, venv=base, runs=base)
    facts = machine_facts(read_machine(), paths.system)
    for benchmark in benchmarks:
        try:
            if benchmark.folder is not None and (not benchmark.folder.git or os.path.isdir(benchmark.folder.path)):
                refuse_unrunnable([benchmark], before_install=True)
                place = BenchmarkPlace(benchmark, paths)
                obeyed_plan(benchmark, place, facts, filled_words(benchmark, place, paths, facts).fill)
        except InvalidInput as error:
            yield f"{benchmark.name} cannot run: {error.on_one_line}"


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
