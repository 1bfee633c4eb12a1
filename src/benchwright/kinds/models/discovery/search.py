"""The scripts of a run whose models are not known yet: searched one after another while the run is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from benchwright.core.benchmark import REVISION, Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.model import ScriptDiscovery
from benchwright.core.status import Reason
from benchwright.executors.base import Executor
from benchwright.executors.observer import Observer
from benchwright.kinds.models.batches import with_batches_known
from benchwright.kinds.models.benchmarks import benchmarks_of, with_idle_parameters_noted
from benchwright.kinds.models.discovery.job import ScriptLauncher, folder_aside, refuse_if_stopped, remove_folder
from benchwright.kinds.models.discovery.kept import KeptDiscoveries, all_kept_in, keep_in, kept_in
from benchwright.kinds.names import with_unique_names
from benchwright.kinds.sweep import named_point
from benchwright.options.table import Options
from benchwright.runs.base_folder import BaseFolder

_LOST = (Reason.AGENT_LOST, Reason.DISK_FULL)


class ModelSearch:
    """Replaces open scripts among the benchmarks of a run by the benchmarks of their models.

    The models of a script are kept in `folder`, once there is one, and not searched again. `together`: all scripts are
    searched before anything is measured, since their models alternate with each other.
    """

    def __init__(
        self, options: Options, base: BaseFolder, executor: Executor, observer: Observer, *, together: bool = False
    ) -> None:
        self._options = options
        self._launcher = ScriptLauncher(options, base, executor, observer)
        self._earlier = KeptDiscoveries(base.builds, options, executor.machine())
        self._base = base
        self._observer = observer
        self._together = together
        self.lost: dict[
            str, tuple[Reason, str]
        ] = {}  # scripts whose search did not end, and why: left to a resumed run
        self._folder: Path | None = None  # of the run
        self._aside: Path | None = None  # before there is one

    def move_to(self, folder: Path) -> None:
        """From now on, everything goes to this folder of the run."""
        self._folder = folder
        if self._aside is not None and not folder.exists():
            self._aside.rename(folder)
            self._aside = None
        folder.mkdir(exist_ok=True)

    def close(self) -> None:
        if self._aside is not None:
            remove_folder(self._aside)

    def next(
        self, benchmarks: Sequence[Benchmark], asked: int, stopped: Callable[[], bool]
    ) -> tuple[Benchmark, ...] | None:
        """`benchmarks`, with the next script replaced by its models; None if there is none, or it was asked to stop meanwhile.

        `asked`: how many scripts the run began with. A script whose search was lost stays as it is.
        """
        scripts = [b for b in benchmarks if b.is_open and b.name not in self.lost]
        if not scripts:
            return None
        unit = [b for b in scripts if self._together or _unit_of(b) == _unit_of(scripts[0])]
        found: dict[str, ScriptDiscovery] = {}
        for number, script in enumerate(unit, start=asked - len(scripts) + 1):
            discovery = self._found(script, number, asked, stopped)
            if discovery is None:
                return None
            found[script.name] = discovery
            if discovery.reason in _LOST:
                self.lost |= dict.fromkeys((b.name for b in unit), (discovery.reason, discovery.trouble or ""))
                return tuple(benchmarks)
        several = asked > len(unit) or len(benchmarks) > len(scripts)
        models = self._models(unit, found, alternate_alone=several)
        return _in_place_of(benchmarks, unit, models)

    def _found(self, script: Benchmark, number: int, total: int, stopped: Callable[[], bool]) -> ScriptDiscovery | None:
        """As kept in the run; else as an earlier search found it; else by running the script. None: asked to stop."""
        if self._folder is not None and (kept := kept_in(self._folder, script)) is not None:
            return kept
        folder = self._place()
        discovery = self._earlier.of(script)
        if discovery is None:
            self._observer.on_discovery(number, total, script)
            discovery = self._launcher.run(script, folder, goes_on=number < total)
            if self._folder is None:
                refuse_if_stopped(stopped)
            elif stopped():
                return None
            self._observer.on_discovered(script, discovery)
            if discovery.reason in _LOST:
                return discovery
            self._earlier.keep(script, discovery)
        keep_in(folder, script, discovery)
        return discovery

    def forget(self, script: Benchmark) -> None:
        """The next run searches it again."""
        self._earlier.forget(script)

    def known_before(self, folder: Path) -> int:
        """How many scripts of a run were not run, since an earlier search had found their models."""
        return sum(found.searched is not None for found in all_kept_in(folder))

    def _place(self) -> Path:
        if self._folder is not None:
            return self._folder
        if self._aside is None:
            self._aside = folder_aside(self._base)
        return self._aside

    def _models(
        self, unit: Sequence[Benchmark], found: dict[str, ScriptDiscovery], *, alternate_alone: bool
    ) -> dict[str, list[Benchmark]]:
        """By script. `alternate_alone`: its models alternate with each other, not with what else the run measures."""
        found = with_batches_known(unit, found, self._options.items)
        pair = "" if self._together or not alternate_alone else _unit_name(unit[0])
        made = {}
        for script in with_idle_parameters_noted(unit, found):
            try:
                models = _models_of(script, found[script.name], replace(self._options, base=str(self._base.path)))
            except InvalidInput as error:
                if self._folder is None:
                    raise
                models = [replace(script, fault=error.what)]  # one wrong script does not end a run of many
            made[script.name] = [b if b.pair else replace(b, pair=pair) for b in models]
        return made


def _unit_of(script: Benchmark) -> str:
    """The group that is searched together: a script's points of a sweep, and all sides of an A/B."""
    return "" if script.side is not None else script.source


def _unit_name(script: Benchmark) -> str:
    return script.name.removesuffix(named_point(script.parameters))


def _models_of(script: Benchmark, discovery: ScriptDiscovery, options: Options) -> list[Benchmark]:
    """Of a script that is one side of an A/B, each model is a separate pair."""
    if script.side is None:
        return benchmarks_of(script, discovery, options)
    alone = replace(script, name=script.pair, pair="")
    found = benchmarks_of(alone, discovery, options)
    return [b.on_side(script.side, script.labels[REVISION]) for b in found]


def _in_place_of(
    benchmarks: Sequence[Benchmark], unit: Sequence[Benchmark], models: dict[str, list[Benchmark]]
) -> tuple[Benchmark, ...]:
    """With the models where their script was. Only their names may change: others may have been measured."""
    scripts = {script.name for script in unit}
    others = [b for b in benchmarks if b.name not in scripts]
    ordered = [*others, *(b for script in unit for b in models[script.name])]
    named = iter(with_unique_names(ordered)[len(others) :])
    by_script = {script.name: [next(named) for _ in models[script.name]] for script in unit}
    return tuple(each for b in benchmarks for each in by_script.get(b.name, [b]))
