"""The commands of a suite's benchmarks: interpreter, launcher, voir, server and container put together."""

from __future__ import annotations

import os.path

import msgspec

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Command, Script
from benchwright.core.errors import InvalidInput, UnfilledWord
from benchwright.core.node.system import SuitePaths
from benchwright.core.status import Reason
from benchwright.kinds.suite.benchfile.benchfile import read_benchfile
from benchwright.kinds.suite.error_locations import words_placed
from benchwright.kinds.suite.plan.containers import contained
from benchwright.kinds.suite.plan.filled_words import FilledWords, filled_words
from benchwright.kinds.suite.plan.launchers import DEFAULT_PORT, STATIC, Gathering, launched
from benchwright.kinds.suite.plan.machine_facts import MachineFacts, machine_facts
from benchwright.kinds.suite.plan.obeyed import RUN_IN_ORDER, ObeyedPlan, obeyed_plan
from benchwright.kinds.suite.plan.process_environment import (
    BenchmarkPlace,
    MilabenchConfig,
    device_variables,
    node_variables,
)
from benchwright.kinds.suite.plan.system_options import text, whole_number
from benchwright.kinds.suite.words.expressions import ExpressionError, evaluate
from benchwright.kinds.suite.words.placeholders import Context, PlaceholderError, fill
from benchwright.plan.base import JobCommand, PlanContext, Planner
from benchwright.plan.process_slots import LOCALHOST, ProcessSlot

BATCH_SIZE = "BENCHWRIGHT_BATCH_SIZE"
_IMAGES_PYTHON = "python"


def lacks_capability(benchmark: Benchmark, facts: MachineFacts) -> tuple[Reason, str] | None:
    """Why this system cannot run it, whatever is installed."""
    with words_placed([benchmark]):
        if (missing := unmet_condition(benchmark, facts)) is not None:
            return Reason.LACKS_CAPABILITY, missing
    needed, present = benchmark.placement.needs_devices, len(facts.devices)
    if needed > present:
        what = f"needs {needed} devices, the system has {present or 'none'}; override its plan"
        return Reason.LACKS_DEVICES, what
    return None


class SuitePlanner(Planner):
    """Plans a suite's benchmarks. A word that cannot be filled is reported where the suite says it."""

    def __init__(self, context: PlanContext, paths: SuitePaths) -> None:
        self.context = context
        self._paths = paths
        self._facts = machine_facts(context.machine, paths.system)
        self._port = whole_number(paths.system, "torchrun", "port") or DEFAULT_PORT
        self._backend = text(paths.system, "torchrun", "backend") or STATIC
        self._parts: dict[str, _Parts] = {}
        self._obeyed: dict[str, ObeyedPlan | None] = {}
        self._has_methods: dict[str, bool] = {}  # folder → whether its benchfile overrides any

    def why_skipped(self, benchmark: Benchmark) -> tuple[Reason, str] | None:
        if (missing := lacks_capability(benchmark, self._facts)) is not None:
            return missing
        try:
            self._obeyed_plan(benchmark)
        except InvalidInput as error:
            return Reason.MISCONFIGURED, error.on_one_line
        return None

    def why_no_turns(self, benchmark: Benchmark) -> str | None:
        """Only one process that is started directly can take turns."""
        folder = benchmark.folder
        if folder is not None and folder.launcher is not None:
            return f"{benchmark.name} is started by {folder.launcher.name}, whose processes cannot take turns"
        if folder is not None and (folder.voir is not None or folder.serving is not None):
            runner = "voir" if folder.voir is not None else "a server"
            return f"{benchmark.name} is run by {runner}, which cannot take turns"
        return None

    def slots(self, benchmark: Benchmark) -> list[ProcessSlot]:
        obeyed = self._obeyed_plan(benchmark)
        return obeyed.slots if obeyed is not None else suite_slots(benchmark, self._facts)

    def command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, repeat: int | None) -> JobCommand:
        with words_placed([benchmark]):
            return self._command(benchmark, slot, job, repeat)

    def _command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, repeat: int | None) -> JobCommand:
        parts = self._parts_of(benchmark)
        obeyed, cwd = self._obeyed_plan(benchmark), parts.cwd
        tag = obeyed.processes[slot].tag if obeyed is not None else None
        env = {**parts.env, "MILABENCH_CONFIG": parts.configuration.of(slot, repeat, tag)}
        env |= device_variables(slot, self._facts)
        env |= node_variables(slot, self._port)
        if obeyed is not None:
            argv, files, data_file = self._obeyed_argv(obeyed, parts, slot, job, env)
            cwd = obeyed.processes[slot].cwd
        else:
            argv, files, data_file = self._argv(parts, slot, job, env)
        env |= parts.words.env
        if self._paths.system.container is not None:
            argv = self._in_container(parts, argv, env)
        place = parts.place
        return JobCommand(argv, cwd, env, place.program_folders, files, data_file, folders=place.made_folders)

    def notes(self, benchmark: Benchmark) -> tuple[str, ...]:
        parts = self._parts_of(benchmark)
        chosen = parts.words.batch_size
        notes = [chosen.note] if chosen is not None and chosen.note is not None else []
        if self._facts.emulated:
            real = len(self._facts.real_devices)
            notes.append(f"{len(self._facts.devices)} devices are emulated; the machine has {real}")
        if self._facts.unseen:
            count, arch = len(self._facts.devices), self._facts.arch
            devices = f"{count} {arch} device{'' if count == 1 else 's'}"
            notes.append(f"{devices} according to the system file; {arch} devices are not detected")
        return tuple(notes)

    def _parts_of(self, benchmark: Benchmark) -> _Parts:
        made = self._parts.get(benchmark.name)
        if made is None:
            made = self._parts[benchmark.name] = _Parts.of(
                benchmark, self._paths, self._facts, os.path.basename(self.context.folder)
            )
        return made

    def _argv(
        self, parts: _Parts, slot: ProcessSlot, job: str, env: dict[str, str | None]
    ) -> tuple[tuple[str, ...], dict[str, str], str | None]:
        """The words, the files they name, and the file for voir's events, whose descriptor is set in `env`."""
        folder, python = parts.place.folder, self._python(parts.place.python)
        if parts.script is None:
            words = ("/bin/sh", "-c", *parts.words.args) if parts.shell else parts.words.args
            return self._served(parts, python, words), {}, None
        program: tuple[str, ...] = (*_started(parts.script, parts.cwd), *parts.words.args)
        files: dict[str, str] = {}
        data_file = None
        if folder.voir is not None:
            config = os.path.join(self.context.folder, f"{job}.voir.json")
            files = {config: parts.voir_config} if folder.voir else {}
            program = ("-m", "voir", *(("--config", config) if folder.voir else ()), *program)
            # Neither a launcher's children nor a container inherit descriptor 3: there, events are hidden in the output.
            inherits = folder.launcher is None and self._paths.system.container is None
            env["DATA_FD"] = "3" if inherits else "1"
            data_file = os.path.join(self.context.folder, f"{job}.voir") if inherits else None
        if folder.launcher is not None:
            launcher = msgspec.structs.replace(folder.launcher, args=parts.words.launcher_args)
            argv = launched(launcher, python, program, self._gathering(folder, slot, job))
        else:
            argv = (python, *program)
        return self._served(parts, python, argv), files, data_file

    def _obeyed_plan(self, benchmark: Benchmark) -> ObeyedPlan | None:
        path = benchmark.folder.path if benchmark.folder is not None else ""
        if path not in self._has_methods:
            self._has_methods[path] = bool(read_benchfile(path).overridden)
        if not self._has_methods[path]:
            return None
        if benchmark.name not in self._obeyed:
            place = BenchmarkPlace(benchmark, self._paths)
            fill = lambda word: self._parts_of(benchmark).words.fill(word)  # noqa: E731
            self._obeyed[benchmark.name] = obeyed_plan(benchmark, place, self._facts, fill)
        return self._obeyed[benchmark.name]

    def _obeyed_argv(
        self, obeyed: ObeyedPlan, parts: _Parts, slot: ProcessSlot, job: str, env: dict[str, str | None]
    ) -> tuple[tuple[str, ...], dict[str, str], str | None]:
        """As `_argv`, of a process that the benchfile planned."""
        config, process = os.path.join(self.context.folder, f"{job}.voir.json"), obeyed.processes[slot]
        in_order = os.path.join(self.context.folder, RUN_IN_ORDER.name)
        argv = obeyed.words(slot, self._python(parts.place.python), config, in_order, parts.words.fill)
        env |= process.env  # as it is: what the entry says, with its placeholders filled, comes after it
        files = {config: parts.voir_config} if config in argv else {}
        if in_order in argv:
            files[in_order] = RUN_IN_ORDER.read_text(encoding="utf-8")
        if process.use_stdout:
            env |= {"MILABENCH_USE_STDOUT": "1"}
        # Only voir itself, started by us, inherits descriptor 3: else, events are hidden in the output.
        inherits = argv[1:3] == ("-m", "voir") and not process.use_stdout and self._paths.system.container is None
        runs_voir = any(os.path.basename(word) == "voir" for word in argv)
        if process.logs and (process.use_stdout or runs_voir):
            env["DATA_FD"] = "3" if inherits else "1"
        return argv, files, os.path.join(self.context.folder, f"{job}.voir") if inherits else None

    def _python(self, python: str) -> str:
        """In a container: an environment of ours, which is mounted under its own path, or else the image's own."""
        ours = python.startswith(f"{self._paths.venv}/")
        return python if ours or self._paths.system.container is None else _IMAGES_PYTHON

    def _gathering(self, folder: BenchmarkFolder, slot: ProcessSlot, job: str) -> Gathering:
        asked = folder.launcher.processes if folder.launcher is not None else None
        return Gathering(
            processes=asked or max(1, len(slot.devices)),
            machines=slot.machines,
            rank=slot.node_rank,
            address=slot.address,
            port=self._port + slot.rank,
            backend=self._backend,
            name=f"benchwright-{slot.rank}",
            deepspeed=bool(folder.config.get("use_deepspeed")),
            cpu=self._facts.arch == "cpu",
        )

    def _served(self, parts: _Parts, python: str, client: tuple[str, ...]) -> tuple[str, ...]:
        """With the server, if there is one: a file of the folder, or else a program of the environment."""
        folder = parts.place.folder
        serving = folder.serving
        if serving is None:
            return client
        script, *args = parts.words.server
        if script.endswith(".py"):
            server = [python, os.path.join(folder.path, script), *args]
        elif "/" in script:
            server = [os.path.join(folder.path, script), *args]
        else:
            server = [os.path.join(os.path.dirname(python), script), *args]
        ready = ("--ready", parts.words.ready) if parts.words.ready is not None else ()
        timeout = ("--timeout", f"{serving.ready_timeout_s:g}")
        words = (*ready, *timeout, "--server", str(len(server)), *server, "--", *client)
        return (python, "-m", "benchprobe.serving", *words)

    def _in_container(self, parts: _Parts, argv: tuple[str, ...], env: dict[str, str | None]) -> tuple[str, ...]:
        container = self._paths.system.container
        assert container is not None
        where = self._paths
        folders = [
            where.base,
            where.data,
            where.extra,
            where.cache,
            where.venv,
            self.context.folder,
            parts.place.folder.path,
        ]
        if self.context.probe_path is not None:
            folders.append(self.context.probe_path)
        return contained(
            container,
            argv,
            cwd=parts.place.folder.path,
            folders=folders,
            variables=[name for name, value in env.items() if value is not None],
            context=Context(self._facts.names),
            image=parts.words.image,
        )


def _started(script: str, cwd: str) -> tuple[str, ...]:
    """A main script that is a folder is run as the module it is in `cwd`."""
    return ("-m", os.path.relpath(script, cwd).replace(os.sep, ".")) if os.path.isdir(script) else (script,)


class _Parts(msgspec.Struct, frozen=True):
    """What the processes of one benchmark share."""

    place: BenchmarkPlace
    script: str | None  # None: a command
    cwd: str
    shell: bool
    words: FilledWords
    env: dict[str, str | None]
    configuration: MilabenchConfig
    voir_config: str

    @classmethod
    def of(cls, benchmark: Benchmark, paths: SuitePaths, facts: MachineFacts, run_name: str) -> _Parts:
        workload, place = benchmark.workload, BenchmarkPlace(benchmark, paths)
        if not isinstance(workload, Script | Command):
            raise InvalidInput(f"{benchmark.name} is neither a script nor a command", where=benchmark.source)
        words = filled_words(benchmark, place, paths, facts)
        env = place.variables(facts)
        if words.batch_size is not None:
            env[BATCH_SIZE] = str(words.batch_size.size)
        return cls(
            place=place,
            script=workload.path if isinstance(workload, Script) else None,
            cwd=workload.cwd,
            shell=isinstance(workload, Command) and workload.shell,
            words=words,
            env=env,
            configuration=MilabenchConfig(benchmark, place, facts, run_name),
            voir_config=msgspec.json.encode(place.folder.voir or place.folder.config.get("voir") or {}).decode(),
        )


def suite_slots(benchmark: Benchmark, facts: MachineFacts) -> list[ProcessSlot]:
    """The processes of one launch: the same on each machine, the main one first. Every one of several jobs sees all devices."""
    placement = benchmark.placement
    if placement.per_device:
        slots = [ProcessSlot(devices=(device,), device=device) for device in facts.devices] or [ProcessSlot(device=0)]
    elif placement.jobs > 1 or placement.numbered:
        slots = [ProcessSlot(devices=facts.devices, job=n) for n in range(placement.jobs)]
    else:
        devices = facts.devices[: placement.needs_devices or None]
        slots = [ProcessSlot(devices=devices, device=devices[0] if devices else 0)]
    nodes = facts.nodes[: placement.machines]
    address = nodes[0].ip if nodes else ProcessSlot().address
    return [
        ProcessSlot(
            devices=slot.devices,
            device=slot.device,
            job=slot.job,
            node=name,
            rank=rank,
            together=len(slots),
            node_rank=node_rank,
            machines=placement.machines,
            address=address,
        )
        for node_rank, name in enumerate([node.name for node in nodes] or [LOCALHOST])
        for rank, slot in enumerate(slots)
    ]


def unmet_condition(benchmark: Benchmark, facts: MachineFacts) -> str | None:
    """The first condition that does not hold on this system, as a sentence; UnfilledWord for one that cannot be judged."""
    machines = benchmark.placement.machines
    if machines > facts.machine_count:
        has = "1 machine" if facts.machine_count == 1 else f"{facts.machine_count} machines"
        return f"needs {machines} machines, the system has {has}; list them under `nodes` in the system file"
    for condition in benchmark.requires:
        try:
            holds = bool(evaluate(fill(condition, Context(facts.names)), facts.names))
        except (ExpressionError, PlaceholderError) as error:
            raise UnfilledWord(
                f"{benchmark.name} requires '{condition}': {error.what}",
                entry=benchmark.name,
                word=condition,
                where=benchmark.source,
                remedy=error.remedy or "write a condition, such as gpu['count'] > 1",
            ) from None
        if not holds:
            return f"needs {condition}, which does not hold here"
    return None
