"""The composer: what a user asked for becomes a run. Everything that measures comes through `run`.

The command line, the Python API, the matrix, the search for batch sizes and the doctor differ only in the order they
place: each run is checked, resolved, measured, kept in the store and resumable in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.machine import with_gpus
from benchwright.core.run import Plan, Run
from benchwright.core.system import System
from benchwright.executors.base import Executor, Site
from benchwright.executors.connection import Connection
from benchwright.executors.observer import Observer, usable_cores
from benchwright.executors.registry import open_executor
from benchwright.kinds.base import Resolved
from benchwright.kinds.registry import by_kind, kind_of
from benchwright.options.table import OPTIONS, SUITE, ZOO, Options, refuse_unrelated
from benchwright.plan.placement import make_plan
from benchwright.results.after_run import keep_in_store, save_scaling
from benchwright.runner.growth import SharedWork
from benchwright.runner.measure import measure
from benchwright.runner.readiness import locked_clocks, refused
from benchwright.runner.resolve import names_only_files, resolve, with_default_target
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.delivery import Delivery, adding, deliver
from benchwright.runs.known_runs import find_run
from benchwright.runs.resume import NEWEST, to_resume

if TYPE_CHECKING:
    from benchwright.runner.variation import Variation

_MOST_PHASES = 5  # of a set-up: cloning, installing, preparing; one that never ends is given up


class RunOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One run to make. `given`: the options that the user gave, by their names in the table of options."""

    options: Options
    base: BaseFolder
    given: frozenset[str] = frozenset()
    only: str | None = None  # of all that is resolved, this benchmark alone
    name: str | None = None  # None: after its target
    labels: dict[str, str] = {}  # of the run, beside those of the request
    resume: str | None = None
    deliveries: tuple[Delivery, ...] = ()  # that put the results elsewhere
    resolved: Resolved | None = None  # in place of the options, such as the benchmarks of an earlier run
    variations: tuple[
        Variation, ...
    ] = ()  # control and treatment: each benchmark is measured on both sides; or one of them

    @property
    def may_fan_out(self) -> bool:
        """Whether several nodes may share it: `fan_out` knows."""
        return self.options.nodes != 1 or self.resume is not None


class NodeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A run to make on one node: `order` has all that several nodes share. `folder`: where it is written down who measured
    what. `failed`: what could not be set up, and why."""

    order: RunOrder
    connection: Connection
    folder: str
    failed: dict[str, str]


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """Work that a run shares with others, which is set up. `failed`: what could not be set up, and why. `another`: opens an
    executor of the same node, to clean up after an interrupt."""

    work: SharedWork
    failed: dict[str, str]
    another: Callable[[], AbstractContextManager[Executor]]


def run(
    order: RunOrder,
    observer: Observer | None = None,
    *,
    executor: Executor | None = None,
    share: Share | None = None,
) -> Run:
    """Makes the run and returns it; Interrupted if it was asked to stop, NotReported if a reporter lost its results.

    `observer` hears of problems that do not fail the run. `executor` replaces the one the options name. `share`: there is
    more to measure than what is ordered.
    """
    observer = observer or Observer()
    if order.options.stores:
        from benchwright.results.kept_runs import store_url

        store_url(order.options.store, order.base, os.environ)  # refused now, not after hours of measuring
    resolved = resolve_order(order)
    resolved, failed = set_up(order, resolved, observer) if share is None else (resolved, share.failed)
    for warning in _warnings(order, resolved):
        observer.on_trouble(warning)
    clocks = locked_clocks(order.options.lock_clocks, resolved.options, observer)
    with clocks as clock_labels, _chosen(executor, resolved, order) as chosen:
        made = measure(
            resolved.benchmarks,
            resolved.options,
            base=order.base,
            name=order.name or resolved.name,
            executor=chosen,
            observer=observer,
            resume=order.resume,
            labels=order.options.labels | order.labels | clock_labels,
            search_first=bool(order.options.interleave),
            anyway=order.options.anyway,
            failed=failed,
            another=share.another if share is not None else lambda: _chosen(executor, resolved, order),
            on_ended=adding(order.deliveries),
            shared=None if share is None else share.work,
        )
    for problem in _follow_up(order, made):
        observer.on_trouble(problem)
    return made


def set_up(order: RunOrder, resolved: Resolved, observer: Observer) -> tuple[Resolved, dict[str, str]]:
    """Does what is missing before the benchmarks can run. Returns them as they are then, and why it failed for some."""
    failed: dict[str, str] = {}
    for _ in range(0 if order.options.no_setup else _MOST_PHASES):
        tried = [
            kind.set_up(same, resolved.options, observer)
            for kind, same in by_kind(b for b in resolved.benchmarks if b.enabled and b.name not in failed)
        ]
        if all(reasons is None for reasons in tried):
            break
        for reasons in tried:
            failed |= reasons or {}
        resolved = resolve_order(order)
    return resolved, failed


def plan(order: RunOrder, assume_gpus: int | None = None) -> Plan:
    """Plans a run without doing or writing anything; paths are those of a run that would be called `RUN`.

    `assume_gpus`: as if the machine had that many GPUs. Raises what `run` would if it refuses all of the benchmarks.
    """
    asked = msgspec.structs.replace(order.options, most_scripts=None)  # nothing is run
    resolved = resolve_order(msgspec.structs.replace(order, options=asked))
    options = resolved.options
    if not asked.interleave and all(b.workload.finds_models for b in resolved.benchmarks):
        # Only the models of a script alternate; scripts come one after the other, shuffled or not.
        options = msgspec.structs.replace(options, interleave=False)
    site = Site.of(options, str(order.base.path))
    with open_executor(options.on or "local", site) as executor:
        machine = executor.machine()
        if assume_gpus is not None:
            machine = with_gpus(machine, assume_gpus)
        return make_plan(
            resolved.benchmarks,
            machine,
            options,
            kind_of,
            folder=str(order.base.runs / "RUN"),
            probe_path=None,
            usable_cores=usable_cores(machine),
            not_ready=refused(resolved.benchmarks, options),
        )


def resolve_order(order: RunOrder) -> Resolved:
    """The benchmarks of an order; InvalidInput also for options that apply to none of them."""
    if order.options.names_devices:
        raise InvalidInput(
            "--platform and --devices apply to benchwright run", remedy="name one device with --on, such as adb:SERIAL"
        )
    resolved = _resolved(order)
    if order.only is not None:
        alone = tuple(b for b in resolved.benchmarks if b.name == order.only)
        resolved = msgspec.structs.replace(resolved, benchmarks=alone)
    if resolved.benchmarks:
        sorts = {sort for b in resolved.benchmarks for sort in kind_of(b).option_sorts(b)}
        refuse_unrelated(order.given, sorts)
        _refuse_selection(order, resolved)
    else:
        _refuse_changes(order.given)
    return resolved


def _resolved(order: RunOrder) -> Resolved:
    """The benchmarks that the options name; of an A/B on both sides, in pairs; of one commit, on its side."""
    if order.resolved is not None:
        return order.resolved
    nothing = order.resume is not None
    if not order.variations:
        return resolve(order.options, allow_nothing=nothing)
    from benchwright.runner.variation import paired, unpaired

    asked = with_default_target(order.options, nothing)
    sides = [(side, resolve(side.request(asked), allow_nothing=nothing)) for side in order.variations]
    if len(sides) == 1:
        (variation, resolved), interleave = sides[0], order.options.interleave
        options = msgspec.structs.replace(resolved.options, interleave=bool(interleave))
        return unpaired(variation, msgspec.structs.replace(resolved, options=options))
    return paired(sides)


def _refuse_selection(order: RunOrder, resolved: Resolved) -> None:
    """Of scripts only labels can be selected, and only where there are several to choose from; of suites and zoos, names too."""
    words = order.options.select
    if not words or any({SUITE, ZOO}.intersection(kind_of(b).option_sorts(b)) for b in resolved.benchmarks):
        return
    for word in words:
        if "=" not in word:
            raise InvalidInput(f"'{word}' is not a label", where="--select", remedy="for scripts, write KEY=VALUE")
    if names_only_files(order.options):
        raise InvalidInput("there is nothing to select from", where="--select", remedy="name a folder of scripts")


def _refuse_changes(given: frozenset[str]) -> None:
    """A run that is resumed without its target goes on as it began."""
    for option in (OPTIONS[name] for name in sorted(given)):
        if option.of_target:
            flag = option.flags[-1]
            raise InvalidInput(
                f"{flag} cannot change a run that is resumed without naming its target",
                where="--resume",
                remedy=f"drop {flag}, or name the target again",
            )


def _warnings(order: RunOrder, resolved: Resolved) -> list[str]:
    if not order.options.trust:
        return []
    from benchwright.kinds.models.model_file import trusted_code

    return list(trusted_code(resolved.benchmarks))


def _follow_up(order: RunOrder, made: Run) -> Iterator[str]:
    """Writes what others want of a complete run; yields what went wrong, and what was added where."""
    if any(kind_of(r.benchmark).has_score for r in made.results) and (message := save_scaling(made)):
        yield message
    if order.options.stores:
        yield from keep_in_store(made, order.base.path, order.options.store)
    yield from deliver(made, order.deliveries)


def _chosen(given: Executor | None, resolved: Resolved, order: RunOrder) -> AbstractContextManager[Executor]:
    """`given`, which stays open; else the one that the options mean."""
    return executor_for(_settings_of(resolved, order), order.base) if given is None else nullcontext(given)


def executor_for(options: Options, base: BaseFolder) -> Executor:
    """The executor that `--on` names; without it the nodes of the system file, else this machine."""
    return open_executor(options.on, site_for(options, base))


def site_for(options: Options, base: BaseFolder) -> Site:
    site = msgspec.structs.replace(
        Site.of(options, str(base.path)), nodes=options.nodes, wait_s=options.wait, slurm=options.slurm
    )
    if options.suite_paths is not None:
        return msgspec.structs.replace(site, system=options.suite_paths.system)
    return msgspec.structs.replace(site, named_system=_named_system)


def _named_system() -> System:
    from benchwright.runner.devices import known_system

    return known_system(None, os.environ)


def _settings_of(resolved: Resolved, order: RunOrder) -> Options:
    """Options that say where to run: of the resumed run, unless the new options say so themselves."""
    asked = resolved.options
    if order.resume is None or asked.suite_paths is not None or asked.on is not None:
        return asked
    try:
        if order.resume != NEWEST:
            return find_run(order.base.runs, order.resume).read_plan().options
        return asked if resolved.benchmarks else to_resume(order.base.runs, NEWEST, (), asked)[1].options
    except InvalidInput:
        return asked  # `measure` says what is wrong with it
