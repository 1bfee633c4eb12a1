"""The same plan on every node of a cluster, launch by launch on all nodes at once: what one round met, all nodes met."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from benchwright.agent.machine.runtimes import ask_interpreter
from benchwright.artifacts.probe_folder import ProbeWatch
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import Interrupted, InvalidInput
from benchwright.core.job import Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.run import Launch, Result
from benchwright.core.status import Reason, Status
from benchwright.core.stop_rule import StopRule
from benchwright.doctor.checked_nodes import ClusterCheckup, NodeRounds
from benchwright.doctor.cluster import NodeMeasuring, check_cluster
from benchwright.doctor.cluster_report import read_cluster_json, rendered
from benchwright.doctor.cluster_verdict import ClusterVerdict, judged, spreads_of
from benchwright.executors.base import Allocating
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.observer import Observer
from benchwright.executors.ssh import REFUSED, ClusterExecutor
from benchwright.executors.ssh_host import open_nodes
from benchwright.kinds.registry import by_kind, kind_of
from benchwright.kinds.suite.suites import current_python
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan
from benchwright.results.node_spreads import NodeSpread, keep_spreads
from benchwright.runner.devices import known_system
from benchwright.runner.prebuild import empty_folder, write_file
from benchwright.runner.readiness import not_ready
from benchwright.runner.recorder import add_neighbours, recorded
from benchwright.runner.resolve import resolve
from benchwright.runner.run import site_for
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.checksums import Checksums

SUITE = "system"
_FEWEST_NODES = 3
_TORCH = "torch"  # the install group of the suite
_LAUNCHES, _SECONDS = 3, 3.0  # of each of its benchmarks
_WITHOUT_GPUS = "*.argv.--size=small"  # a product of the size for GPUs would take minutes
Round = Mapping[str, Sequence[Job]]  # node → the jobs of its launch


def cluster_report(
    asked: Options,
    base: BaseFolder,
    observer: Observer,
    *,
    suite: str | None,
    against: str | None,
    format_: str,
    width: int,
) -> tuple[str, bool]:
    """The checkup of all nodes that `asked.on` names, in a format of `doctor.cluster_report`, and whether a node is out."""
    before = None if against is None else read_cluster_json(against)
    verdict = judged(check_nodes(asked, base, observer, suite=suite), before)
    keep_spreads(base.path, _spreads(verdict))
    return rendered(verdict, format_, width), bool(verdict.out)


def _spreads(verdict: ClusterVerdict) -> dict[str, NodeSpread]:
    """By the fingerprints of machines, of makes with enough nodes to tell; nodes that are out do not count."""
    found: dict[str, NodeSpread] = {}
    for make, nodes in verdict.makes.items():
        fine = [each for each in nodes if not each.is_out]
        spreads = [math.expm1(s) for s in spreads_of(fine).values()]
        if len(fine) >= _FEWEST_NODES and spreads and make:
            kept = NodeSpread(spread=max(spreads), nodes=len(fine), measured=verdict.checkup.started)
            found |= {each.node.machine.fingerprint: kept for each in fine if each.node.machine is not None}
    return found


def check_nodes(asked: Options, base: BaseFolder, observer: Observer, *, suite: str | None) -> ClusterCheckup:
    """`suite`: measured on every node, and all-reduce in pairs of nodes; None: neither is."""
    site = replace(site_for(asked, base), system=known_system(asked.system, os.environ))
    base.path.mkdir(parents=True, exist_ok=True)
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    with (
        tempfile.TemporaryDirectory(prefix=".doctor-", dir=base.path, ignore_cleanup_errors=True) as folder,
        open_nodes(asked.on or "", site) as executor,
        stops_on_signals(executor.stop, second_ends=True),
    ):
        runner = NodeRunner(executor, base, Path(folder), observer)
        options, python, without = (None, None, "--quick") if suite is None else _suite(suite, base)
        measuring = NodeMeasuring(runner.measure, runner.run, options, python, without)
        if isinstance(executor, Allocating):
            executor.allocate(folder, observer)
        return check_cluster(executor, measuring, Path(folder), on=asked.on or "", started=started)


def _suite(suite: str, base: BaseFolder) -> tuple[Options | None, str | None, str]:
    """The options that measure it, the interpreter that has torch, and why there is none. Nothing is installed."""
    stop = StopRule(seconds=_SECONDS)
    options = Options(targets=(suite,), base=str(base.path), repeat=_LAUNCHES, stop=stop, no_setup=True)
    paths = resolve(options).options.suite_paths
    if paths is None:
        raise InvalidInput(f"'{suite}' is no suite", where="--suite", remedy=f"leave it out, for the suite {SUITE}")
    own, current = paths.python_of(_TORCH), current_python()
    if os.path.exists(own):
        return options, own, ""
    if _TORCH in ask_interpreter(current, "current").runtimes:
        return replace(options, use_current_env=True), current, ""
    return None, None, f"neither {own} nor {current} has torch; install it with: bw install {suite}"


class NodeRunner:
    """Runs plans on the nodes of `executor`. A node that is lost takes no part in later rounds. Streams go below `folder`."""

    def __init__(self, executor: ClusterExecutor, base: BaseFolder, folder: Path, observer: Observer) -> None:
        self._executor = executor
        self._base = base
        self._folder = folder
        self._observer = observer
        self._lost: dict[str, str] = {}  # node → why

    def measure(self, options: Options, machines: Mapping[str, Machine]) -> NodeRounds:
        """Benchmarks that lack something, or that a node cannot run, are skipped, with the reason."""
        if options.targets == (SUITE,) and not any(machine.accelerators for machine in machines.values()):
            options = replace(options, overrides=(*options.overrides, _WITHOUT_GPUS))
        resolved = resolve(replace(options, base=str(self._base.path)))
        skipped = not_ready(resolved.benchmarks, resolved.options)
        packages = {name: None for kind, same in by_kind(resolved.benchmarks) for name in kind.packages_for(same)}
        probe = ProbeWatch(self._base.artifacts, self._observer.on_trouble, tuple(packages))
        plans = {}
        for node, machine in machines.items():
            plans[node] = make_plan(
                resolved.benchmarks,
                machine,
                resolved.options,
                kind_of,
                folder=str(self._folder / resolved.name / node),
                probe_path=str(probe.folder),
                usable_cores=range(machine.cores),
                not_ready=skipped,
            )
            skipped |= {name: why for name, (_, why) in plans[node].skipped.items() if name not in skipped}
        known = {b.name: b for b in resolved.benchmarks}
        made: dict[str, dict[str, list[Launch]]] = {node: {} for node in plans}
        rounds = max((len(plan.launches) for plan in plans.values()), default=0)
        for number in range(rounds):
            together = {n: p.launches[number] for n, p in plans.items() if number < len(p.launches)}
            for node, launches in self._round(number + 1, rounds, together, known).items():
                made[node].setdefault(together[node][0].benchmark, []).extend(launches)
        results = {n: tuple(_result(known[b], found) for b, found in by.items()) for n, by in made.items()}
        return NodeRounds(results=results, skipped=skipped, lost=dict(self._lost))

    def _round(
        self, number: int, total: int, together: Round, known: Mapping[str, Benchmark]
    ) -> dict[str, list[Launch]]:
        jobs = {node: [_on(node, job) for job in found] for node, found in together.items() if node not in self._lost}
        for job in (job for found in jobs.values() for job in found):
            _prepare(job)
        self._observer.on_launch(number, total, [job for found in jobs.values() for job in found])
        made: dict[str, list[Launch]] = {}
        for node, outcomes in self.run(jobs).items():
            checksums = Checksums(Path(jobs[node][0].stream).parent)
            made[node] = [recorded(job, outcomes[job.id], known, checksums) for job in jobs[node]]
        return made

    def run(self, jobs: Round) -> dict[str, dict[str, Outcome]]:
        """Outcomes by node; none of nodes that cannot be used, which `lost` names from then on."""
        made: dict[str, dict[str, Outcome]] = {}
        waiting = {node: found for node, found in jobs.items() if node not in self._lost}
        while waiting:
            everything = [job for found in waiting.values() for job in found]
            outcomes = {outcome.job: outcome for outcome in self._executor.run(everything, self._observer)}
            if any(outcome.stopped for outcome in outcomes.values()):
                raise Interrupted("interrupted; nothing was kept")
            if isinstance(self._executor, Allocating):
                add_neighbours(everything, self._executor)
            refused = {n for n, found in waiting.items() if (outcomes[found[0].id].detail or "").startswith(REFUSED)}
            for node in waiting.keys() - refused:
                made[node] = {job.id: outcomes[job.id] for job in waiting[node]}
                self._lose(node, made[node])
            if refused == waiting.keys():
                break  # nobody is to blame: nothing can be run
            waiting = {node: waiting[node] for node in refused}
        return made

    def _lose(self, node: str, outcomes: Mapping[str, Outcome]) -> None:
        for outcome in outcomes.values():
            ended = outcome.exit_code is not None or outcome.signal is not None or outcome.timed_out
            if not ended and outcome.detail:
                self._lost.setdefault(node, outcome.detail)


def _on(node: str, job: Job) -> Job:
    return replace(job, id=f"{job.id}.{node}", node=node)


def _prepare(job: Job) -> None:
    Path(job.stream).parent.mkdir(parents=True, exist_ok=True)
    for meeting in (job.barrier, job.launch_end):
        if meeting is not None:
            empty_folder(Path(meeting.folder))
    for path, text in job.files.items():
        write_file(Path(path), text)


def _result(benchmark: Benchmark, launches: Sequence[Launch]) -> Result:
    bad = next((launch for launch in launches if launch.status is not Status.OK), None)
    if bad is None:
        return Result(benchmark=benchmark, status=Status.OK, launches=tuple(launches))
    reason = bad.reason or Reason.CRASHED
    return Result(benchmark=benchmark, status=bad.status, reason=reason, detail=bad.detail, launches=tuple(launches))
