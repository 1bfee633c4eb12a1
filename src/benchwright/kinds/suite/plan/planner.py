"""The commands of a suite's benchmarks: interpreter, launcher, runner, server and container put together."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Sequence

import msgspec

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Command, Launcher, Script
from benchwright.core.errors import InvalidInput, UnfilledWord, did_you_mean
from benchwright.core.status import Reason
from benchwright.core.system import Container, SuitePaths
from benchwright.kinds.requests.gather import is_client
from benchwright.kinds.suite.dialect import DIALECTS, Claim, DialectPlan, Variables, claim, described, variables_of
from benchwright.kinds.suite.error_locations import words_placed
from benchwright.kinds.suite.plan.filled_words import FilledWords, filled_words
from benchwright.kinds.suite.plan.machine_facts import MachineFacts, machine_facts
from benchwright.kinds.suite.plan.process_environment import (
    BenchmarkPlace,
    device_variables,
    node_variables,
)
from benchwright.kinds.suite.plan.system_options import text, whole_number
from benchwright.kinds.suite.templating.expressions import ExpressionError, evaluate
from benchwright.kinds.suite.templating.placeholders import Context, PlaceholderError, fill
from benchwright.plan.base import JobCommand, PlanContext, Planner
from benchwright.plan.process_slots import LOCALHOST, ProcessSlot

# The command line that runs a command inside a container.


# What the agent adds to the environment of the program it starts, which here is the engine.
_AGENTS_VARIABLES = (
    "BENCHPROBE_CONFIG",
    "BENCHWRIGHT_JOB",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
)


def contained(
    container: Container,
    words: Sequence[str],
    *,
    cwd: str,
    folders: Iterable[str],
    variables: Iterable[str],
    context: Context,
    image: str | None = None,
) -> tuple[str, ...]:
    """`words` in `container`, of `image` if given: `folders` keep their paths, so that files written there are found here.

    Variables are passed by name, so that their values stay out of the command line; one that is not set stays so.
    """
    try:
        image = image or fill(container.image, context)
        given = [fill(word, context) for word in container.args]
    except PlaceholderError as error:
        raise InvalidInput(error.what, where="system.docker", remedy=error.remedy, text=error.text) from None
    command = [container.executable, "run", *_without_terminal(given)]
    if "--rm" not in given:
        command.append("--rm")
    for folder in outermost(folders):
        command += ["-v", f"{folder}:{folder}"]
    for name in dict.fromkeys([*variables, *_AGENTS_VARIABLES]):
        command += ["-e", name]
    return (*command, "-w", cwd, image, *words)


def outermost(folders: Iterable[str]) -> list[str]:
    """`folders` without those inside another of them."""
    kept: list[str] = []
    for folder in sorted({os.path.normpath(f) for f in folders}):
        if not any(folder == k or folder.startswith(k.rstrip("/") + "/") for k in kept):
            kept.append(folder)
    return kept


def _without_terminal(words: Sequence[str]) -> list[str]:
    """A measured program has no terminal, and engines refuse to give it one."""
    kept = []
    for word in words:
        if word in ("-t", "--tty", "--tty=true"):
            continue
        kept.append("-i" if word in ("-it", "-ti") else word)
    return kept


# Programs that start one process for each device: their command lines.


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
        self._own_plans: dict[str, DialectPlan] = {}
        self._claims: dict[str, Claim] = {}  # by folder

    def why_skipped(self, benchmark: Benchmark) -> tuple[Reason, str] | None:
        if (missing := lacks_capability(benchmark, self._facts)) is not None:
            return missing
        try:
            self._own_plan(benchmark)
        except InvalidInput as error:
            return Reason.MISCONFIGURED, error.on_one_line
        return None

    def why_no_turns(self, benchmark: Benchmark) -> str | None:
        """Only one process that is started directly can take turns."""
        folder = benchmark.folder
        if folder is not None and folder.launcher is not None:
            return f"{benchmark.name} is started by {folder.launcher.name}, whose processes cannot take turns"
        if folder is not None and (folder.runner is not None or folder.serving is not None):
            runner = folder.runner.name if folder.runner is not None else "a server"
            return f"{benchmark.name} is run by {runner}, which cannot take turns"
        return None

    def slots(self, benchmark: Benchmark) -> list[ProcessSlot]:
        own = self._own_plan(benchmark)
        return own.slots if own is not None else suite_slots(benchmark, self._facts)

    def command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, launch: int | None) -> JobCommand:
        with words_placed([benchmark]):
            return self._command(benchmark, slot, job, launch)

    def _command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, launch: int | None) -> JobCommand:
        parts = self._parts_of(benchmark)
        own, cwd = self._own_plan(benchmark), parts.cwd
        about = parts.described(slot, launch, own.tag(slot) if own is not None else None)
        env = {**parts.env, **about}
        env |= device_variables(slot, self._facts)
        env |= node_variables(slot, self._port)
        if own is not None:
            contained, stem = self._paths.system.container is not None, os.path.join(self.context.folder, job)
            process = own.process(slot, self._python(parts.place.python), stem, parts.words.fill, contained=contained)
            argv, files, data_file, cwd = process.argv, process.files, process.data_file, process.cwd or cwd
            dialect = process.dialect
            env |= process.env  # as it is: what the entry says, with its placeholders filled, comes after it
        else:
            argv, files, data_file, dialect = self._argv(parts, slot, job, env)
        env |= parts.words.env
        if self._paths.system.container is not None:
            argv = self._in_container(parts, argv, env)
        place = parts.place
        return JobCommand(
            argv, cwd, env, place.program_folders, files, data_file, dialect, place.made_folders, tuple(about)
        )

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
    ) -> tuple[tuple[str, ...], dict[str, str], str | None, str | None]:
        """The words, the files they name, and the file and the dialect of the runner's events, whose descriptor is set in `env`."""
        folder, python = parts.place.folder, self._python(parts.place.python)
        if parts.script is None:
            words = ("/bin/sh", "-c", *parts.words.args) if parts.shell else parts.words.args
            return self._served(parts, python, words), {}, None, None
        program: tuple[str, ...] = (*_started(parts.script, parts.cwd), *parts.words.args)
        files: dict[str, str] = {}
        data_file = stream_dialect = None
        if folder.runner is not None:
            dialect = DIALECTS.load(folder.runner.dialect, where=folder.path)()
            contained = folder.launcher is not None or self._paths.system.container is not None
            run = dialect.run(
                folder.runner,
                program,
                os.path.join(self.context.folder, job),
                contained=contained,
                together=slot.together > 1 and slot.reports == "always",
            )
            program, files, data_file, stream_dialect = run.argv, run.files, run.data_file, run.dialect
            env |= run.env
        if folder.launcher is not None:
            launcher = msgspec.structs.replace(folder.launcher, args=parts.words.launcher_args)
            argv = launched(launcher, python, program, self._gathering(folder, slot, job))
        else:
            argv = (python, *program)
        return self._served(parts, python, argv), files, data_file, stream_dialect

    def _claim(self, folder: str) -> Claim:
        if folder not in self._claims:
            self._claims[folder] = claim(folder)
        return self._claims[folder]

    def _own_plan(self, benchmark: Benchmark) -> DialectPlan | None:
        """None if the folder does not define how to run, or the entry overrides it."""
        if benchmark.folder is None:
            return None
        dialect, facts = self._claim(benchmark.folder.path)
        if dialect is None or not facts.follows("run", benchmark.folder.config):
            return None
        if benchmark.name not in self._own_plans:
            place = BenchmarkPlace(benchmark, self._paths)
            fill = lambda word: self._parts_of(benchmark).words.fill(word)  # noqa: E731
            self._own_plans[benchmark.name] = dialect.plan(benchmark, place, self._facts, fill)
        return self._own_plans[benchmark.name]

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
        apart = ("--apart",) if is_client(parts.words.args) else ()  # our client may not wait for the server's cores
        words = (*ready, *timeout, *apart, "--server", str(len(server)), *server, "--", *client)
        return (python, "-m", "benchprobe.served_client", *words)

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
    """Shared by the processes of one benchmark."""

    place: BenchmarkPlace
    script: str | None  # None: a command
    cwd: str
    shell: bool
    words: FilledWords
    env: dict[str, str | None]
    described: Callable[[ProcessSlot, int | None, tuple[str, ...] | None], Variables]

    @classmethod
    def of(cls, benchmark: Benchmark, paths: SuitePaths, facts: MachineFacts, run: str) -> _Parts:
        workload, place = benchmark.workload, BenchmarkPlace(benchmark, paths)
        if not isinstance(workload, Script | Command):
            raise InvalidInput(f"{benchmark.name} is neither a script nor a command", where=benchmark.source)
        words = filled_words(benchmark, place, paths, facts)
        env = variables_of(place, facts)
        if words.batch_size is not None:
            env[BATCH_SIZE] = str(words.batch_size.size)
        return cls(
            place=place,
            script=workload.path if isinstance(workload, Script) else None,
            cwd=workload.cwd,
            shell=isinstance(workload, Command) and workload.shell,
            words=words,
            env=env,
            described=described(benchmark, place, facts, run),
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
