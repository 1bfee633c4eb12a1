"""`benchwright`, alias `bw`: finds the command, and turns errors into messages and exit codes."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import sys
from collections.abc import Sequence

import click

from benchwright.cli.terminal import fill_closed, forget_stdout
from benchwright.core.errors import BenchwrightError, did_you_mean
from benchwright.core.stored_file import read_stored
from benchwright.options.variables import value_of
from benchwright.version import __version__

# heading of `--help` → name → module below benchwright.cli that holds `command`, and what `--help` says about it.
GROUPS = {
    "Measure": {
        "run": ("run", "Measure a suite, a command, a task file, a script or its models."),
        "ab": ("regressions.ab", "Compare two revisions of a target, launched in turn, with a verdict."),
        "find": ("models.find", "List the models in scripts and zoos, or the shipped corpora, without measuring."),
        "plan": ("plan", "Show what would run, without running it."),
    },
    "Look": {
        "show": ("results.show", "Show everything about a run."),
        "report": ("results.report", "Report runs as text, HTML, Markdown, CSV or JSON."),
        "runs": ("results.runs", "List, delete, prune and annotate runs."),
        "logs": ("results.logs", "Show a program's output."),
        "export": ("results.export", "Export raw samples as JSON, CSV or Parquet."),
        "history": ("regressions.history", "Show where a benchmark became slower or faster, over its runs."),
        "explain": ("regressions.explain", "Say why a treatment is slower: work or waiting, operators, memory."),
    },
    "Compare": {
        "compare": ("results.compare", "Compare runs, with confidence intervals and verdicts; or their environments."),
        "baseline": ("results.baseline", "Name runs to compare with."),
        "bisect": ("regressions.bisect", "Find the commit that changed a metric."),
        "watch": ("regressions.watch", "Measure each new commit of a repository, and report regressions."),
    },
    "Suites": {
        "install": ("suites.install", "Create a suite's environments."),
        "prepare": ("suites.prepare", "Download a suite's data, so that run needs no network."),
        "pin": ("suites.pin", "Pin the package versions of a suite."),
        "dev": ("suites.dev", "Open a shell in a benchmark's environment."),
        "new": ("suites.new", "Create a benchmark from a template."),
        "resolve": ("suites.resolve", "Print a suite or a task file fully resolved."),
        "validate": ("validate", "Check suites, task files, specs and scripts for errors."),
        "matrix": ("suites.matrix", "Run a suite once for each combination of options."),
    },
    "Keep in order": {
        "doctor": ("doctor", "Check this machine: hardware, runtimes, noise."),
        "devices": ("devices", "List devices to measure on, their health, and what was sent to them."),
        "cache": ("cache", "List, verify and clean cached artifacts and builds."),
        "store": ("store.store", "Check, rebuild and migrate the store; send what waits for its server."),
        "serve": ("server.serve", "Serve the store to others, as pages and as a store."),
        "site": ("server.site", "Write the pages of the store as files."),
        "token": ("server.token", "Let others use the server, and stop letting them."),
        "import": ("store.import_results", "Import results of other tools, or run folders, into the store."),
        "completion": ("completion", "Print a shell completion script."),
    },
}
COMMANDS = {name: row for group in GROUPS.values() for name, row in group.items()}
# Commands that became an option of another: they still work, and say so.
MOVED = {
    "corpora": ["find", "--corpora"],
    "nodes": ["devices", "--sent"],
    "diff-env": ["compare", "--env"],
    "ingest": ["import", "benchwright"],
}
# Commands and options that are gone, with what to use instead.
_REMOVED_COMMANDS = {"plot": "use 'bw report -o report.html', which draws every sample, or 'bw history BENCHMARK'"}
_REMOVED_OPTIONS = {"--smtp": "use --notify webhook:URL, with a chat or mail service that takes webhooks"}
# What users of other tools type, with what it means here; not listed.
_MEANT = {
    "models": ["find", "--corpora"],
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
        if ctx.resilient_parsing:  # a shell completes the line
            from benchwright.cli.suggestions import suggest

            suggest(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        width = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:{width}}", about) for name, (_, about) in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"no such command: '{args[0]}'; {_remedy(args)}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] in MOVED and not ctx.resilient_parsing:
            click.echo(f"benchwright: '{args[0]}' is now '{' '.join(MOVED[args[0]])}'", err=True)
        words = self.with_our_command(ctx, meant(args))
        if not ctx.resilient_parsing and (command := self._named(ctx, words)) is not None:
            from benchwright.cli.spellings import in_our_words

            words = [words[0], *in_our_words(words[0], command, words[1:])]
        return super().parse_args(ctx, words)

    def with_our_command(self, ctx: click.Context, words: list[str]) -> list[str]:
        """A command of another tool written as it is called here, where ours has no such subcommand."""
        two = len(words) > 1 and words[0] in COMMANDS and not words[1].startswith("-")
        group = self.get_command(ctx, words[0]) if two else None
        if not isinstance(group, click.Group) or group.get_command(ctx, words[1]) is not None:
            return words
        from benchwright.options.spellings import spelt_command_here

        found = spelt_command_here(words[:2])
        return words if found is None else [*found, *words[2:]]

    def _named(self, ctx: click.Context, words: list[str]) -> click.Command | None:
        """The command that options of other tools could be meant for."""
        options = any(word.startswith("--") for word in words[1:] if word != "--")
        found = self.get_command(ctx, words[0]) if options and words[0] in COMMANDS else None
        return None if isinstance(found, click.Group) else found

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if instead := _REMOVED_OPTIONS.get(error.option_name) or _hint(option=error.option_name):
                raise click.UsageError(f"no such option: {error.option_name}; {instead}", error.ctx) from None
            _say_where_arguments_go(error)
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
    file = word.partition("::")[0]
    sought = os.path.exists(file) or any(each.startswith("--search-dir") or each == "-s" for each in rest)
    if word not in COMMANDS and file.endswith(_TARGETS) and sought:
        return ["run", *args]
    return [*(MOVED | _MEANT).get(word, [word]), *rest] if args else args


def _say_where_arguments_go(error: click.NoSuchOption) -> None:
    """UsageError with the line that gives an option to the script, where one is named."""
    from benchwright.cli.options import with_arguments_last

    if error.ctx is None or (line := with_arguments_last(error.ctx)) is None:
        return
    bare = error.option_name.lstrip("-")
    near = next((each for each in error.possibilities or () if did_you_mean(bare, [each.lstrip("-")])), None)
    start = "if" if near is None else f"did you mean '{near}'? If"
    text = f"no such option: {error.option_name}; {start} it is meant for the script, put it after --: {line}"
    raise click.UsageError(text, error.ctx) from None


def _hint(words: Sequence[str] = (), option: str = "") -> str | None:
    """Our words for another tool's command or option, as a hint."""
    from benchwright.options.hints import hint_for_command, hint_for_option

    return hint_for_option(option) if option else hint_for_command(words)


def _remedy(args: list[str]) -> str:
    if instead := _REMOVED_COMMANDS.get(args[0]) or _hint(args):
        return instead
    near = did_you_mean(args[0], COMMANDS) or did_you_mean(args[0], [*_MEANT, "help", "resume"])
    if (near is None or len(args) > 1) and shutil.which(args[0]) is not None:
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
    elif path := value_of("BENCHWRIGHT_SYSTEM", os.environ):
        _learn_secrets(path)


def _learn_secrets(system_file: str) -> None:
    """The names that the machine's system file calls secret; most files have none, and are not parsed."""
    try:
        named = b"secrets" in read_stored(system_file)
    except OSError:
        return  # the commands that need the file report it
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
