"""Benchmarks → Jobs → Events → Run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from benchwright.artifacts.probe_folder import ProbeWatch
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.core.job import Job, Outcome
from benchwright.core.note import Note
from benchwright.core.run import Launch, Plan, Run
from benchwright.core.status import Reason
from benchwright.core.system import Node
from benchwright.executors.base import Allocating, Executor
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.observer import Observer, usable_cores
from benchwright.kinds.registry import by_kind, kind_of
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan
from benchwright.plan.starts import overlap_notes
from benchwright.plan.turns import started_together
from benchwright.record import is_complete
from benchwright.runner.growth import PendingScripts, SharedWork, scripts_left, with_more
from benchwright.runner.hooks import HookRunner
from benchwright.runner.prebuild import BuildsAhead, empty_folder, remove_folder, still_to_launch, write_file
from benchwright.runner.readiness import Cooldown, busy_notes, clear_leftovers, not_ready, refuse_if_none_is_ready
from benchwright.runner.recorder import ImmediateRecorder, RunWriter, add_examined, add_neighbours, recorded
from benchwright.runner.stop import LaunchStopper
from benchwright.runs.assembly import RunParts, assemble
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.provenance.packages import environments_of
from benchwright.runs.provenance.provenance import history_of_new, history_of_resumed
from benchwright.runs.read_run import notes_of
from benchwright.runs.resume import check_workers, refuse_other_machine, to_resume
from benchwright.runs.run_folder import DiskTrouble, RunFolder, RunState, new_uid
from benchwright.runs.stored_plan import StoredJobs, StoredPlan


def measure(
    benchmarks: Sequence[Benchmark],
    options: Options,
    *,
    base: BaseFolder,
    name: str,
    executor: Executor,
    observer: Observer | None = None,
    resume: str | None = None,
    labels: dict[str, str] | None = None,
    search_first: bool = False,
    anyway: bool = False,
    failed: Mapping[str, str] | None = None,
    another: Callable[[], AbstractContextManager[Executor]] | None = None,
    on_ended: Callable[[Run, Collection[str]], None] | None = None,
    shared: SharedWork | None = None,
) -> Run:
    """Measures everything and returns the Run; raises Interrupted, after keeping what there is, if asked to stop.

    `anyway`: a run is resumed even if what it depends on has changed, and marked.
    `failed`: benchmarks that could not be set up, with the reason; launches that can run all the same are made.
    `another`: opens an executor like this one, to clean up after an interrupt. `search_first`: all scripts are searched
    for models before anything is measured; else each before its own models. `on_ended`: called with the run as far as it is
    made whenever benchmarks of these names have had their last launch. `shared`: where more benchmarks come from, after these.
    """
    observer = observer or Observer()
    everything = tuple(benchmarks) if shared is None else shared.everything
    check_workers(everything, options)
    with closing(PendingScripts(base, executor, observer, together=search_first)) as scripts:
        if resume is None:
            folder, stored = _begin(benchmarks, everything, options, scripts, base, name, labels or {}, failed or {})
        else:
            folder, stored = to_resume(base.runs, resume, tuple(benchmarks), options)
        with folder.locked():
            try:
                measurement = _Measurement(
                    folder,
                    stored,
                    base,
                    executor,
                    observer,
                    scripts,
                    resumes=resume is not None,
                    anyway=anyway,
                    failed=failed or {},
                    another=another,
                    on_ended=on_ended,
                    shared=shared,
                )
            except BaseException:  # Ctrl-C too
                if resume is None:
                    folder.remove_unused()
                raise
            scripts.keep_in(folder.path)
            return measurement.make()


def _on_nodes(stored: StoredPlan, nodes: tuple[Node, ...]) -> StoredPlan:
    """The plan, for nodes that a scheduler granted. Only suites have benchmarks of several machines."""
    paths = stored.options.suite_paths
    if paths is None:
        return stored
    paths = msgspec.structs.replace(paths, system=msgspec.structs.replace(paths.system, nodes=nodes))
    return msgspec.structs.replace(stored, options=msgspec.structs.replace(stored.options, suite_paths=paths))


def _begin(
    benchmarks: Sequence[Benchmark],
    everything: Sequence[Benchmark],
    options: Options,
    scripts: PendingScripts,
    base: BaseFolder,
    name: str,
    labels: dict[str, str],
    failed: Mapping[str, str],
) -> tuple[RunFolder, StoredPlan]:
    """A new run, whose first script has been searched. `everything`: that it may grow to."""
    if not benchmarks:
        raise InvalidInput("nothing to measure", remedy="name a file, or write a command after --")
    found = scripts.first(benchmarks, options)
    refuse_if_none_is_ready(found if len(everything) == len(benchmarks) else everything, options, failed)
    stored = StoredPlan(
        uid=new_uid(),
        name=name,
        started=datetime.now().astimezone().isoformat(timespec="seconds"),
        benchmarks=found,
        asked=tuple(everything) if any(b.is_open for b in everything) else (),
        options=options,
        labels=labels,
    )
    return RunFolder.create(base.runs, name, shared=options.share), stored


class _Measurement:
    """One run being made."""

    def __init__(
        self,
        folder: RunFolder,
        stored: StoredPlan,
        base: BaseFolder,
        executor: Executor,
        observer: Observer,
        scripts: PendingScripts,
        *,
        resumes: bool,
        anyway: bool,
        failed: Mapping[str, str],
        another: Callable[[], AbstractContextManager[Executor]] | None = None,
        on_ended: Callable[[Run, Collection[str]], None] | None = None,
        shared: SharedWork | None = None,
    ) -> None:
        self.folder = folder
        self.failed = failed
        self.scripts = scripts
        self.stored = self._with_lacking(stored)
        self.executor = executor
        self.another = another or (lambda: nullcontext(executor))
        self.on_ended = on_ended
        self.reported_ended: set[str] = set()
        self.shared = shared
        self.passed: set[str] = set()  # benchmarks of parts that were ended
        self.observer = observer
        if isinstance(executor, Allocating) and (nodes := executor.allocate(str(folder.path), observer)):
            self.stored = stored = _on_nodes(self.stored, nodes)
        self.machine = executor.machine()
        refuse_other_machine(folder, self.machine)
        self.notes = notes_of(folder.read_ending().notes)  # those of an earlier attempt stay true
        everything = stored.benchmarks if shared is None else shared.everything
        packages = {name: None for kind, same in by_kind(everything) for name in kind.packages_for(same)}
        self.probe = ProbeWatch(base.artifacts, self._tell, tuple(packages))
        self.made = 0  # groups of launches
        self.plan = self._planned([b for b in stored.benchmarks if not b.is_open])
        self.hooks, self.cooldown = HookRunner(self.plan), Cooldown()
        self.builds = BuildsAhead(folder.path, executor, observer, stored.options.build_jobs, self.machine.cores)
        options, self.pairs = stored.options, {b.name: b.pair for b in stored.benchmarks}
        self.enough = LaunchStopper(options.enough, self._run, self.pairs, options.decision)
        # Scripts that are still to be searched depend on the same files and packages as their models will.
        grows = shared is not None or any(b.is_open for b in stored.benchmarks)
        whole = self._planned(everything) if grows else self.plan
        context = (whole, kind_of, stored.options.keep_env)
        self.history = history_of_resumed(folder, *context, anyway=anyway) if resumes else history_of_new(*context)
        self.launches: dict[str, list[Launch]] = {}
        self._show_plan()
        self.ended: str | None = None
        self.state: RunState = "running"
        self.writer = RunWriter(folder, observer)
        self.packages: dict[str, dict[str, str]] = {}

    def _with_lacking(self, stored: StoredPlan) -> StoredPlan:
        lacking = not_ready(stored.benchmarks, stored.options)
        return msgspec.structs.replace(
            stored, not_ready={name: self.failed.get(name, why) for name, why in lacking.items()}
        )

    def _planned(self, benchmarks: Sequence[Benchmark]) -> Plan:
        plan = make_plan(
            benchmarks,
            self.machine,
            self.stored.options,
            kind_of,
            folder=str(self.folder.path),
            probe_path=str(self.probe.folder),
            usable_cores=usable_cores(self.machine),
            not_ready={b.name: why for b in benchmarks if (why := self.stored.not_ready.get(b.name)) is not None},
            goes_on=self.made > 0 or any(b.is_open for b in self.stored.benchmarks),
        )
        return msgspec.structs.replace(plan, skipped=plan.skipped | self.scripts.lost)

    def _show_plan(self) -> None:
        """As it is written down, so that this run and the one that is read back are equal."""
        self.shown = self.stored.without_secrets()
        self.jobs = StoredJobs.of(self.plan)
        self.planned = self.jobs.plan(self.shown.benchmarks, str(self.folder.path))
        self.places = {job.id: place for place, job in enumerate(job for jobs in self.plan.launches for job in jobs)}
        self.benchmarks = {b.name: b for b in self.shown.benchmarks}
        self.launches = {b.name: self.launches.get(b.name, []) for b in self.stored.benchmarks}

    def _grow(self, stopped: Callable[[], bool]) -> bool:
        """Searches one more script and plans its models, or takes more work; False if none is left, or it was asked to stop."""
        if stopped():
            return False
        found = self.scripts.next(self.stored, self.folder.path, stopped) or self._taken(stopped)
        if found is None:
            return False
        self._mend()
        planned = {b.name for b in self.plan.benchmarks}
        self.stored = self._with_lacking(msgspec.structs.replace(self.stored, benchmarks=found))
        more = [b for b in found if not b.is_open and b.name not in planned]
        self.plan = with_more(self.plan, self._planned(more))
        self.enough.measures(b.name for b in more)
        self.pairs.update({b.name: b.pair for b in found})
        self.hooks.plan_is(self.plan)
        self._show_plan()
        self._write_beginning()
        if self.writer.is_due:
            self._keep()
        self.observer.on_grown(self.plan, *scripts_left(self.stored))
        return True

    def _taken(self, stopped: Callable[[], bool]) -> tuple[Benchmark, ...] | None:
        """The run's benchmarks with a further part of the work that it shares with others; None: there is no more."""
        if self.shared is None or stopped():
            return None
        lost = self._losses()
        self.shared.end(self.folder.id, self._part(), lost=bool(lost))
        self.passed.update(b.name for b in self.stored.benchmarks)
        if lost and not self._is_usable(lost):
            return None
        more = self.shared.take(stopped)
        for kind, same in by_kind(more):
            self._add_notes(Note(text=text) for text in kind.warnings(same, self.stored.options))
        return (*self.stored.benchmarks, *more) if more else None

    def _part(self) -> list[str]:
        """The benchmarks that were taken last."""
        return [b.name for b in self.stored.benchmarks if b.name not in self.passed]

    def _losses(self) -> set[Reason]:
        """Why the benchmarks that were taken last must be measured elsewhere; none, if they need not."""
        launches = {x.reason for name in self._part() for x in self.launches.get(name, ())}
        searches = {self.scripts.lost[name][0] for name in self._part() if name in self.scripts.lost}
        return {reason for reason in launches | searches if reason in (Reason.AGENT_LOST, Reason.DISK_FULL)}

    def _is_usable(self, lost: Collection[Reason]) -> bool:
        """Whether the node answers again."""
        try:
            return Reason.DISK_FULL not in lost and self.executor.machine() is not None
        except CannotMeasure as error:
            self._tell(str(error))
            return False

    def _tell(self, text: str) -> None:
        """Something a reader of the results should know, and whoever watches the run now."""
        self._add_notes([Note(text=text)])
        self.observer.on_trouble(text)

    def make(self) -> Run:
        # From before it can be listed: a run that is asked to stop is marked as interrupted, however early that is.
        with stops_on_signals(self.executor.stop, second_ends=True) as stopped:
            self._write_beginning()
            self._clear_leftovers()
            self._note_environment()
            self._keep()
            self.observer.on_run(self.folder.path, self.plan, self.machine)
            self.observer.on_grown(self.plan, *scripts_left(self.stored))
            try:
                self._launch_all(stopped)
                while self._grow(stopped):
                    self._launch_all(stopped)
            finally:
                self._clean_up(stopped())
        self.state = "interrupted" if stopped() else "ended"
        if not stopped():
            self.ended = datetime.now().astimezone().isoformat(timespec="seconds")
            if self.ended < self.stored.started:
                text = "the system clock was set back during this run, so it seems to end before it began"
                self.notes += (Note(text=f"{text}; durations are measured by another clock and are not affected"),)
        run = self._finish()
        if stopped():
            raise Interrupted(f"interrupted; resume with: benchwright run --resume={self.folder.id}")
        return run

    def _write_beginning(self) -> None:
        """Writes the files that change only when the run grows."""
        self.folder.write_history(self.history)
        self.folder.write_plan(self.stored)  # before the jobs: whoever reads it meanwhile knows their benchmarks
        self.folder.write_jobs(self.jobs)
        self.folder.write_machine(self.machine)
        self.beginning = self.folder.beginning()

    def _mend(self) -> None:
        """Undo what a measured program did to the files that are needed to read the run; it can reach the run's folder."""
        if self.folder.beginning() != self.beginning:
            self._tell("files of this run were changed while it ran, perhaps by a measured program; they were restored")
            self._write_beginning()

    def _launch_all(self, stopped: Callable[[], bool]) -> None:
        groups = started_together(self.plan.launches)
        for number, group in enumerate(groups[self.made :], start=self.made + 1):
            if stopped():
                return
            if self.shared is not None and self._losses():
                self.made = len(groups)  # the rest is measured elsewhere, too
                return
            self.made = number
            if not self.enough.reached(group[0][0]) and not self._launch_group(number, len(groups), group, stopped):
                return
            self._tell_ended(groups[number:])

    def _tell_ended(self, later: Sequence[Sequence[Sequence[Job]]]) -> None:
        """Of a pair only both together: one is compared with the other."""
        if self.on_ended is None:
            return
        waiting = {job.benchmark for group in later for launch in group for job in launch}
        waiting |= {name for name, pair in self.pairs.items() if pair and pair in {self.pairs[w] for w in waiting}}
        ended = {name for name, made in self.launches.items() if made} - waiting - self.reported_ended
        if ended:
            self.reported_ended |= ended
            self.on_ended(self._run(), ended)

    def _launch_group(
        self, number: int, total: int, group: Sequence[Sequence[Job]], stopped: Callable[[], bool]
    ) -> bool:
        """False: it was asked to stop."""
        ended = ImmediateRecorder(group, self.observer, partial(self._ended, number, total))
        outcomes: Mapping[str, Outcome] = {}
        if not all(is_complete(job.stream) for launch in group for job in launch):
            self.cooldown.wait([job for launch in group for job in launch], stopped, self.observer)
            if stopped():
                return False
            outcomes = self._launch(number, total, group, ended)
            self.cooldown.ended()
        for launch in group:
            if launch[0].id not in ended.recorded:
                self._add(number, total, launch, outcomes)
        return True

    def _forget_unneeded(self) -> None:
        """Launches that were planned in case they were needed are no part of the run."""
        made = {launch.job for launches in self.launches.values() for launch in launches}
        needed = tuple(launch for launch in self.plan.launches if launch[0].id in made)
        if len(needed) < len(self.plan.launches):
            self.plan = msgspec.structs.replace(self.plan, launches=needed)
            self.jobs = StoredJobs.of(self.plan)
            self.planned = self.jobs.plan(self.shown.benchmarks, str(self.folder.path))
            self.folder.write_jobs(self.jobs)
        self._add_notes(self.enough.notes())

    def _clean_up(self, interrupted: bool) -> None:
        """An executor that was stopped runs nothing any more, so an interrupted run is cleaned up by another."""
        if not self.hooks.has_cleanup:
            return
        with (
            self.another() if interrupted else nullcontext(self.executor) as executor,
            stops_on_signals(executor.stop, second_ends=True),
        ):
            for problem in self.hooks.after(executor, self.observer):
                self._tell(problem)

    def _ended(self, number: int, total: int, jobs: Sequence[Job], outcomes: Mapping[str, Outcome]) -> None:
        self._examine(jobs, outcomes)
        self._add(number, total, jobs, outcomes)

    def _examine(self, jobs: Sequence[Job], outcomes: Mapping[str, Outcome]) -> None:
        add_examined(jobs, outcomes.values(), self.benchmarks)
        if isinstance(self.executor, Allocating):
            add_neighbours(jobs, self.executor)
        if self.probe.was_changed():
            names = ", ".join(job.id for job in jobs)
            text = f"benchprobe's own files were changed while {names} ran; they were restored before the next launch"
            self._tell(text)

    def _add(self, number: int, total: int, jobs: Sequence[Job], outcomes: Mapping[str, Outcome]) -> None:
        known = self.benchmarks, self.folder.checksums
        launches = [recorded(job, outcomes.get(job.id), *known) for job in jobs]
        made = self.launches[jobs[0].benchmark]
        made += launches
        made.sort(key=lambda launch: self.places[launch.job])
        self.observer.on_recorded(number, total, launches)
        if self.writer.is_due:
            self._keep()

    def _launch(
        self, number: int, total: int, group: Sequence[Sequence[Job]], listener: ImmediateRecorder
    ) -> Mapping[str, Outcome]:
        """Runs the jobs of launches that are started together; returns what the executor has to say about each."""
        group = self.builds.ready(still_to_launch(group), self.plan.launches)
        if not group:
            return {}
        jobs = [job for launch in group for job in launch]
        for job in jobs:
            self.folder.set_aside(job.id)
            for meeting in (job.barrier, job.launch_end):
                if meeting is not None:
                    empty_folder(Path(meeting.folder))
            for path, text in job.files.items():
                write_file(Path(path), text)
        self.observer.on_launch(number, total, jobs)
        ready = [launch for launch in group if self.hooks.before(launch, self.executor, self.observer)]
        finished = self.executor.run([job for launch in ready for job in launch], listener)
        outcomes = {outcome.job: outcome for outcome in finished}
        if rest := [job for launch in group if launch[0].id not in listener.recorded for job in launch]:
            self._examine(rest, outcomes)
        return outcomes

    def _run(self) -> Run:
        """As far as it is made: every stream was folded when its launch had ended."""
        parts = RunParts(
            folder=self.folder.path,
            stored=self.shown,
            machine=self.machine,
            plan=self.planned,
            launches=self.launches,
            history=self.history,
            packages=self.packages,
            notes=self.notes,
            ended=self.ended,
        )
        return assemble(parts, kind_of)

    def _keep(self) -> Run:
        """Writes run.json, and returns what it tells."""
        return self.writer.write(self._run, self.state)

    def _finish(self) -> Run:
        try:
            self._mend()
            if self.state == "ended":
                self._forget_unneeded()
                self._add_notes(self.scripts.notes(self.folder.path, self.stored, self.launches))
            everything = [x for launches in self.launches.values() for x in launches]
            self.packages = environments_of(everything, self.plan)
            self.folder.write_packages(self.packages)
        except DiskTrouble as error:
            self.observer.on_trouble(str(error))
        run = self._keep()
        barriers = self.folder.path / ".barrier"
        if barriers.exists():
            remove_folder(barriers)
        return run

    def _note_environment(self) -> None:
        self._add_notes(busy_notes(self.machine))
        self._add_notes(overlap_notes(self.plan.launches, self.stored.options))
        for kind, same in by_kind(b for b in self.stored.benchmarks if b.name not in self.plan.skipped):
            self._add_notes(Note(text=text) for text in kind.warnings(same, self.stored.options))

    def _clear_leftovers(self) -> None:
        for note in clear_leftovers(self.folder.path, self.executor):
            self._add_notes([note])
            self.observer.on_trouble(f"{note.text}: {note.evidence}")

    def _add_notes(self, more: Iterable[Note]) -> None:
        self.notes = tuple(dict.fromkeys((*self.notes, *more)))
