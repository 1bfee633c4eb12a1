"""Runs a script once to find its models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchwright.artifacts.probe_folder import probe_folder
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import CannotMeasure, Interrupted
from benchwright.core.model import FoundModel, ModelScript, ScriptDiscovery
from benchwright.executors.base import Executor
from benchwright.executors.observer import Observer, usable_cores
from benchwright.executors.stopping import stops_on_signals
from benchwright.kinds.models.discovery.kept import KeptDiscoveries
from benchwright.kinds.models.discovery.reading import read_discovery
from benchwright.kinds.models.script import ScriptKind
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan
from benchwright.runs.base_folder import BaseFolder


class ScriptLauncher:
    """Starts the processes that look for models, one at a time: nothing is measured meanwhile."""

    def __init__(self, options: Options, base: BaseFolder, executor: Executor, observer: Observer) -> None:
        self._options = msgspec.structs.replace(
            options, repeat=1, enough=None, decision=None, warmup_runs=0, interleave=False, turns=None
        )
        self._base = base
        self._executor = executor
        self._observer = observer
        self._launched = 0

    def run(
        self, script: Benchmark, folder: Path, *, goes_on: bool = False, count_work: bool = False
    ) -> ScriptDiscovery:
        """What the script called; its events and its output go to `folder`.

        `goes_on`: others follow. `count_work`: it also counts the models' arithmetic, which calls them again.
        """
        folder.mkdir(exist_ok=True)
        plan = make_plan(
            [_limited(script, self._options.find_timeout)],
            self._executor.machine(),
            msgspec.structs.replace(self._options, show_output=self._options.show_output and not count_work),
            lambda benchmark: ScriptKind(),
            folder=str(folder),
            probe_path=str(probe_folder(self._base.artifacts, self._observer.on_trouble, ScriptKind.probe_packages)),
            usable_cores=usable_cores(self._executor.machine()),
            count_work=count_work,
            goes_on=goes_on or self._launched > 0,
        )
        self._launched += 1
        if script.name in plan.skipped:
            reason, text = plan.skipped[script.name]
            return ScriptDiscovery(script=script.source, models=(), exit_code=None, trouble=text, reason=reason)
        (job,) = plan.launches[0]
        for ending in (".data", ".log", ".log.gz"):  # of a search that was interrupted
            Path(job.stream).with_suffix(ending).unlink(missing_ok=True)
        (outcome,) = self._executor.run([job], self._observer)
        return read_discovery(script, job, outcome)


def _limited(script: Benchmark, limit_s: float) -> Benchmark:
    """With the time limit of a search, unless its own is shorter."""
    return msgspec.structs.replace(script, timeout_s=min(limit_s, script.timeout_s or limit_s))


def discover(
    benchmarks: Sequence[Benchmark], options: Options, base: BaseFolder, executor: Executor, observer: Observer
) -> dict[str, ScriptDiscovery]:
    """Runs each script of `benchmarks`; what was found, by name. Interrupted if asked to stop.

    A script that calls models is run a second time to count their arithmetic: counting in the first run would falsify it.
    What an earlier search found is taken from there, unless the script's output is to be seen.
    """
    scripts = [b for b in benchmarks if isinstance(b.workload, ModelScript)]
    launcher = ScriptLauncher(options, base, executor, observer)
    earlier = KeptDiscoveries(base.builds, options, executor.machine())
    aside = folder_aside(base)
    found: dict[str, ScriptDiscovery] = {}
    try:
        with stops_on_signals(executor.stop, second_ends=True) as stopped:
            for number, script in enumerate(scripts, start=1):
                kept = None if options.show_output else earlier.of(script)
                if kept is not None and not _lacks_work(kept):
                    found[script.name] = kept
                    continue
                observer.on_discovery(number, len(scripts), script)
                discovery = kept or launcher.run(script, aside, goes_on=number < len(scripts))
                if not stopped() and _lacks_work(discovery):
                    discovery = _with_work(discovery, launcher.run(script, aside / "work", count_work=True))
                refuse_if_stopped(stopped)
                earlier.keep(script, msgspec.structs.replace(discovery, searched=None))
                found[script.name] = discovery
                observer.on_discovered(script, discovery)
        return found
    finally:
        remove_folder(aside)


def _lacks_work(discovery: ScriptDiscovery) -> bool:
    """Whether the arithmetic of its models is still to be counted; a run does not."""
    return any(model.measurable and model.flops is None and not model.flops_note for model in discovery.models)


def refuse_if_stopped(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise Interrupted("stopped while looking for models; nothing has been measured yet")


def _with_work(discovery: ScriptDiscovery, counted: ScriptDiscovery) -> ScriptDiscovery:
    """With the arithmetic that the second run counted."""
    work = {model.identity: model for model in counted.models}

    def counted_in(model: FoundModel) -> FoundModel:
        other = work.get(model.identity)
        if other is None:
            note = "the script did not call it in the second run, which counts operations"
            return msgspec.structs.replace(model, flops_note=note) if model.measurable else model
        return msgspec.structs.replace(model, flops=other.flops, bytes=other.bytes, flops_note=other.flops_note)

    return msgspec.structs.replace(discovery, models=tuple(map(counted_in, discovery.models)))


def folder_aside(base: BaseFolder) -> Path:
    """A new folder for what scripts report before there is a run folder."""
    import tempfile

    try:
        base.builds.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=base.builds, prefix=".discovery-"))
    except OSError as error:
        raise CannotMeasure(f"{base.builds}: {error.strerror or error}; choose another folder with --base") from error


def remove_folder(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
