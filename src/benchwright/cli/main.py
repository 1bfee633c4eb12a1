"""`benchwright`, alias `bw`: finds the command, and turns errors into messages and exit codes."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import sys

import click

from benchwright.cli import milabench_words
from benchwright.cli.terminal import fill_closed, forget_stdout
from benchwright.core.errors import BenchwrightError, did_you_mean
from benchwright.core.files.stored_file import read_stored
from benchwright.version import __version__

# name → module below benchwright.cli that holds `command`, and what `--help` says about it.
COMMANDS = {
    "run": ("run", "Measure a suite, a command, a task file, a script or its models."),
    "ab": ("regressions.ab", "Compare two revisions of a target, launched in turn, with a verdict."),
    "explain": ("regressions.explain", "Say why a treatment is slower: work or waiting, operators, memory."),
    "bisect": ("regressions.bisect", "Find the commit that changed a metric."),
    "find": ("models.find", "List the models in scripts, without measuring them."),
    "corpora": ("models.corpora", "List the model scripts that come with benchwright."),
    "plan": ("plan", "Show what would run, without running it."),
    "install": ("suites.install", "Create a suite's environments."),
    "prepare": ("suites.prepare", "Download a suite's data, so that run needs no network."),
    "resolve": ("suites.resolve", "Print a suite fully resolved."),
    "validate": ("validate", "Check suites, task files, specs and scripts for errors."),
    "matrix": ("suites.matrix", "Run a suite once for each combination of options."),
    "pin": ("suites.pin", "Pin the package versions of a suite."),
    "dev": ("suites.dev", "Open a shell in a benchmark's environment."),
    "new": ("suites.new", "Create a benchmark from a template."),
    "runs": ("results.runs", "List, delete, prune and annotate runs."),
    "show": ("results.show", "Show everything about a run."),
    "plot": ("results.plot", "Draw a run or a benchmark's history in the terminal."),
    "logs": ("results.logs", "Show a program's output."),
    "report": ("results.report", "Report runs as text, HTML, Markdown, CSV or JSON."),
    "export": ("results.export", "Export raw samples as JSON, CSV or Parquet."),
    "compare": ("results.compare", "Compare runs, with confidence intervals and verdicts."),
    "baseline": ("results.baseline", "Name runs to compare with."),
    "diff-env": ("results.diff_env", "Show how the machine and packages of two runs differ."),
    "history": ("regressions.history", "Show where a benchmark became slower or faster, over its runs."),
    "watch": ("regressions.watch", "Measure each new commit of a repository, and report regressions."),
    "ingest": ("store.ingest", "Add run folders to the store."),
    "import": ("store.import_results", "Import results of other tools."),
    "store": ("store.store", "Check, rebuild and migrate the store."),
    "cache": ("cache", "List, verify and clean cached artifacts and builds."),
    "devices": ("devices", "List devices to measure on, and their health."),
    "nodes": ("suites.nodes", "Show or remove what was sent to other machines."),
    "doctor": ("doctor", "Check this machine: hardware, runtimes, noise."),
    "completion": ("completion", "Print a shell completion script."),
}
# What users of other tools type, with what it means here; not listed.
_MEANT = {
    "models": ["corpora"],
    "benchmark": ["run"],
    "multirun": ["matrix"],
    "list": ["runs"],
    "ls": ["runs"],
    "delete": ["runs", "delete"],
    "rm": ["runs", "delete"],
    "prune": ["runs", "prune"],
    "annotate": ["runs", "annotate"],
    "version": ["--version"],
}
_TARGETS = (".py", ".yaml", ".yml", ".cfg", ".onnx", ".pt2")

START = """\
Benchwright measures machine-learning software honestly. Five ways to a first result:

  benchwright run --repeat 6 -- python train.py
      a command's run time with its confidence interval, and its memory use
  benchwright run --repeat 8 -c 'python old.py' -c 'python new.py'
      which of two commands is faster, as a verdict
  benchwright run --metric 'speed=Speed: {number} samples/sec' -- python train.py
      a number from its log
  benchwright run model.py --runtime torch-eager,onnxruntime
      the models in a script, on several runtimes
  benchwright new mybench && benchwright run mybench
      your own benchmark, as part of a suite

In a training loop: `for batch in benchprobe.iterate("train", loader): …`
Every command: benchwright --help
"""


class LazyGroup(click.Group):
    """Loads a command's module only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"benchwright.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"no such command: '{args[0]}'; {_remedy(args)}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, meant(args))

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if instead := _instead_of(error.option_name):
                raise click.UsageError(f"no such option: {error.option_name}; {instead}", error.ctx) from None
            raise


def meant(args: list[str]) -> list[str]:
    """The words with a command of ours in front: `help X` is `X --help`, `resume X` is `run --resume=X`."""
    word, rest = (args[0], args[1:]) if args else ("", [])
    if word == "help":
        words = meant(rest)
        at = 1 if words[:1] in (["run"], ["plan"]) else len(words)  # what follows their --help is a kind of target
        return words if words[:1] == ["--version"] else [*words[:at], "--help", *words[at:]]
    if word == "resume":
        named = rest and not rest[0].startswith("-")
        return ["run", f"--resume={rest[0]}", *rest[1:]] if named else ["run", "--resume", *rest]
    if word == "--":
        return ["run", *args] if rest else args
    if word == "cache" and rest[:1] in (["print"], ["report"]):  # as MLAgility has them
        return [*({"print": ["cache", "stats"], "report": ["report", "--all"]}[rest[0]]), *rest[1:]]
    if word not in COMMANDS and word.partition("::")[0].endswith(_TARGETS) and os.path.exists(word.partition("::")[0]):
        return ["run", *args]
    return [*_MEANT.get(word, [word]), *rest] if args else args


def _instead_of(option: str) -> str | None:
    """What users of other tools mean by an option that does not exist here."""
    from benchwright.cli.models import mlagility_words

    return milabench_words.instead_of_option(option) or mlagility_words.instead_of_option(option)


def _remedy(args: list[str]) -> str:
    if instead := milabench_words.instead_of_command(args):
        return instead
    near = did_you_mean(args[0], COMMANDS) or did_you_mean(args[0], [*_MEANT, "help", "resume"])
    if near is None and shutil.which(args[0]) is not None:
        return f"to measure it, write: benchwright run -- {shlex.join(args)}"
    return near or "list them with 'benchwright --help'"


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: benchwright run --repeat 6 -- python train.py --epochs 1",
)
@click.version_option(__version__, prog_name="benchwright")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Measure machine-learning performance, honestly."""
    if ctx.invoked_subcommand is None:
        click.echo(START, nl=False)
    elif path := os.environ.get("BENCHWRIGHT_SYSTEM") or os.environ.get("MILABENCH_SYSTEM"):
        _learn_secrets(path)


def _learn_secrets(system_file: str) -> None:
    """The names that the machine's system file calls secret; most files have none, and are not parsed."""
    try:
        named = b"secrets" in read_stored(system_file)
    except OSError:
        return  # told by the commands that need the file
    if named:
        from benchwright.kinds.suite.system_file import read_system

        read_system(system_file)


def main(args: list[str] | None = None) -> object:
    """The program's entry; always ends with SystemExit."""
    fill_closed()
    try:
        code = cli.main(args=args, standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("benchwright: interrupted", err=True)
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except BenchwrightError as error:
        click.echo(f"benchwright: {error}", err=True)
        code = error.exit_code
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`): nothing more to say, and nothing to complain about.
        forget_stdout()
        code = 0
    except OSError as error:
        forget_stdout()  # it may be what cannot be written
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        click.echo(f"benchwright: {place}{error.strerror or error}", err=True)
        code = 3
    sys.exit(code if isinstance(code, int) else 0)
