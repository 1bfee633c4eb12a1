"""Everything about a run that the report leaves out: its launches one by one, and what it ran on and with."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import readable_job
from benchwright.core.provenance import CodeRevision
from benchwright.core.quantities import format_bytes, format_duration
from benchwright.core.run import Result, Run
from benchwright.core.summary import Summary
from benchwright.report.base import Report
from benchwright.report.tables.percentiles import percentiles_table
from benchwright.report.text.commands import command_text
from benchwright.report.text.layout import titled_lines, wrapped
from benchwright.report.text.metrics import MEMORY, efficiency_lines
from benchwright.report.text.numbers import format_value
from benchwright.report.text.one_line import clip, one_line, packed

_MOST_PACKAGES = 12
_MOST_COMMAND_LINES = 8
# Named first where they are there: what most often explains a difference.
_TELLING = ("torch", "numpy", "transformers", "onnxruntime", "jax", "tensorflow", "openvino", "triton", "accelerate")


def details(report: Report, annotation: str | None = None) -> str:
    """Text that follows the screen report."""
    lines = ["", *_about(report.run, annotation, report.width)]
    for number, result in enumerate(report.run.results):
        lines += _launches(number, result, report)
        for text in report.added.details.get(number, ()):
            lines += wrapped(text, report.width, "   ")
    for table in (table for section in report.added.sections for table in section.tables[1:]):
        lines += ["", *titled_lines(table, report.width, every=True)]
    lines += ["", *wrapped(f"{MEMORY}.", report.width, " ")]
    lines += _machine(report.run, report.width) + _packages(report.run, report.width)
    return "\n".join(lines) + "\n"


def _about(run: Run, annotation: str | None, width: int) -> list[str]:
    labels = ", ".join(f"{key}={value}" for key, value in run.labels.items())
    texts = {
        "run": run.id,
        "started": run.started + (f", ended {run.ended}" if run.ended else ", not ended"),
        "labels": labels,
        "annotation": annotation,
    }
    lines = [clip(f" {what}: {text}", width) for what, text in texts.items() if text]
    return lines + [line for revision in run.revisions for line in wrapped(_revision(revision), width, " ")]


def _revision(revision: CodeRevision) -> str:
    """`revision of the working folder: main 1a2b3c4d5e+ (modified) of 2026-11-16 14:03 UTC in /home/me/project`."""
    state = {True: " (modified)", False: "", None: " (perhaps modified)"}[revision.modified]
    day = f" of {revision.time[:16].replace('T', ' ')} UTC" if revision.time else ""
    return (
        f"revision of {one_line(revision.subject)}: {one_line(revision.words)}{state}{day} in {one_line(revision.root)}"
    )


def _launches(number: int, result: Result, report: Report) -> list[str]:
    lines = [
        "",
        *_command(result.benchmark, report),
        clip(f"   in {result.benchmark.workload.cwd}", report.width),
        *_checks(result, report.width),
    ]
    for line in efficiency_lines(report.efficiency.get(result.benchmark.name, ())):
        lines += textwrap.wrap(line, report.width, initial_indent="   ", subsequent_indent="     ")
    reported = [s for s in report.summaries.get(result.benchmark.name, ()) if s.source in ("log", "loop")]
    shown = list({s.metric: s for s in reported}.values())[:2]  # jobs that ran together each have theirs
    if number in report.added.headline:
        shown = [s for s in reported if s.metric in report.added.headline[number]][:1]
    for launch in result.launches:
        parts = [
            f"{readable_job(launch.job):<28}",
            launch.status.value if launch.reason is None else launch.reason.value,
        ]
        if launch.duration_s is not None:
            parts.append(format_duration(launch.duration_s))
        for summary in shown:
            found = launch.measurement(summary.metric)
            if found is not None and found.samples:
                value = found.value
                if value is None:
                    value = report.aggregate(found.aggregate, found.samples, report.workers)
                parts.append(f"{summary.metric} {format_value(value, summary.unit)}")
        if launch.warmup:
            parts.append("(warm-up, not counted)")
        elif not launch.reports:
            parts.append("(reports nothing, not counted)")
        lines += packed(parts, report.width, "   ", "     ")  # a number is never cut: half of one is another number
    return lines + _percentiles(report.summaries.get(result.benchmark.name, ()), report.width)


def _command(benchmark: Benchmark, report: Report) -> list[str]:
    return textwrap.wrap(
        one_line(f" {benchmark.name}: {command_text(benchmark, report)}"),
        report.width,
        subsequent_indent="     ",
        break_on_hyphens=False,
        max_lines=_MOST_COMMAND_LINES,
        placeholder=" …",
    )


def _checks(result: Result, width: int) -> list[str]:
    """Findings of every validation layer, including passes."""
    found = [f"{c.layer} {c.status.value.replace('_', ' ')}: {one_line(c.explanation)}" for c in result.checks]
    return [
        line
        for text in found
        for line in textwrap.wrap(text, width, initial_indent="   check ", subsequent_indent="     ")
    ]


def _percentiles(summaries: Sequence[Summary], width: int) -> list[str]:
    table = percentiles_table(summaries)
    lines = [text for note in table.notes for text in wrapped(note, width, "   ")] if table.rows else []
    for row in table.rows:
        metric, samples, words = (cell.text for cell in row.cells)
        lines += wrapped(f"{metric}, {samples} samples: {words}", width, "   ")
    return lines


def _machine(run: Run, width: int) -> list[str]:
    machine = run.machine
    text = f" machine: {machine.hostname}, {machine.cpu}, {machine.cores} of {machine.cores_total} cores, {format_bytes(machine.memory_bytes)}, {machine.system} {machine.kernel}"
    lines = ["", *textwrap.wrap(text, width, subsequent_indent="   ")]
    for gpu in machine.accelerators:
        memory = "" if gpu.memory_bytes is None else f", {format_bytes(gpu.memory_bytes)}"
        lines.append(clip(f"   GPU {gpu.index}: {gpu.name}{memory}, driver {gpu.driver or 'unknown'}", width))
    return lines


def _packages(run: Run, width: int) -> list[str]:
    lines = []
    for executable, packages in run.packages.items():
        order = sorted(packages, key=lambda name: (name not in _TELLING, name))
        named = [f"{name} {packages[name]}" for name in order[:_MOST_PACKAGES]]
        more = f" and {len(packages) - len(named)} more (packages.json)" if len(packages) > len(named) else ""
        lines += textwrap.wrap(f" packages of {executable}: {', '.join(named)}{more}", width, subsequent_indent="   ")
    return lines
