"""Options of the commands that take targets, and what they say, as one request."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, TypeVar

import click

from benchwright.domain.errors import InvalidInput
from benchwright.domain.options import MeasureOptions
from benchwright.domain.quantities import parse_duration
from benchwright.domain.request import Request
from benchwright.domain.stop_rule import parse_stop_rule, parse_warmup

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class TargetCommand(click.Command):
    """A command that takes `-- any command` at its end: what follows the first `--` is left untouched."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta["command"] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


def target_options(function: AnyFunction) -> AnyFunction:
    """What to measure, and how; the same for `run` and `plan`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = [
    click.argument("targets", nargs=-1),
    click.option(
        "-c",
        "--command",
        "commands",
        multiple=True,
        help="A command, as one text; several are interleaved. Repeatable.",
    ),
    click.option("--shell", is_flag=True, help="Run commands by /bin/sh, for pipes and &&."),
    click.option(
        "--metric",
        "metrics",
        multiple=True,
        help="NAME=PATTERN to read from the output: a regular expression with one group, json:KEY or kv:KEY. "
        "NAME[unit,higher|lower,method]=… says more. Repeatable.",
    ),
    click.option("--name", help="What to call the benchmark (one command)."),
    click.option("--format", "format_", help="What kind of file the target is: tasks or script."),
    click.option("--as", "as_", type=click.Choice(["loop", "command"]), help="How to measure a script."),
    click.option("--script-args", default="", help="Arguments for a script target, as one text."),
    click.option("--python", help="The interpreter for script targets.  [default: python of the PATH]"),
    click.option("--cwd", help="The folder commands run in.  [default: this one]"),
    click.option("--env", "env", multiple=True, help="NAME=VALUE for the program; NAME alone removes it. Repeatable."),
    click.option("--repeat", type=click.IntRange(1), default=1, show_default=True, help="Launches of each benchmark."),
    click.option(
        "--warmup-runs", type=click.IntRange(0), default=0, help="Launches before those, kept but not counted."
    ),
    click.option(
        "--interleave/--no-interleave", default=None, help="Alternate benchmarks.  [default: only several commands]"
    ),
    click.option("--stop", "stop", help="Measure a loop for 100 (steps), 30s, or until its median is known to 1%."),
    click.option("--warmup", "warmup", help="A loop's warm-up: auto, 20 (steps) or 5s.  [default: auto]"),
    click.option("--loop", help="The loop that counts.  [default: the first named train]"),
    click.option("--timeout", help="Limit for each launch, such as 90s or 10m."),
    click.option("--cores", help="Pin to these cores, such as 0,2-3."),
    click.option("--jobs", type=click.IntRange(1), help="Processes of each launch that measure together."),
    click.option("--label", "labels", multiple=True, help="KEY=VALUE kept with the results. Repeatable."),
    click.option("--task", "tasks", multiple=True, help="Only this task of a task file. Repeatable."),
    click.option("--task-name", "tasks", multiple=True, hidden=True),
    click.option("--framework", help="Task files: put before the result's keys."),
    click.option("--metrics-suffix", help="Task files: put after the result's keys."),
    click.option("--num-gpus", type=int, help="Task files: number of GPUs; rewrites --gpus N."),
    click.option("--epochs", type=int, help="Task files: rewrites --epochs N."),
    click.option("--kvstore", help="Task files: rewrites --kvstore X."),
    click.option("--dtype", help="Task files: rewrites --dtype X."),
    click.option("--set-flag", "set_flags", multiple=True, help="Task files: FLAG=VALUE of the command. Repeatable."),
    click.option("--remove-flag", "remove_flags", multiple=True, help="Task files: remove a flag. Repeatable."),
    click.option("--metrics-policy", help="Task files: read with the patterns of this metrics_… section."),
    click.option("--command-to-execute", help="Task files: the command for --metrics-policy."),
    click.option("--data-set", help="Task files: the data set's name, for --metrics-policy."),
    click.option("--metrics-template", help="The task file that holds the policy."),
    click.option("--discard-logs", is_flag=True, help="Remove a program's log after success."),
    click.option(
        "--sample-interval", default="0.5s", show_default=True, help="How often memory and devices are looked at."
    ),
    click.option("--seed", type=int, default=0, help="Rotates the order of interleaved launches."),
    click.option("--base", help="Where results are kept.  [default: $BENCHWRIGHT_BASE, else the user's data folder]"),
]


def request_of(ctx: click.Context, values: dict[str, Any]) -> Request:
    """The options as one checked request."""
    command = ctx.meta.get("command", ())
    if "command" in ctx.meta and not command:
        raise InvalidInput("there is no command after --", remedy="write benchwright run -- COMMAND ARGUMENTS")
    return Request(
        targets=values["targets"],
        command=command,
        lines=values["commands"],
        shell=values["shell"],
        name=values["name"],
        metrics=values["metrics"],
        format=values["format_"],
        as_=values["as_"],
        script_args=tuple(_shlex(values["script_args"], "--script-args")),
        python=values["python"],
        cwd=values["cwd"],
        tasks=values["tasks"],
        task_options={key: values[key] for key in _TASK_OPTIONS if values[key] is not None},
        set_flags=values["set_flags"],
        remove_flags=values["remove_flags"],
        options=_measure_options(values),
        repeat=values["repeat"],
        warmup_runs=values["warmup_runs"],
        interleave=values["interleave"],
        discard_logs=values["discard_logs"],
        sample_interval_s=_sample_interval(values["sample_interval"]),
        seed=values["seed"],
    )


_TASK_OPTIONS = (
    "framework",
    "metrics_suffix",
    "num_gpus",
    "epochs",
    "kvstore",
    "dtype",
    "metrics_policy",
    "command_to_execute",
    "data_set",
    "metrics_template",
)


def _measure_options(values: dict[str, Any]) -> MeasureOptions:
    return MeasureOptions(
        stop=parse_stop_rule(values["stop"]) if values["stop"] else None,
        warmup=parse_warmup(values["warmup"]) if values["warmup"] else None,
        loop=values["loop"],
        timeout_s=parse_duration(values["timeout"], where="--timeout") if values["timeout"] else None,
        env=dict(_environment_change(text) for text in values["env"]),
        cores=_cores(values["cores"]) if values["cores"] else None,
        jobs=values["jobs"],
        labels=dict(_label(text) for text in values["labels"]),
    )


def _shlex(text: str, where: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidInput(
            f"cannot be split into words: {error}", where=where, remedy="close the quotation", text=text
        ) from None


def _environment_change(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not name or "\0" in text:
        raise InvalidInput(
            f"'{text}' is not a variable", where="--env", remedy="write NAME=VALUE, or NAME to remove it"
        )
    return name, value if equals else None


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidInput(f"'{text}' is not a label", where="--label", remedy="write KEY=VALUE")
    return key, value


def _cores(text: str) -> tuple[int, ...]:
    cores: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            cores += range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise InvalidInput(f"'{text}' is not a list of cores", where="--cores", remedy="write 0,2-3") from None
    if not cores:
        raise InvalidInput(f"'{text}' names no core", where="--cores", remedy="write 0,2-3")
    return tuple(dict.fromkeys(cores))


def _sample_interval(text: str) -> float:
    seconds = parse_duration(text, where="--sample-interval")
    if seconds < 0.01:
        raise InvalidInput(
            f"{text} is too short", where="--sample-interval", remedy="sampling takes a few ms: give 10ms or more"
        )
    return seconds
