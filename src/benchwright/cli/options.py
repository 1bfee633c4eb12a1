"""The table of options (`options.table`) as options of commands, and the three sizes of their help."""

from __future__ import annotations

import importlib
import operator
import os
import re
import shlex
import shutil
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from benchwright import runner
from benchwright.cli.answer import JSON_FLAG
from benchwright.core.errors import InvalidInput
from benchwright.options.table import OF_SCRIPTS, OPTIONS, SORTS, Option

if TYPE_CHECKING:
    from benchwright.runner.run import RunOrder

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

REPO_DIR_HELP = (
    "Folder of the repository. From outside it, files are looked up in this folder, then there; commands run there."
)
_HELP = "benchwright.help"  # in the context: which options to list; None: the common ones
_TYPED = "benchwright.typed"  # in the context: the words as they were typed
_ALL = "all"
_COMMON, _OTHER, _OWN = "Common options", "Other options", "Options"


class TableOption(click.Option):
    """An option of the table. `help` replaces the table's, where a command means something narrower by it."""

    def __init__(self, names: Sequence[str], *, row: Option, help: str | None) -> None:
        self.row = row
        super().__init__(names, help=help or row.help, metavar=row.metavar, envvar=row.variable, **_form(row))

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Without the aliases, and with the names that a registry knows."""
        if self.row.names_from is not None and self.help and "{names}" in self.help:
            module, _, function = self.row.names_from.partition(":")
            names = operator.attrgetter(function)(importlib.import_module(module))()
            self.help = self.help.replace("{names}", ", ".join(names))
        known, self.opts = self.opts, [flag for flag in self.opts if flag not in self.row.aliases]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = known

    def get_help_extra(self, ctx: click.Context) -> click.types.OptionHelpExtra:
        """Without the range, which the error message tells."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class Count(click.IntRange):
    """A whole number, with an error in words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            span = "" if self.min is None else f" of {self.min:g} or more"
            span = span if self.max is None else f" from {self.min or 0:g} to {self.max:g}"
            self.fail(f"give a whole number{span}, not '{value}'.", param, ctx)


def _form(row: Option) -> dict[str, Any]:
    """The keywords of click for the form of an option."""
    match row.form:
        case "flag":
            return JSON_FLAG if row.name == "as_json" else {"is_flag": True}
        case "switch":
            return {"default": None}
        case "count":
            return {"type": Count(row.least, row.most), "default": row.default}
        case "choice":
            return {"type": click.Choice(row.choices), "default": row.default}
        case "list" | "words" | "pairs":
            return {"multiple": True}
        case "optional":
            return {"is_flag": False, "flag_value": row.bare}
        case _:
            return {}


def options(*names: str, **helps: str) -> Callable[[AnyFunction], AnyFunction]:
    """A decorator: these options of the table, in this order; the ones in `helps` with another help text."""

    def decorate(function: AnyFunction) -> AnyFunction:
        for name in reversed((*names, *helps)):
            row = OPTIONS[name]
            names_of = (*row.flags, *row.aliases, row.name)
            function = click.option(*names_of, cls=TableOption, row=row, help=helps.get(name))(function)
        return function

    return decorate


def options_also_in(command: str) -> Callable[[AnyFunction], AnyFunction]:
    """A decorator: the options that this command has too."""
    return options(*(name for name, row in OPTIONS.items() if command in row.also_in.split()))


class PassingCommand(click.Command):
    """A command that takes `-- any command` at its end: what follows the first `--` is left untouched."""

    passed = "[-- COMMAND...]"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta["command"] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), self.passed]


class TargetCommand(PassingCommand):
    """`--help` lists the common options, `--help KIND` those of a kind of target, `--help-all` all of them.

    Words after `--` are a command or, behind scripts, their arguments.
    """

    passed = "[-- COMMAND|ARGS...]"
    own_first = False  # --help lists the command's own options, and leaves those of `run` to --help-all

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" not in args and (at := self._program_at(ctx, args)) is not None:
            here = os.path.join(".", args[at]) if os.sep not in args[at] and os.path.exists(args[at]) else args[at]
            line = shlex.join([*args[:at], "--", here, *args[at + 1 :]])
            raise InvalidInput(
                "is a program",
                where=args[at],
                remedy=f"put -- before it: benchwright {ctx.info_name} {line}",
            )
        ctx.meta[_TYPED] = tuple(args)
        return super().parse_args(ctx, args)

    def _program_at(self, ctx: click.Context, args: list[str]) -> int | None:
        """Where a command begins that was written without `--`: at the first target, if that is a program."""
        for at, word in enumerate(args):
            if word.startswith("-") or not _is_program(word):
                continue
            try:
                found = self.make_parser(ctx).parse_args(list(args[: at + 1]))[0].get("targets")
            except click.UsageError:
                return None
            if found == (word,):
                return at
        return None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return click.Option(
            ["-h", "--help"],
            is_flag=False,
            flag_value="",
            metavar="[KIND]",
            is_eager=True,
            expose_value=False,
            callback=_show_help,
            help=(
                "--help-all also lists the options of run; --help KIND those for "
                if self.own_first
                else "Options for KIND ("
            )
            + ", ".join(SORTS)
            + ("." if self.own_first else "); --help-all: all."),
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options under the headings of their sections."""
        wanted = ctx.meta.get(_HELP)
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = getattr(parameter, "row", None)
            if not isinstance(parameter, click.Option) or not _is_listed(row, wanted):
                continue
            if self.own_first and wanted is None and row is not None:
                continue
            if wanted is None and parameter.help and not self.own_first:
                parameter.help = _first_sentence(parameter.help)
            if record := parameter.get_help_record(ctx):
                heading = _COMMON if wanted is None else _OTHER if row is None else row.section
                heading = _OWN if self.own_first and row is None else heading
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class OwnFirstCommand(TargetCommand):
    """A command that adds options to those of `run`, and lists the latter with `--help-all` only."""

    own_first = True


def _is_program(word: str) -> bool:
    if os.path.exists(word):
        return os.path.isfile(word) and os.access(word, os.X_OK) and os.path.splitext(word)[1] in ("", ".sh")
    if os.sep in word or shutil.which(word) is None:
        return False
    from benchwright.kinds.suite.shipped import shipped_suites

    return word not in shipped_suites()


def _is_listed(row: Option | None, wanted: str | None) -> bool:
    if row is None or wanted == _ALL:
        return True
    return row.common if wanted is None else not row.applies or wanted in row.applies


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s|  \[", text, maxsplit=1)[0]


def _show_help(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is None or ctx.resilient_parsing:
        return
    ctx.meta[_HELP] = value if value == _ALL or value in SORTS else None
    click.echo(ctx.get_help(), color=ctx.color)
    ctx.exit()


def _show_all(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        _show_help(ctx, parameter, _ALL)


def with_arguments_last(ctx: click.Context, flags: Collection[str] = ()) -> str | None:
    """The line that was typed, with `flags`, unknown options and their values moved behind `--`; None without a script."""
    if _TYPED not in ctx.meta:
        return None
    known = {flag for parameter in ctx.command.get_params(ctx) for flag in (*parameter.opts, *parameter.secondary_opts)}
    typed = ctx.meta[_TYPED]
    at = typed.index("--") if "--" in typed else len(typed)
    words: list[str] = []
    arguments: list[str] = []
    into = words
    for word in typed[:at]:
        flag = word.partition("=")[0]
        if flag.startswith("-") and not flag.lstrip("-")[:1].isdigit():
            into = words if flag in known and flag not in flags else arguments
        elif _is_script(word):
            into = words
        into.append(word)
    if not any(map(_is_script, words)):
        return None
    return shlex.join(["benchwright", ctx.info_name or "run", *words, "--", *arguments, *typed[at + 1 :]])


def typed_without(ctx: click.Context, flag: str) -> list[str]:
    """The words that were typed, without an option and its value; those after `--` are left alone."""
    typed = ctx.meta[_TYPED]
    at = typed.index("--") if "--" in typed else len(typed)
    of_flag = {n + i for n, word in enumerate(typed[:at]) if word == flag for i in (0, 1)}
    kept = [word for n, word in enumerate(typed[:at]) if n not in of_flag and not word.startswith(f"{flag}=")]
    return [*kept, *typed[at:]]


def _is_script(word: str) -> bool:
    path = word.partition("::")[0]
    return path.endswith(".py") and os.path.isfile(path)


def _refuse_options_of_scripts(ctx: click.Context, given: Sequence[str], targets: Sequence[str]) -> None:
    """InvalidInput for an option that no script takes, where nothing but scripts is named: it may be the script's own."""
    if not targets or not all(map(_is_script, targets)):
        return
    rows = [row for row in map(OPTIONS.__getitem__, given) if row.applies and not OF_SCRIPTS.intersection(row.applies)]
    if rows and (line := with_arguments_last(ctx, [flag for row in rows for flag in (*row.flags, *row.aliases)])):
        raise InvalidInput(
            f"applies to {rows[0].applies_to}, not to scripts",
            where=rows[0].flags[-1],
            remedy=f"if it is meant for the script, put it after --: {line}",
        )


def target_options(command: str, *, applying_to: str | None = None) -> Callable[[AnyFunction], AnyFunction]:
    """A decorator: the options of the table that a command has, if it has those of `run`; `applying_to` a sort of target."""
    names = [
        name
        for name, row in OPTIONS.items()
        if command not in row.not_in.split() and (applying_to is None or not row.applies or applying_to in row.applies)
    ]

    def decorate(function: AnyFunction) -> AnyFunction:
        function = click.option(
            "--help-all", is_flag=True, is_eager=True, expose_value=False, callback=_show_all, hidden=True
        )(function)
        return click.argument("targets", nargs=-1)(options(*names)(function))

    return decorate


def order_from(ctx: click.Context, values: dict[str, object], targets: tuple[str, ...]) -> RunOrder:
    """The run that the options ask for."""
    command = ctx.meta.get("command", ())
    if "command" in ctx.meta and not command and not targets:
        raise InvalidInput(
            "there is no command after --", remedy="write one, such as: benchwright run -- python train.py"
        )
    named = [name for name in OPTIONS if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    given = [name for name in named if values.get(name) != ()]  # of an A/B, --metric only says what decides
    _refuse_options_of_scripts(ctx, given, targets)
    return runner.requests.order_of(values, given, targets=targets, command=command)


def label_pairs(labels: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """InvalidInput for one without a value."""
    for label in labels:
        if not all(label.partition("=")[::2]):
            raise InvalidInput(f"'{label}' is not a label", where="--label", remedy="write KEY=VALUE")
    return tuple((label.partition("=")[0], label.partition("=")[2]) for label in labels)
