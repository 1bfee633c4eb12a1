"""The commands of a suite's benchmarks: interpreter, launcher, voir, server and container put together."""

from __future__ import annotations

import os.path

import msgspec

from benchwright.core.benchmark import Benchmark, Script
from benchwright.core.benchmark_folder import BenchmarkFolder
from benchwright.core.errors import InvalidInput
from benchwright.core.node.system import SuitePaths
from benchwright.core.status import Reason
from benchwright.plan.base import JobCommand, PlanContext, Planner
from benchwright.plan.capabilities import unmet_condition
from benchwright.plan.containers import contained
from benchwright.plan.launchers import DEFAULT_PORT, STATIC, Gathering, launched
from benchwright.plan.process_slots import ProcessSlot, suite_slots
from benchwright.plan.suite.environment import (
    Configuration,
    device_variables,
    folder_variables,
    made_folders,
    node_variables,
    program_folders,
)
from benchwright.plan.suite.system_options import text, whole_number
from benchwright.plan.words.machine_facts import MachineFacts, machine_facts
from benchwright.plan.words.placeholders import Context
from benchwright.plan.words.suite_words import FilledWords, filled_words

BATCH_SIZE = "BENCHWRIGHT_BATCH_SIZE"
_IMAGES_PYTHON = "python"


class SuiteJobs(Planner):
    """Plans a suite's benchmarks; what is the same for all processes of one is made once."""

    def __init__(self, context: PlanContext, paths: SuitePaths) -> None:
        self.context = context
        self._paths = paths
        self._facts = machine_facts(context.machine, paths.system)
        self._folder = context.folder
        self._probe_path = context.probe_path
        self._port = whole_number(paths.system, "torchrun", "port") or DEFAULT_PORT
        self._backend = text(paths.system, "torchrun", "backend") or STATIC
        self._parts: dict[str, _Parts] = {}

    def why_skipped(self, benchmark: Benchmark) -> tuple[Reason, str] | None:
        """The reason and a sentence, or None if the system has what it needs."""
        if (missing := unmet_condition(benchmark, self._facts)) is not None:
            return Reason.LACKS_CAPABILITY, missing
        needed, there = benchmark.placement.needs_devices, len(self._facts.devices)
        if needed > there:
            return Reason.LACKS_DEVICES, f"needs {needed} devices, the system has {there or 'none'}; override its plan"
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
        """Those of each of its launches."""
        return suite_slots(benchmark, self._facts)

    def command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, repeat: int | None) -> JobCommand:
        """Of the process called `job`, in `slot`."""
        parts = self.parts(benchmark)
        env = {**parts.env, "MILABENCH_CONFIG": parts.configuration.of(slot, repeat)}
        env |= device_variables(slot, self._facts)
        env |= node_variables(slot, self._port)
        argv, files, data_file = self._argv(benchmark, parts, slot, job, env)
        env |= parts.words.env
        if self._paths.system.container is not None:
            argv = self._in_container(parts, argv, env)
        folders = made_folders(parts.folder, self._paths)
        return JobCommand(argv, parts.folder.path, env, parts.path, files, data_file, folders)

    def notes(self, benchmark: Benchmark) -> tuple[str, ...]:
        """What was chosen for it that the suite does not say."""
        chosen = self.parts(benchmark).words.batch_size
        notes = [chosen.note] if chosen is not None and chosen.note is not None else []
        if self._facts.emulated:
            there = len(self._facts.real_devices)
            notes.append(f"{len(self._facts.devices)} devices are emulated; the machine has {there}")
        if self._facts.unseen:
            count, arch = len(self._facts.devices), self._facts.arch
            said = f"{count} {arch} device{'' if count == 1 else 's'} as the system file says"
            notes.append(f"{said}; of {arch} the machine itself is not asked")
        return tuple(notes)

    def parts(self, benchmark: Benchmark) -> _Parts:
        """What all processes of `benchmark` share."""
        made = self._parts.get(benchmark.name)
        if made is None:
            made = self._parts[benchmark.name] = _Parts.of(benchmark, self._paths, self._facts)
        return made

    def _argv(
        self, benchmark: Benchmark, parts: _Parts, slot: ProcessSlot, job: str, env: dict[str, str | None]
    ) -> tuple[tuple[str, ...], dict[str, str], str | None]:
        """The words, the files they name, and where voir's events go; voir's descriptor is put into `env`."""
        folder, python = parts.folder, self._python(parts)
        program: tuple[str, ...] = (parts.script, *parts.words.args)
        files: dict[str, str] = {}
        data_file = None
        if folder.voir is not None:
            config = os.path.join(self._folder, f"{job}.voir.json")
            files[config] = parts.voir_config
            program = ("-m", "voir", "--config", config, *program)
            # Neither a launcher's children nor a container inherit descriptor 3: there, events are hidden in the output.
            inherits = folder.launcher is None and self._paths.system.container is None
            env["DATA_FD"] = "3" if inherits else "1"
            data_file = os.path.join(self._folder, f"{job}.voir") if inherits else None
        if folder.launcher is not None:
            launcher = msgspec.structs.replace(folder.launcher, args=parts.words.launcher_args)
            argv = launched(launcher, python, program, self._gathering(folder, slot, job))
        else:
            argv = (python, *program)
        if folder.serving is not None:
            argv = self._serving(parts, python, argv)
        return argv, files, data_file

    def _python(self, parts: _Parts) -> str:
        """In a container an environment of ours, which is there under its own path, or else the image's own."""
        ours = parts.python.startswith(f"{self._paths.venv}/")
        return parts.python if ours or self._paths.system.container is None else _IMAGES_PYTHON

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

    def _serving(self, parts: _Parts, python: str, client: tuple[str, ...]) -> tuple[str, ...]:
        """The server's script is a file of the folder, else a program of the environment."""
        serving = parts.folder.serving
        assert serving is not None
        script, *args = parts.words.server
        if script.endswith(".py"):
            server = [python, os.path.join(parts.folder.path, script), *args]
        elif "/" in script:
            server = [os.path.join(parts.folder.path, script), *args]
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
        folders = [where.base, where.data, where.extra, where.cache, where.venv, self._folder, parts.folder.path]
        if self._probe_path is not None:
            folders.append(self._probe_path)
        return contained(
            container,
            argv,
            cwd=parts.folder.path,
            folders=folders,
            variables=[name for name, value in env.items() if value is not None],
            context=Context(self._facts.names),
            image=parts.words.image,
        )


class _Parts(msgspec.Struct, frozen=True):
    """What the processes of one benchmark share."""

    folder: BenchmarkFolder
    python: str
    script: str
    words: FilledWords
    env: dict[str, str | None]
    path: tuple[str, ...]
    configuration: Configuration
    voir_config: str

    @classmethod
    def of(cls, benchmark: Benchmark, paths: SuitePaths, facts: MachineFacts) -> _Parts:
        folder, workload = benchmark.folder, benchmark.workload
        if folder is None or not isinstance(workload, Script):
            raise InvalidInput(f"{benchmark.name} is not a script of a suite", where=benchmark.source)
        words = filled_words(benchmark, folder, paths, facts)
        env = folder_variables(folder, paths)
        if words.batch_size is not None:
            env[BATCH_SIZE] = str(words.batch_size.size)
        return cls(
            folder=folder,
            python=paths.python_of(folder.install_group),
            script=workload.path,
            words=words,
            env=env,
            path=program_folders(folder, paths),
            configuration=Configuration(benchmark, folder, paths),
            voir_config=msgspec.json.encode(folder.voir or {}).decode(),
        )
