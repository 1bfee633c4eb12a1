"""Commands and options of milabench that do not exist here, and what to use; docs/how-to/coming-from-milabench.md has them too."""

from __future__ import annotations

from collections.abc import Sequence

GROUPS = ("analysis", "data", "slurm", "tools")  # of its newer versions: their commands have no group here
COMMANDS = {
    "archive": "pack the folders themselves: tar -C BASE -cf data.tar data cache",
    "ci": "use 'bw resolve SUITE --json'",
    "cloud": "benchwright rents no machines: list them under 'nodes' in the system file (--system)",
    "container": "write 'docker:' into the system file; 'bw plan SUITE --system FILE' shows the command line",
    "cp-template": "use 'bw new NAME'",
    "dashboard": "use 'bw report RUN --html FILE', or 'bw run --dash long' while it runs",
    "docker": "write 'docker:' into the system file; 'bw plan SUITE --system FILE' shows the command line",
    "dry": "use 'bw plan SUITE'",
    "env": "use 'bw doctor --quick'; 'bw plan SUITE --json' has the variables of each process",
    "gated": "a prepare script that is refused names the page; accept the licence there and set HF_TOKEN",
    "gather": "use 'bw report RUN... --format csv', or 'bw export RUN... -o samples.csv' for every sample",
    "generate": "use 'bw report RUN...'",
    "machine": "use 'bw doctor --quick'",
    "patch": "change the requirements and run 'bw install'; 'bw dev --select NAME -- COMMAND' changes one environment",
    "pip": "use 'bw dev --select NAME -- uv pip ...'",
    "pr": "use 'bw report RUN --format markdown', and post what it prints",
    "prefer-system": "use 'bw run SUITE --use-current-env', which installs nothing",
    "prepare-run": "use 'bw run SUITE', which installs and prepares what is missing",
    "publish": "put results into a shared store: 'bw import --store postgresql://...'",
    "replay": "use 'bw report FOLDER', which also reads run folders of milabench",
    "schedule": "call 'bw run SUITE --on slurm --nodes N' where sbatch is; its profiles load by --slurm-profile NAME",
    "sharedsetup": "name the shared folder: 'dirs: {data: PATH}' in the system file, or BENCHWRIGHT_DATA_DIR=PATH",
    "shell": "use 'bw dev SUITE --select NAME'",
    "slurm-system": "not needed: 'bw run SUITE --on slurm:job=ID' finds the machines of an allocation",
    "sqlsetup": "a store sets itself up: 'bw store migrate --store postgresql://...'",
    "summary": "use 'bw report RUN --format json -o FILE'",
    "system": "list the machines of the allocation under 'nodes' in the system file (--system)",
    "tunnel": "use ssh itself: ssh -L PORT:localhost:PORT HOST",
    "write-report-to-pr": "use 'bw report RUN --format markdown', and post what it prints",
}
OPTIONS = {
    "--capabilities": "write 'nodes' into the system file (--system)",
    "--consolidate": "several runs are pooled without moving their files: bw report A B --score milabench",
    "--dashboard-url": "put results into a shared store: 'bw ingest --store postgresql://...'",
    "--filter-failures": "the default score leaves failed benchmarks out and counts them",
    "--fulltrace": "logs are always kept whole: 'bw logs RUN BENCHMARK'",
    "--github-issues": "'bw report RUN --format markdown' prints what failed and why, to be pasted",
    "--last": "name the runs; 'bw runs -n 3' lists the newest",
    "--latest": "name the run, or write 'bw report last'",
    "--no-report": "redirect the report to /dev/null; it can be made later",
    "--noterm": "use --quiet; piped output is plain anyway",
    "--plugin": "a reporter of your own is a plug-in package: see docs/extend/reporter.md",
    "--publish": "put results into a shared store: 'bw import --store postgresql://...'",
    "--repo-url": "write 'definition: {git: URL, branch: NAME}' into the suite's entry",
    "--runs": "name the runs without it: bw report RUN RUN",
    "--shortrace": "the step that failed is named, and the whole log is kept",
    "--shorttrace": "the package that failed is named, and the whole log is kept",
}


class MilabenchHints:
    """An underscore is as good as a dash."""

    def instead_of_command(self, words: Sequence[str]) -> str | None:
        if words[0] not in GROUPS:
            return COMMANDS.get(words[0].replace("_", "-"))
        if len(words) == 1:
            return f"its commands have no group here: '{words[0]} NAME' is 'bw NAME'"
        return COMMANDS.get(words[1].replace("_", "-"), f"its commands have no group here: use 'bw {words[1]}'")

    def instead_of_option(self, name: str) -> str | None:
        return OPTIONS.get(name.replace("_", "-"))
