"""`prepare`: each benchmark's prepare script, once, in its environment."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.artifacts.probe_folder import probe_folder
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import Interrupted, InvalidInput
from benchwright.core.job import MAKES_DATA, Job, Outcome
from benchwright.core.quantities import format_duration
from benchwright.core.secrets import redact_text
from benchwright.core.system import SuitePaths
from benchwright.environments.installers import choose_installer
from benchwright.environments.locks import locked
from benchwright.executors.base import Listener, Site
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.observer import Observer
from benchwright.executors.registry import open_executor
from benchwright.kinds.suite.dialect import DialectStep, claiming
from benchwright.kinds.suite.plan.filled_words import filled_words
from benchwright.kinds.suite.plan.machine_facts import machine_facts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.kinds.suite.setup.install import IndexOptions, check_writable, package_indexes
from benchwright.kinds.suite.setup.preparation import (
    Marks,
    Preparation,
    Prepared,
    changes,
    contents,
    missing_data,
    preparation_of,
)
from benchwright.kinds.suite.setup.process import SuiteProcess, suite_process
from benchwright.kinds.suite.setup.readiness import not_installed
from benchwright.kinds.suite.suites import read_benchmarks, suite_paths_of, wanted_of
from benchwright.options.table import Options
from benchwright.plan.file_names import safe_name
from benchwright.runs.logs import Log, tail_of

_ERROR = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit): \S")
_LOOKED_AT, _LONGEST_ERROR = 40, 200  # lines of the log, characters


class PrepareOptions(msgspec.Struct, frozen=True, kw_only=True):
    force: bool = False
    jobs: int = 1  # scripts that share a download may get in each other's way: several at once only when asked for
    run: Options = Options()  # where the scripts run, and what is shown


class Preparing(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a benchmark. `status`: prepared, reused, nothing (to do) or failed."""

    name: str
    status: str
    seconds: float = 0.0
    log: str | None = None
    detail: str | None = None


def prepare(targets: Sequence[str], options: PrepareOptions, observer: Observer | None = None) -> list[Preparing]:
    """Every selected benchmark; one that fails does not stop the others. Raises Interrupted if asked to stop."""
    benchmarks = wanted_of(read_benchmarks(targets, options.run), options.run)
    return prepare_benchmarks(benchmarks, suite_paths_of(options.run, benchmarks), options, observer or Observer())


def prepare_benchmarks(
    benchmarks: Sequence[Benchmark], paths: SuitePaths, options: PrepareOptions, observer: Observer
) -> list[Preparing]:
    """In that order; InvalidInput if the environment of one that has a prepare script is missing."""
    needing = {b.name: p for b in benchmarks if (p := preparation_of(b)) is not None}
    lacking = not_installed([b for b in benchmarks if b.name in needing], paths)
    for name, why in lacking.items():
        raise InvalidInput(f"{name}: {why}")
    done: dict[str, Preparing] = {
        b.name: Preparing(name=b.name, status="nothing") for b in benchmarks if b.name not in needing
    }
    if needing:
        work = _Preparation(paths, options, observer)
        done |= work.all([b for b in benchmarks if b.name in needing], needing)
    return [done[b.name] for b in benchmarks]


class _Task(msgspec.Struct, frozen=True):
    benchmark: Benchmark
    preparation: Preparation
    job: Job


class _Preparation:
    """The preparations of one call."""

    def __init__(self, paths: SuitePaths, options: PrepareOptions, observer: Observer) -> None:
        self.paths = paths
        self.options = options
        self.observer = observer
        self.marks = Marks(paths.data)
        self.logs = os.path.join(paths.extra, ".prepare")
        self.stopped = threading.Event()
        self.stops: list[Callable[[], None]] = []

    def all(self, benchmarks: Sequence[Benchmark], needing: dict[str, Preparation]) -> dict[str, Preparing]:
        done: dict[str, Preparing] = {}
        first: dict[str, Benchmark] = {}  # of benchmarks with the same preparation
        for benchmark in benchmarks:
            identity = needing[benchmark.name].identity
            if self._is_done(identity) and not self.options.force:
                done[benchmark.name] = self._tell(Preparing(name=benchmark.name, status="reused"))
            else:
                first.setdefault(identity, benchmark)
        if first:
            made = self._make(self._jobs(list(first.values()), needing))
            for benchmark in benchmarks:
                identity = needing[benchmark.name].identity
                if benchmark.name not in done:
                    done[benchmark.name] = msgspec.structs.replace(made[identity], name=benchmark.name)
        return done

    def _jobs(self, benchmarks: Sequence[Benchmark], needing: dict[str, Preparation]) -> list[_Task]:
        """InvalidInput, before anything runs, if a word of any of them cannot be filled."""
        machine = read_machine()
        processes = [suite_process(benchmark, self.paths, machine) for benchmark in benchmarks]
        for place in (self.paths.data, self.paths.cache, self.marks.folder, self.logs):
            check_writable(place, other="--base or $BENCHWRIGHT_DATA_DIR")
        return [
            _Task(b, needing[b.name], self._job(b, needing[b.name], process))
            for b, process in zip(benchmarks, processes, strict=True)
        ]

    def _make(self, todo: Sequence[_Task]) -> dict[str, Preparing]:
        """Identity → what became of it."""
        names = ", ".join(task.benchmark.name for task in todo[:3])
        try:
            with (
                stops_on_signals(self.stop),
                locked(
                    self.marks.lock,
                    waiting=lambda: self.observer.on_step(names, "waiting for another prepare of the same data"),
                    stopped=self.stopped.is_set,
                ),
            ):
                self.observer.on_step_done(names)  # if it had to wait
                results = self._run_all(todo)
        except InterruptedError:
            self.stopped.set()
            results = {}
        if self.stopped.is_set():
            raise Interrupted("interrupted; finished work is kept; run the same command again")
        return results

    def stop(self) -> None:
        self.stopped.set()
        for stop in list(self.stops):
            stop()

    def _run_all(self, todo: Sequence[_Task]) -> dict[str, Preparing]:
        if self.options.jobs == 1:
            found = self._run_some(todo)
        else:
            with ThreadPoolExecutor(max_workers=self.options.jobs) as pool:
                parts = list(pool.map(lambda one: self._run_some([one]), todo))
            found = {identity: made for part in parts for identity, made in part.items()}
        return found

    def _run_some(self, todo: Sequence[_Task]) -> dict[str, Preparing]:
        """One after the other, with a separate executor."""
        found = {}
        site = msgspec.structs.replace(Site.of(self.options.run, self.paths.base), system=self.paths.system)
        with open_executor(self.options.run.on or "local", site) as executor:
            self.stops.append(executor.stop)
            if self.stopped.is_set():
                executor.stop()
            for task in todo:
                identity = task.preparation.identity
                if not self.options.force and self._is_done(identity):  # meanwhile, by another process
                    found[identity] = self._tell(Preparing(name=task.benchmark.name, status="reused"))
                else:
                    found[identity] = self._tell(self._run_one(task, executor.run))
        return found

    def _run_one(self, task: _Task, run: Callable[[Sequence[Job], Listener], list[Outcome]]) -> Preparing:
        benchmark, preparation, job = task.benchmark, task.preparation, task.job
        assert benchmark.folder is not None
        watched = (self.paths.data, self.paths.cache)
        for leftover in (job.log, f"{job.log}.gz", job.stream):
            _remove(leftover)
        before = contents(watched)
        self.marks.forget(preparation.identity)
        self.observer.on_step(benchmark.name, f"running {os.path.basename(preparation.script)}", job.log)
        began = time.monotonic()
        outcome = self._obey(task, run) if preparation.obeyed else run([job], self.observer)[0]
        seconds = round(time.monotonic() - began, 3)
        log = f"{job.log}.gz" if os.path.exists(f"{job.log}.gz") else job.log
        if outcome.exit_code != 0 or outcome.stopped:
            why = _why_failed(outcome, log)
            return Preparing(name=benchmark.name, status="failed", seconds=seconds, log=log, detail=why)
        _remove(job.stream)
        made = changes(before, contents(watched))
        for folder, names in self.marks.made_for(benchmark.folder.path).items():
            made.setdefault(folder, set()).update(names)
        mark = Prepared(
            benchmark=benchmark.name,
            definition=benchmark.folder.path,
            script=preparation.script,
            args=preparation.args,
            made={folder: tuple(sorted(names)) for folder, names in made.items() if names},
            finished=time.time(),
            seconds=seconds,
        )
        try:
            self.marks.write(preparation.identity, mark)
        except OSError as error:
            why = f"{self.marks.folder}: {error.strerror or error}"
            return Preparing(name=benchmark.name, status="failed", seconds=seconds, log=log, detail=why)
        return Preparing(name=benchmark.name, status="prepared", seconds=seconds, log=log)

    def _obey(self, task: _Task, run: Callable[[Sequence[Job], Listener], list[Outcome]]) -> Outcome:
        """Follows the folder's own way to prepare: each of its commands is a job, the first that fails ends it."""
        place, facts = BenchmarkPlace(task.benchmark, self.paths), machine_facts(read_machine(), self.paths.system)
        words = filled_words(task.benchmark, place, self.paths, facts)
        outcomes: list[Outcome] = []

        def perform(step: DialectStep) -> int:
            job, number = task.job, len(outcomes)
            more = {} if number == 0 else {"log": f"{job.log}.{number}", "stream": f"{job.stream}.{number}"}
            argv, env = step.argv, {**job.env, **step.env, **words.env}
            if step.is_install:
                argv, variables = _installing(place.python, step.argv)
                env |= variables
            changed = {"argv": argv, "cwd": step.cwd, "env": env, "files": step.files, **more}
            outcomes.append(run([msgspec.structs.replace(job, **changed)], self.observer)[0])
            return outcomes[-1].exit_code if outcomes[-1].exit_code is not None else 1

        try:
            claiming(place.folder.path).follow(
                "prepare", task.benchmark, place, facts, place.python, task.job.stream, words.fill, perform
            )
        except InvalidInput as error:
            return next((o for o in outcomes if o.exit_code != 0), Outcome(job=task.job.id, detail=str(error)))
        failed = [outcome for outcome in outcomes if outcome.exit_code != 0]
        return (failed or outcomes or [Outcome(job=task.job.id, exit_code=0)])[0]

    def _job(self, benchmark: Benchmark, preparation: Preparation, process: SuiteProcess) -> Job:
        script = preparation.script
        argv = (process.python, script) if script.endswith(".py") else (script,)
        stem = safe_name(benchmark.name)
        return Job(
            id=stem,
            benchmark=benchmark.name,
            argv=(*argv, *process.args),
            cwd=process.cwd,
            stream=os.path.join(self.logs, f"{stem}.data"),
            log=os.path.join(self.logs, f"{stem}.log"),
            env=process.env,
            path=process.path,
            phase=MAKES_DATA,
            folders=process.folders,
            probe_path=str(probe_folder(Path(self.paths.base) / "artifacts", self.observer.on_note)),
            echo=self.options.run.show_output,
        )

    def _is_done(self, identity: str) -> bool:
        mark = self.marks.read(identity)
        return mark is not None and missing_data(mark) is None

    def _tell(self, preparing: Preparing) -> Preparing:
        ended = preparing.status in ("prepared", "failed")
        took = format_duration(preparing.seconds)
        self.observer.on_step_done(preparing.name, f"{preparing.status} after {took}" if ended else "")
        return preparing


def _installing(python: str, wanted: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The installer's command, and its variables. There may be no pip in the environment."""
    installer = choose_installer(None, package_indexes(IndexOptions()))
    variables = installer.environment(os.environ)
    changed = {name: value for name, value in variables.items() if os.environ.get(name) != value}
    return tuple(installer.install(python, wanted)), changed


def _why_failed(outcome: Outcome, log: str) -> str:
    if outcome.detail:
        return outcome.detail
    if outcome.stopped:
        return "was stopped"
    if outcome.out_of_memory:
        return "ran out of memory"
    if outcome.signal is not None:
        return f"killed by signal {outcome.signal}"
    return f"exited with code {outcome.exit_code}" + _last_error(log)


def _last_error(log: str) -> str:
    """The last line that reads like a Python error, as the end of a sentence."""
    try:
        lines = [line.decode("utf-8", "replace").strip() for line in tail_of(Log("", log), _LOOKED_AT)]
    except OSError:
        return ""
    found = [line for line in lines if _ERROR.match(line)]
    return ": " + redact_text(found[-1])[:_LONGEST_ERROR].rstrip(".") if found else ""


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
