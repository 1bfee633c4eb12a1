"""Options of MLAgility and turnkey that do not exist here, and what to use; docs/how-to/coming-from-mlagility.md has them too."""

from __future__ import annotations

from collections.abc import Sequence

OPTIONS = {
    "--analyze-only": "list the models with 'bw find SCRIPT'",
    "--groq-compiler-flags": "there is no runtime for Groq's chips",
    "--groq-assembler-flags": "there is no runtime for Groq's chips",
    "--groq-num-chips": "there is no runtime for Groq's chips",
    "--groqview": "there is no runtime for Groq's chips",
    "--ip": "name the machine with --on ssh:HOST",
    "--iterations": "use --stop N",
    "--labels": "select scripts by label: --select KEY=VALUE",
    "--process-isolation": "leave it out: every model and runtime already gets a separate process",
    "--rt-args": "use --threads, --precision, --streams or --env",
    "--runtimes": "use --runtime NAME,NAME",
    "--sequence": "write a build sequence: --sequence-file FILE.py",
    "--use-slurm": "share nodes of Slurm: --on slurm --nodes 8",
}


class MlagilityHints:
    def instead_of_command(self, words: Sequence[str]) -> str | None:
        return None  # its commands mean ours

    def instead_of_option(self, name: str) -> str | None:
        return OPTIONS.get(name)
