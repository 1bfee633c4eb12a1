"""The command that measures both sides of a comparison in one run, by turns."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.metric import KEY_VALUE, MetricSpec
from benchwright.core.provenance import CodeRevision
from benchwright.core.run import Run
from benchwright.core.secrets import redact_words

ALTERNATE = "alternate both in one run, with bw ab or two commands of bw run"  # where nothing can be pasted
_RUN = ("bw", "run", "--repeat", "10")


def alternate(runs: tuple[Run, Run], benchmarks: tuple[Benchmark, Benchmark]) -> str:
    """As a command that can be pasted: of two commands, or of one at two commits."""
    works = [b.workload for b in benchmarks if type(b.workload) is Command and b.kind == Command.usual_kind]
    if len(works) < 2:
        return ALTERNATE
    before, after = works
    if before == after and not _commits(*(run.revisions for run in runs)):
        return ALTERNATE
    if any(redact_words(work.argv) != work.argv for work in works):
        return ALTERNATE
    options = [*(["--shell"] if after.shell else []), *_metric_options(benchmarks[1].metrics)]
    words: Sequence[str]
    if before.argv != after.argv and before.shell == after.shell:
        lines = (work.argv[0] if work.shell else shlex.join(work.argv) for work in works)
        words = (*_RUN, *options, *(word for line in lines for word in ("-c", line)))
    elif before == after and (sides := _commits(*(run.revisions for run in runs))):
        words = ("bw", "ab", *sides, *options, "--", *after.argv)
    else:
        return ALTERNATE
    return f"alternate both in one run: {shlex.join(words)}"


def _commits(before: Sequence[CodeRevision], after: Sequence[CodeRevision]) -> list[str]:
    """Options for the commits of the folder both ran in; none if they are the same, or the control was never committed."""
    if not before or not after or before[0].root != after[0].root or before[0].modified:
        return []
    if before[0].subject != after[0].subject or before[0].files or before[0].packages:
        return []
    control, treatment = (each[0].commit for each in (before, after))
    if after[0].modified:
        return ["--control", control[:10]]
    return ["--control", control[:10], "--treatment", treatment[:10]] if control != treatment else []


def _metric_options(metrics: Sequence[MetricSpec]) -> list[str]:
    found = []
    for metric in metrics:
        direction = None if metric.direction is None else metric.direction.value
        about = ",".join(filter(None, (metric.unit, direction, metric.aggregate)))
        kind = "kv" if metric.kind == KEY_VALUE else metric.kind
        found += ["--metric", f"{metric.name}[{about}]={kind}:{metric.pattern}"]
    return found
