"""Commands and options of FAI-PEP and the benchmark driver that do not exist here, and what to use."""

from __future__ import annotations

from collections.abc import Sequence

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


class FaiPepHints:
    """An underscore is as good as a dash."""

    def instead_of_command(self, words: Sequence[str]) -> str | None:
        return COMMANDS.get(words[0].removesuffix(".py"))

    def instead_of_option(self, name: str) -> str | None:
        return OPTIONS.get(name.replace("_", "-"))
