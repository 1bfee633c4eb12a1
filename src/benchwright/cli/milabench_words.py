"""Commands and options of milabench that do not exist here, and what to use; docs/how-to/coming-from-milabench.md has them too."""

from __future__ import annotations

COMMANDS = {
    "archive": "pack the folders themselves: tar -C BASE -cf data.tar data cache",
    "cp-template": "use 'bw new NAME'",
    "gather": "use 'bw report RUN... --format csv', or 'bw export RUN... -o samples.csv' for every sample",
    "pip": "use 'bw dev --select NAME -- uv pip ...'",
    "publish": "put results into a shared store: 'bw import --store postgresql://...'",
    "summary": "use 'bw report RUN --format json -o FILE'",
}
OPTIONS = {
    "--capabilities": "write 'nodes' into the system file (--system)",
    "--consolidate": "several runs are pooled without moving their files: bw report A B --score milabench",
    "--filter-failures": "the default score leaves failed benchmarks out and counts them",
    "--fulltrace": "logs are always kept whole: 'bw logs RUN BENCHMARK'",
    "--last": "name the runs; 'bw runs -n 3' lists the newest",
    "--latest": "name the run, or write 'bw report last'",
    "--no-report": "redirect the report to /dev/null; it can be made later",
    "--noterm": "use --quiet; piped output is plain anyway",
    "--publish": "put results into a shared store: 'bw import --store postgresql://...'",
    "--shorttrace": "the package that failed is named, and the whole log is kept",
}


def instead_of_option(name: str) -> str | None:
    """What to do instead; an underscore is as good as a dash."""
    return OPTIONS.get(name.replace("_", "-"))
