"""`benchwright plan`."""

from __future__ import annotations

import json
import os
import shlex
from typing import Any

import click

from benchwright.cli.targets import TargetCommand, option, request_of, target_options
from benchwright.domain.run import Plan


@click.command(cls=TargetCommand, epilog="Example: benchwright plan tasks.cfg --task resnet50 --json")
@target_options
@option("Results", "--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, base: str | None, **values: Any) -> None:
    """Show what `run` would do with the same arguments: commands, environments, devices. Nothing is run or written."""
    from benchwright.executors.local import LocalExecutor
    from benchwright.pipeline import plan_only, resolve
    from benchwright.stores.base_folder import BaseFolder

    resolved = resolve(request_of(ctx, values))
    with LocalExecutor() as executor:
        plan = plan_only(resolved.benchmarks, resolved.settings, BaseFolder.choose(base, os.environ), executor)
    click.echo(json.dumps(plan_body(plan), indent=1) if as_json else plan_text(plan), nl=as_json)


def plan_body(plan: Plan) -> dict[str, Any]:
    """The documented shape: benchmarks with their status and jobs; `order` lists the jobs as they will be launched."""
    jobs = [job for together in plan.launches for job in together]
    return {
        "benchmarks": [
            {
                "name": benchmark.name,
                "source": benchmark.source,
                "status": "skipped" if benchmark.name in plan.skipped else "planned",
                "reason": plan.skipped[benchmark.name][1] if benchmark.name in plan.skipped else None,
                "metrics": [
                    {"name": m.name, "pattern": m.pattern, "aggregate": m.aggregate} for m in benchmark.metrics
                ],
                "jobs": [
                    {
                        "id": job.id,
                        "argv": list(job.argv),
                        "shell": job.shell,
                        "cwd": job.cwd,
                        "env": job.env,
                        "devices": list(job.devices),
                        "cores": None if job.cores is None else list(job.cores),
                        "node": job.node,
                        "timeout_s": job.timeout_s,
                        "warmup": job.warmup,
                        "block": job.block,
                    }
                    for job in jobs
                    if job.benchmark == benchmark.name
                ],
            }
            for benchmark in plan.benchmarks
        ],
        "order": [job.id for job in jobs],
    }


def plan_text(plan: Plan) -> str:
    """For people: each benchmark once, then the order of launches."""
    lines = []
    for benchmark in plan.benchmarks:
        jobs = [job for together in plan.launches for job in together if job.benchmark == benchmark.name]
        lines.append(f"{benchmark.name}  ({benchmark.source})")
        if benchmark.name in plan.skipped:
            lines.append(f"  skipped: {plan.skipped[benchmark.name][1]}")
            continue
        first = jobs[0]
        lines.append("  " + (first.argv[0] if first.shell else shlex.join(first.argv)))
        lines.append(f"  in {first.cwd}")
        if first.env:
            lines.append(
                "  with " + " ".join(f"{k}={v}" if v is not None else f"{k} removed" for k, v in first.env.items())
            )
        lines += [f"  note: {text}" for text in benchmark.notes]
        lines += [f"  reads {m.name}: {m.kind.value} {m.pattern!r}, {m.aggregate}" for m in benchmark.metrics]
    count = len(plan.launches)
    if count:
        order = " ".join(
            jobs[0].id if len(jobs) == 1 else f"[{' '.join(j.id for j in jobs)}]" for jobs in plan.launches
        )
        lines.append(f"{count} launch{'es' if count > 1 else ''}: {order}")
    return "\n".join(lines) + "\n"
