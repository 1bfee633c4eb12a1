"""Before a run: clones, installs and prepares what is missing, one phase at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.system import SuitePaths
from benchwright.environments.groups import InstallGroup
from benchwright.executors.observer import Observer
from benchwright.kinds.suite.plan.machine_facts import machine_facts
from benchwright.kinds.suite.plan.planner import lacks_capability
from benchwright.kinds.suite.read.suite import suite_file
from benchwright.kinds.suite.setup.install import InstallOptions, bring_about, clone_definitions, install_groups
from benchwright.kinds.suite.setup.prepare import PrepareOptions, prepare_benchmarks
from benchwright.kinds.suite.setup.readiness import INSTALL, PREPARE, lacks
from benchwright.kinds.suite.suites import read_benchmarks
from benchwright.options.table import Options

Reasons = dict[str, str]  # of benchmarks that cannot be set up


def runnable_here(benchmarks: Sequence[Benchmark], paths: SuitePaths) -> list[Benchmark]:
    """Without the benchmarks that this machine skips, for which nothing is downloaded."""
    if not benchmarks:
        return []

    facts = machine_facts(read_machine(), paths.system)
    return [b for b in benchmarks if lacks_capability(b, facts) is None]


def clone_missing(benchmarks: Sequence[Benchmark], observer: Observer) -> Reasons | None:
    """Gets definitions that live in git repositories. None: all are here."""
    missing = [b for b in benchmarks if b.folder is not None and b.folder.git and not os.path.isdir(b.folder.path)]
    failed: Reasons = {}
    for benchmark in missing:
        try:
            clone_definitions([benchmark], anew=False, observer=observer)
        except CannotMeasure as error:
            failed[benchmark.name] = str(error)
    return failed if missing else None


def set_up_missing(
    benchmarks: Sequence[Benchmark], paths: SuitePaths, suite: Options, observer: Observer
) -> Reasons | None:
    """Installs what is not installed; once all is, prepares what is not prepared. None: nothing was missing.

    Raises Interrupted if asked to stop: what is finished stays, and the same command goes on from there.
    """
    lacking = lacks(benchmarks, paths)
    if todo := [lack.benchmark for lack in lacking if lack.phase == INSTALL]:
        failed = _install(todo, paths, suite, observer)
        still = {lack.benchmark.name for lack in lacks(todo, paths) if lack.phase == INSTALL}
        return {name: why for name, why in failed.items() if name in still}  # others run in the previous environment
    if todo := [lack.benchmark for lack in lacking if lack.phase == PREPARE]:
        done = prepare_benchmarks(todo, paths, PrepareOptions(run=suite), observer)
        return {x.name: _failure_text("prepare failed", x.detail, x.log) for x in done if x.status == "failed"}
    return None


def _install(benchmarks: Sequence[Benchmark], paths: SuitePaths, suite: Options, observer: Observer) -> Reasons:
    targets = list(dict.fromkeys(file for b in benchmarks if (file := suite_file(b)) is not None))
    everything = read_benchmarks(targets, msgspec.structs.replace(suite, select=(), exclude=()))
    members: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks:
        assert benchmark.environment is not None  # only what has one can miss it
        members.setdefault(benchmark.environment.name, []).append(benchmark)
    failed: Reasons = {}
    groups: list[InstallGroup] = []
    for same in members.values():
        try:
            groups += install_groups(same, everything, paths, targets, InstallOptions())
        except InvalidInput as error:
            failed |= {b.name: f"cannot be installed: {error}" for b in same}
    for x in bring_about(groups, paths, InstallOptions(), observer):
        if x.status == "failed":
            failed |= {b.name: _failure_text("install failed", x.detail, x.log) for b in members[x.name]}
    return failed


def _failure_text(what: str, why: str | None, log: str | None) -> str:
    return f"{what}: {why or 'no reason known'}" + (f"; its log: {log}" if log else "")
