"""The checkup of a cluster: the same measurements on every node at once, then all-reduce in pairs of nodes."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from benchwright.analysis.summary import launch_value
from benchwright.core.conditions import undecided
from benchwright.core.health import Health
from benchwright.core.job import Job, Outcome
from benchwright.core.launches import by_position
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result, culprit, why
from benchwright.doctor.check import noise_between, same_twice
from benchwright.doctor.checked_nodes import CheckedNode, ClusterCheckup, NodePair, NodeRounds
from benchwright.doctor.judge_health import judge_gpus, judge_health
from benchwright.doctor.makes import FAILED, makes_of
from benchwright.executors.ssh import ClusterExecutor
from benchwright.options.table import Options

NOISE = {"process.duration": "wall time", "process.cpu_time": "CPU time"}  # of the program that measures the noise
ALL_REDUCE = "all-reduce"
PARTNERS = 3
NOISE_PAIRS = 8  # of launches: performance/cluster_doctor.py shows what so many find
_RATE = "rate"
_PORTS = range(21_000, 59_000, 2)
_PROGRAM = Path(__file__).with_name("all_reduce_pair.py")
_TIMEOUT_S = 300.0


Measure = Callable[[Options, Mapping[str, Machine]], NodeRounds]
RunJobs = Callable[[Mapping[str, Sequence[Job]]], Mapping[str, Mapping[str, Outcome]]]


class NodeMeasuring(msgspec.Struct, frozen=True):
    """How nodes are measured: `suite` are the options that measure it (None: it is left out), and `python` the interpreter that has
    torch (None: there is none, and the reason stands in `without`)."""

    measure: Measure
    run: RunJobs
    suite: Options | None = None
    python: str | None = None
    without: str = ""


def check_cluster(
    executor: ClusterExecutor, measuring: NodeMeasuring, folder: Path, *, on: str, started: str
) -> ClusterCheckup:
    """Measures on all nodes that can be used; the others are listed with their problem. Nothing is kept in `folder` afterwards."""
    machines, problems = executor.usable()
    machines = {name: machine for name, machine in machines.items() if name not in problems}
    answers = executor.ask_all(list(machines), "health", str(folder))
    healths = {n: msgspec.convert(a["health"], Health) for n, a in answers.items() if not isinstance(a, str)}
    noise = measuring.measure(same_twice(str(folder), NOISE_PAIRS), machines) if machines else NodeRounds(results={})
    lost, skipped = dict(noise.lost), {} if measuring.python is not None else {"suite, all-reduce": measuring.without}
    suite = NodeRounds(results={})
    if measuring.suite is not None and machines:
        suite = measuring.measure(measuring.suite, {n: m for n, m in machines.items() if n not in lost})
        lost, skipped = lost | suite.lost, skipped | suite.skipped
    pairs: list[NodePair] = []
    if measuring.python is not None and len(left := [n for n in machines if n not in lost]) > 1:
        hosts = {node.name: node.ip for node in executor.nodes}
        names = {n: (hosts.get(n, n), machines[n].hostname) for n in left}
        pairs = measure_pairs(names, measuring.run, measuring.python, folder)
        if all(pair.problem for pair in pairs):
            skipped[ALL_REDUCE], pairs = pairs[0].problem or "", []
    makes = makes_of(machines)
    nodes = [
        _checked(n, m, makes[n], healths.get(n), noise.results.get(n, ()), suite.results.get(n, ()), lost.get(n))
        for n, m in machines.items()
    ]
    nodes += [CheckedNode(name=name, make="", problem=problem) for name, problem in problems.items()]
    return ClusterCheckup(on=on, started=started, nodes=_with_pairs(nodes, pairs), pairs=tuple(pairs), skipped=skipped)


def _checked(
    name: str,
    machine: Machine,
    make: str,
    health: Health | None,
    noise: Sequence[Result],
    suite: Sequence[Result],
    problem: str | None,
) -> CheckedNode:
    notes = [] if health is None else [*judge_health(health, machine), *judge_gpus(health.gpus, health.gpu_trouble)]
    counted = [launch for result in noise for launch in result.counted]
    failed = [(result.benchmark.name, x) for result in (*noise, *suite) if (x := culprit(result.launches))]
    notes += [
        Note(kind=f"launches.{bench}{FAILED}", text=f"{bench}: {why(x)}", severity="error") for bench, x in failed
    ]
    if counted and (mark := undecided(counted)) is not None:
        notes.append(msgspec.structs.replace(mark, kind=f"launches.{mark.kind}"))
    costs = {
        words: tuple(m.samples[0] for x in counted if (m := x.measurement(metric)) is not None and m.samples)
        for metric, words in NOISE.items()
    }
    costs |= {result.benchmark.name: _costs(result) for result in suite}
    found = noise_between(noise) if len(noise) == 2 else []
    if problem is None and not counted:
        problem = next((why(x) for _, x in failed), "it measured nothing")
    return CheckedNode(
        name=name,
        make=make,
        machine=machine,
        health=health,
        notes=tuple(notes),
        costs={metric: values for metric, values in costs.items() if values},
        noise=tuple(found),
        problem=problem,
    )


def _costs(result: Result) -> tuple[float, ...]:
    """Seconds an item, of each launch that counts; of several GPUs, the slowest."""
    found = []
    for jobs in by_position(result.counted).values():
        rates = [rate for job in jobs if (rate := _rate(job)) is not None]
        if rates and min(rates) > 0:
            found.append(1 / min(rates))
    return tuple(found)


def _rate(launch: Launch) -> float | None:
    found = launch.measurement(_RATE)
    return launch_value(found, None) if found is not None and found.samples else None


def _with_pairs(nodes: Sequence[CheckedNode], pairs: Sequence[NodePair]) -> tuple[CheckedNode, ...]:
    """The all-reduce of a node is that of its best pair: a node with a slow link has none that is good."""
    found = []
    for node in nodes:
        own = [pair.seconds for pair in pairs if node.name in pair.nodes and pair.seconds]
        best = min(own, key=lambda seconds: sorted(seconds)[len(seconds) // 2], default=None)
        costs = node.costs if best is None else node.costs | {ALL_REDUCE: best}
        found.append(msgspec.structs.replace(node, costs=costs))
    return tuple(found)


def rounds_of_pairs(nodes: Sequence[str], partners: int = PARTNERS) -> list[list[tuple[str, str]]]:
    """Rounds in which every node has a partner, another one each time, until each has had as many (a round-robin tournament)."""
    circle: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    had: dict[str, int] = dict.fromkeys(nodes, 0)
    rounds = []
    for _ in range(len(circle) - 1):
        both = zip(circle[: len(circle) // 2], reversed(circle[len(circle) // 2 :]), strict=True)
        rounds.append([(a, b) for a, b in both if a is not None and b is not None])
        for name in (name for pair in rounds[-1] for name in pair):
            had[name] += 1
        if min(had.values()) >= partners:
            break
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return rounds


def measure_pairs(hosts: Mapping[str, Sequence[str]], run: RunJobs, python: str, folder: Path) -> list[NodePair]:
    """All-reduce between pairs of nodes, all pairs of a round at once. `hosts`: how others may reach a node."""
    found: list[NodePair] = []
    ports = random.SystemRandom()
    for number, pairs in enumerate(rounds_of_pairs(list(hosts))):
        jobs: dict[str, list[Job]] = {}
        for pair in pairs:
            words = (str(ports.choice(_PORTS)), *hosts[pair[0]])
            for rank, node in enumerate(pair):
                jobs[node] = [_pair_job(f"pair{number}.{node}", node, folder, (python, str(rank), *words))]
        outcomes = run(jobs)
        found += [_pair(pair, {node: jobs[node][0] for node in pair}, outcomes) for pair in pairs]
    return found


def _pair_job(name: str, node: str, folder: Path, words: tuple[str, ...]) -> Job:
    python, *rest = words
    return Job(
        id=name,
        benchmark=ALL_REDUCE,
        argv=(python, "-c", _PROGRAM.read_text(encoding="utf-8"), *rest),
        cwd=str(folder),
        stream=str(folder / f"{name}.data"),
        log=str(folder / f"{name}.log"),
        node=node,
        timeout_s=_TIMEOUT_S,
    )


def _pair(pair: tuple[str, str], jobs: Mapping[str, Job], outcomes: Mapping[str, Mapping[str, Outcome]]) -> NodePair:
    logs = {node: _log_of(job) for node, job in jobs.items()}
    for node, job in jobs.items():
        outcome = outcomes.get(node, {}).get(job.id)
        if outcome is None or outcome.exit_code != 0:
            last = next((line.strip() for line in reversed(logs[node].splitlines()) if line.strip()), "")
            detail = last or (outcome.detail if outcome is not None else None) or "it did not end well"
            return NodePair(nodes=pair, problem=f"{node}: {detail}")
    line = next((x for x in logs[pair[0]].splitlines() if x.startswith("all_reduce_s ")), "all_reduce_s")
    return NodePair(nodes=pair, seconds=tuple(map(float, line.split()[1:])))


def _log_of(job: Job) -> str:
    try:
        return gzip.decompress(Path(f"{job.log}.gz").read_bytes()).decode(errors="replace")
    except OSError:
        return ""
