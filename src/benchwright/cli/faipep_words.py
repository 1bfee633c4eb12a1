"""Commands and options of FAI-PEP and the benchmark driver that do not exist here, and what to use."""

from __future__ import annotations

COMMANDS = {
    "benchmark_driver": "use 'bw run --task-name NAME'",
    "benchmark_runner": "use 'bw run FILE --metrics-policy NAME --command-to-execute COMMAND'",
    "harness": "use 'bw run SPECIFICATION --program PATH'",
    "repo_driver": "use 'bw watch'; of a range of commits, 'bw bisect'",
}
OPTIONS = {
    "--set-freq": "set the clocks before the run; --lock-clocks locks a GPU's, 'bw doctor' shows what is not steady",
    "--simple-local-reporter": "use --local-reporter DIR, or 'bw report --format fai-pep -o FILE'",
    "--user-identifier": "use --label user_identifier=NAME",
}


def instead_of_option(name: str) -> str | None:
    """What to do instead; an underscore is as good as a dash."""
    return OPTIONS.get(name.replace("_", "-"))
