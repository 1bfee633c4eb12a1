"""A run that grows: the models of its scripts are found while it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from benchwright.core.benchmark import Benchmark
from benchwright.core.note import Note
from benchwright.core.run import Launch, Plan
from benchwright.core.status import Reason
from benchwright.executors.base import Executor
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.observer import Observer
from benchwright.options.table import Options
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.logs import DISCOVERY
from benchwright.runs.stored_plan import StoredPlan

if TYPE_CHECKING:
    from benchwright.kinds.models.discovery.search import ModelSearch


class SharedWork(Protocol):
    """Benchmarks of a target that several runs share: each takes a part whenever it has ended one."""

    @property
    def everything(self) -> tuple[Benchmark, ...]:
        """All that the runs share."""
        ...

    def take(self, stopped: Callable[[], bool]) -> tuple[Benchmark, ...]:
        """The next part; empty if there is no more, or it was asked to stop."""
        ...

    def end(self, run: str, results: Sequence[str], *, lost: bool) -> None:
        """The part that was taken last is measured; `results`: what its benchmarks are called in the run. `lost`: its node
        was, and somebody else must measure it."""
        ...


class PendingScripts:
    """The scripts of a run whose models are not known yet; most runs have none. Nothing is measured during a search."""

    def __init__(self, base: BaseFolder, executor: Executor, observer: Observer, *, together: bool) -> None:
        self._base = base
        self._executor = executor
        self._observer = observer
        self._together = together
        self._search: ModelSearch | None = None

    def first(self, asked: Sequence[Benchmark], options: Options) -> tuple[Benchmark, ...]:
        """`asked`, with the first script replaced by its models. There is no run yet: what is wrong with it can be refused."""
        if not (scripts := _open(asked)):
            return tuple(asked)
        search = self._searching(options)
        with stops_on_signals(self._executor.stop, second_ends=True) as stopped:
            found = search.next(asked, scripts, stopped)
        assert found is not None  # it raises Interrupted
        return found

    def keep_in(self, run_folder: Path) -> None:
        """Makes the models found so far, and later ones, part of the run."""
        if self._search is not None:
            self._search.move_to(run_folder / DISCOVERY)

    def next(self, stored: StoredPlan, run_folder: Path, stopped: Callable[[], bool]) -> tuple[Benchmark, ...] | None:
        """The run's benchmarks, with one more script replaced by its models; None: there is none left, or it was asked to stop."""
        if not _open(stored.benchmarks):
            return None
        if self._search is None:  # of a run that is resumed
            self._searching(stored.options).move_to(run_folder / DISCOVERY)
        return self._searching(stored.options).next(stored.benchmarks, _open(stored.asked), stopped)

    @property
    def lost(self) -> dict[str, tuple[Reason, str]]:
        """Scripts whose search did not end, and why: a resumed run searches them again."""
        return self._search.lost if self._search is not None else {}

    def notes(self, run_folder: Path, stored: StoredPlan, launches: Mapping[str, Sequence[Launch]]) -> list[Note]:
        """Notes about the searches for a reader of the results. Forgets a search that proved wrong."""
        if self._search is None:
            return []
        missed = {b.workload.script for b in stored.benchmarks if any(map(_was_missed, launches.get(b.name, ())))}
        for script in stored.asked:
            if script.is_open and script.workload.script in missed:
                self._search.forget(script)
        if not (count := self._search.known_before(run_folder / DISCOVERY)):
            return []
        what = "the script was" if count == 1 else f"{count} scripts were"
        text = f"{what} not searched for models: an earlier run had found them, and nothing has changed since"
        return [Note(text=text, severity="info", remedy="--rebuild always searches again")]

    def close(self) -> None:
        if self._search is not None:
            self._search.close()

    def _searching(self, options: Options) -> ModelSearch:
        if self._search is None:
            from benchwright.kinds.models.discovery.search import ModelSearch

            self._search = ModelSearch(options, self._base, self._executor, self._observer, together=self._together)
        return self._search


def _was_missed(launch: Launch) -> bool:
    """Whether its script no longer calls the model that was found in it, because of a file that it reads, for instance."""
    failure = launch.facts.get("failure")
    return isinstance(failure, dict) and failure.get("kind") == "not_found"


def _open(benchmarks: Sequence[Benchmark]) -> int:
    return sum(b.is_open for b in benchmarks)


def scripts_left(stored: StoredPlan) -> tuple[int, int]:
    """How many scripts are still to be searched, and how many the run began with."""
    return _open(stored.benchmarks), _open(stored.asked)


def with_more(plan: Plan, more: Plan) -> Plan:
    """`plan`, with the launches of `more` after its own."""
    after = len(plan.launches)
    launches = (tuple(replace(job, position=job.position + after) for job in jobs) for jobs in more.launches)
    return replace(
        plan,
        benchmarks=(*plan.benchmarks, *more.benchmarks),
        launches=(*plan.launches, *launches),
        skipped=plan.skipped | more.skipped,
        notes=plan.notes | more.notes,
    )
