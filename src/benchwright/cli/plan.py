"""`benchwright plan`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import click

from benchwright import runner
from benchwright.cli.answer import answer
from benchwright.cli.options import TargetCommand, order_from, target_options
from benchwright.cli.spinner import Working
from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job, readable_job
from benchwright.core.run import Plan
from benchwright.core.secrets import redact, redact_body, redact_text, redact_words
from benchwright.core.status import Reason
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options
from benchwright.plan.turns import started_together

# Variables that select a program's devices, and those of its threads.
_SHOWN_VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HABANA_VISIBLE_MODULES", "ONEAPI_DEVICE_SELECTOR",
)  # fmt: skip
_USUAL = Options()
_MOST_SHOWN = 200  # launches; --json has all


@click.command(cls=TargetCommand, epilog="Example: benchwright plan tasks.cfg --task resnet50 --json")
@target_options("plan")
@click.option(
    "--assume-gpus",
    type=click.IntRange(0, 1024),
    metavar="N",
    help="Plan for a machine with N GPUs. Of a suite, --system FILE describes one in full.",
)
@click.pass_context
def command(ctx: click.Context, /, targets: tuple[str, ...], assume_gpus: int | None, **values: object) -> None:
    """Show what `run` would do with the same arguments: commands, environments, devices. Nothing runs."""
    order = order_from(ctx, values, targets)
    with Working("reading the targets and the machine"):
        if order.options.names_devices:
            order = runner.device_selection.order_for_device(order)
        found = runner.run.plan(order, assume_gpus)
    until = f"at most: --repeat {values['repeat']} ends when that is reached\n" if order.options.up_to else ""
    answer(lambda: plan_body(found), lambda: plan_text(found, order.options) + until)


def plan_body(plan: Plan) -> dict[str, object]:
    """The documented shape: benchmarks with their status and jobs; `order` lists the jobs as they will be launched."""
    jobs = _jobs_by_benchmark(plan)
    return {
        "benchmarks": [
            {
                "name": benchmark.name,
                "source": benchmark.source,
                "status": _status(benchmark, plan),
                "reason": plan.skipped[benchmark.name][1] if benchmark.name in plan.skipped else None,
                "environment": None if benchmark.environment is None else benchmark.environment.name,
                "notes": [*benchmark.notes, *plan.notes.get(benchmark.name, ())],
                "metrics": [
                    {"name": m.name, "pattern": m.pattern, "aggregate": m.aggregate} for m in benchmark.metrics
                ],
                "jobs": [_job_body(job) for job in jobs.get(benchmark.name, ())],
            }
            for benchmark in plan.benchmarks
        ],
        "order": [job.id for together in plan.launches for job in together],
    }


def _status(benchmark: Benchmark, plan: Plan) -> str:
    if benchmark.name not in plan.skipped:
        return "planned"
    return "failed" if benchmark.fault is not None else "skipped"


def _jobs_by_benchmark(plan: Plan) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for together in plan.launches:
        for job in together:
            found.setdefault(job.benchmark, []).append(job)
    return found


def _job_body(job: Job) -> dict[str, object]:
    return {
        "id": job.id,
        "argv": list(_words(job)),
        "shell": job.shell,
        "cwd": job.cwd,
        "env": _shown(job.env),
        "path": list(job.path),
        "devices": list(job.devices),
        "cores": None if job.cores is None else list(job.cores),
        "node": job.node,
        "timeout_s": job.timeout_s,
        "warmup": job.warmup,
        "block": job.block,
        "together": 1 if job.barrier is None else job.barrier.size,
        "turn_s": None if job.barrier is None else job.barrier.turn_s,
        "files": redact_body(job.files),
    }


def plan_text(plan: Plan, options: Options = _USUAL) -> str:
    """For people: each benchmark once, then the order of launches."""
    jobs = _jobs_by_benchmark(plan)
    lines = []
    for benchmark in plan.benchmarks:
        lines.append(f"{benchmark.name}  ({benchmark.source})")
        if benchmark.name in plan.skipped:
            lines += [f"  {line}" for line in _not_planned(benchmark, plan)]
            continue
        lines += [f"  {line}" for line in _described(benchmark, jobs[benchmark.name], options)]
        lines += [f"  note: {text}" for text in (*benchmark.notes, *plan.notes.get(benchmark.name, ()))]
        lines += [f"  reads {m.name}: {m.kind} {m.pattern!r}, {m.aggregate}" for m in benchmark.metrics]
    count = len(plan.launches)
    if count:
        groups = [[job for launch in group for job in launch] for group in started_together(plan.launches)]
        names = [_names(jobs) for jobs in groups]
        order = ", ".join(names if len(names) <= _MOST_SHOWN else [*names[: _MOST_SHOWN - 2], "…", names[-1]])
        lines.append(f"{count} launch{'es' if count > 1 else ''}: {order}")
    return "\n".join(lines) + "\n"


def _not_planned(benchmark: Benchmark, plan: Plan) -> list[str]:
    """Why; and for want of devices only, the command as it is written."""
    reason, why = plan.skipped[benchmark.name]
    lines = [f"{_status(benchmark, plan)}: {why}"]
    if reason is Reason.LACKS_DEVICES and (needed := benchmark.placement.needs_devices):
        words = benchmark.workload.words
        lines.append(redact_text(words[0]) if benchmark.workload.shell else shlex.join(redact_words(words)))
        lines.append(f"to plan it for a machine that has them: --assume-gpus {needed}")
    return lines


def _names(together: list[Job]) -> str:
    names = [readable_job(job.id) for job in together]
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def _described(benchmark: Benchmark, jobs: list[Job], options: Options) -> list[str]:
    """How it is started: one command for each node, since only there do commands differ in more than their files."""
    first = jobs[0]
    launch = [job for job in jobs if job.position == first.position]
    by_node = {job.node: job for job in reversed(launch)}
    lines = []
    for node in dict.fromkeys(job.node for job in launch):
        words = _words(by_node[node])
        command = words[0] if first.shell else shlex.join(words)
        lines.append(command if len(by_node) == 1 else f"{node}: {command}")
        lines += _steps(by_node[node])
    lines.append(f"in {first.cwd}")
    if benchmark.environment is not None:
        lines.append(f"environment {first.env.get('VIRTUAL_ENV') or '(current): nothing to install'}")
    lines += kind_of(benchmark).next_steps(benchmark, options)
    own = {name: value for name, value in first.env.items() if name in benchmark.env or name in _SHOWN_VARIABLES}
    if own:
        given = _shown(own).items()
        lines.append("with " + " ".join(f"{k}={v}" if v is not None else f"{k} removed" for k, v in given))
    if benchmark.environment is not None or any(job.devices for job in launch):
        lines.append(_placed(launch, len(by_node)))
    return lines


def _steps(job: Job) -> list[str]:
    """The lines of a shell script written for the job."""
    if job.argv[0] != "/bin/sh" or job.argv[-1] not in job.files:
        return []
    return [f"  {redact_text(line)}" for line in job.files[job.argv[-1]].splitlines()]


def _placed(launch: list[Job], nodes: int) -> str:
    """`8 jobs together, one on each of the devices 0-7`, `1 job on devices 0 1`, `1 job on the CPU`…"""
    here = [job for job in launch if job.node == launch[0].node]
    devices = list(dict.fromkeys(device for job in here for device in job.devices))
    text = "1 job" if len(here) == 1 else f"{len(here)} jobs together"
    if not devices:
        text += " on the CPU"
    elif len(here) > 1 and len(devices) == len(here):
        text += f", one on each of the devices {_ranges(devices)}"
    else:
        text += f" on device{'s' if len(devices) > 1 else ''} {_ranges(devices)}"
    if nodes > 1:
        return f"{text}, on each of {nodes} nodes"
    return text if launch[0].node == "localhost" else f"{text} of {launch[0].node}"


def _ranges(numbers: list[int]) -> str:
    """`0-3 6`."""
    parts: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1] = parts[-1][0], number
        else:
            parts.append((number, number))
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def _words(job: Job) -> tuple[str, ...]:
    """The job's words, secrets redacted."""
    return tuple(map(redact_text, job.argv)) if job.shell else redact_words(job.argv)


def _shown(env: Mapping[str, str | None]) -> dict[str, str | None]:
    return dict(env) | redact({name: value for name, value in env.items() if value is not None})
