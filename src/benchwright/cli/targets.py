"""Options of the commands that take targets, and what they say, as one request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from benchwright.cli.model_options import SECTION, finding_options, measuring_options
from benchwright.cli.option_values import (
    cores_of,
    environment_change_of,
    interleave_of,
    label_of,
    sample_interval_of,
    timeout_of,
    turn_of,
    words_of,
)
from benchwright.core.errors import InvalidInput
from benchwright.core.options import MeasureOptions
from benchwright.core.request import Request, SuiteRequest
from benchwright.core.stop_rule import parse_stop_rule, parse_warmup

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class TargetCommand(click.Command):
    """A command that takes `-- any command` at its end: what follows the first `--` is left untouched."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta["command"] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options under the headings of their sections, the unsectioned ones last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


class SectionedOption(click.Option):
    """An option that is listed under a heading of its own in `--help`. `late_help` is called only to show it."""

    def __init__(self, *args: Any, section: str, late_help: Callable[[], str] | None = None, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.section = section
        self._late_help = late_help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if self._late_help is not None:
            self.help = self._late_help()
        return super().get_help_record(ctx)


def option(section: str, *names: str, **attributes: Any) -> Callable[[AnyFunction], AnyFunction]:
    return click.option(*names, cls=SectionedOption, section=section, **attributes)


def target_options(function: AnyFunction) -> AnyFunction:
    """What to measure, and how; the same for `run` and `plan`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_WHAT = "What to measure"
_HOW = "How to measure it"
_TASKS = "Task files of the benchmark driver"
_SUITES = "Suites"
_KEEP = "Results"

_OPTIONS = [
    click.argument("targets", nargs=-1),
    option(
        _WHAT,
        "-c",
        "--command",
        "commands",
        multiple=True,
        help="A command, as one text; several are interleaved. Repeatable.",
    ),
    option(_WHAT, "--shell", is_flag=True, help="Run commands by /bin/sh, for pipes and &&."),
    option(
        _WHAT,
        "--metric",
        "metrics",
        multiple=True,
        metavar="NAME=PATTERN",
        help="A number to read from the output: a regular expression with one group, json:KEY or kv:KEY. "
        "NAME[unit,higher|lower,method]=… says more. Repeatable.",
    ),
    option(_WHAT, "--name", help="What to call the benchmark (one command)."),
    option(_WHAT, "--format", "format_", help="What kind of file the target is: suite, tasks, script or model."),
    option(_WHAT, "--as", "as_", type=click.Choice(["loop", "models", "command"]), help="How to measure a script."),
    option(_WHAT, "--script-args", default="", help="Arguments for a script target, as one text."),
    option(_WHAT, "--python", help="The interpreter for script targets.  [default: python of the PATH]"),
    option(_WHAT, "--cwd", metavar="DIR", help="The folder commands run in.  [default: this one]"),
    option(
        _WHAT,
        "--env",
        "env",
        multiple=True,
        metavar="NAME=VALUE",
        help="For the program; NAME alone removes it. Repeatable.",
    ),
    option(
        _HOW,
        "--repeat",
        type=click.IntRange(1),
        metavar="N",
        default=1,
        help="Launches of each benchmark.  [default: 1]",
    ),
    option(
        _HOW,
        "--warmup-runs",
        type=click.IntRange(0),
        metavar="N",
        default=0,
        help="Launches before those, kept but not counted.",
    ),
    option(
        _HOW,
        "--interleave/--no-interleave",
        default=None,
        help="Alternate benchmarks.  [default: only several commands]",
    ),
    option(
        _HOW,
        "--turns",
        metavar="TIME",
        help="Run alternated benchmarks at the same time, taking turns of this long: for machines whose speed wanders.",
    ),
    option(
        _HOW,
        "--stop",
        "stop",
        metavar="RULE",
        help="Measure a loop for 100 (steps), 30s, or until its median is known to 1%.",
    ),
    option(
        _HOW, "--warmup", "warmup", metavar="RULE", help="A loop's warm-up: auto, 20 (steps) or 5s.  [default: auto]"
    ),
    option(_HOW, "--loop", metavar="NAME", help="The loop that counts.  [default: the first named train]"),
    option(
        _HOW,
        "--on",
        metavar="NAME[:ARG]",
        help="Where to run: local, ssh:[USER@]HOST[:PORT], ssh with --system, or the executor of an installed package.",
    ),
    option(_HOW, "--timeout", metavar="TIME", help="Limit for each launch, such as 90s or 10m."),
    option(_HOW, "--cores", metavar="LIST", help="Pin to these cores, such as 0,2-3."),
    option(_HOW, "--jobs", type=click.IntRange(1), metavar="N", help="Processes of each launch that measure together."),
    option(
        _HOW,
        "--sample-interval",
        metavar="TIME",
        default="0.5s",
        help="How often memory and devices are looked at.  [default: 0.5s]",
    ),
    option(_HOW, "--seed", type=int, metavar="N", default=0, help="Rotates the order of interleaved launches."),
    *finding_options(partial(option, SECTION)),
    *measuring_options(partial(option, SECTION)),
    option(_TASKS, "--task", "tasks", multiple=True, metavar="NAME", help="Only this task. Repeatable."),
    option(_TASKS, "--task-name", "tasks_too", multiple=True, hidden=True),
    option(_TASKS, "--framework", metavar="NAME", help="Put before the result's keys."),
    option(_TASKS, "--metrics-suffix", metavar="NAME", help="Put after the result's keys."),
    option(_TASKS, "--num-gpus", type=int, metavar="N", help="Number of GPUs; rewrites --gpus N."),
    option(_TASKS, "--epochs", type=int, metavar="N", help="Rewrites --epochs N."),
    option(_TASKS, "--kvstore", metavar="X", help="Rewrites --kvstore X."),
    option(_TASKS, "--dtype", metavar="X", help="Rewrites --dtype X."),
    option(
        _TASKS,
        "--set-flag",
        "set_flags",
        multiple=True,
        metavar="FLAG=VALUE",
        help="Rewrites or adds any other flag. Repeatable.",
    ),
    option(_TASKS, "--remove-flag", "remove_flags", multiple=True, metavar="FLAG", help="Removes a flag. Repeatable."),
    option(_TASKS, "--metrics-policy", metavar="NAME", help="Read with the patterns of this metrics_… section."),
    option(_TASKS, "--command-to-execute", metavar="COMMAND", help="The command for --metrics-policy."),
    option(_TASKS, "--data-set", metavar="NAME", help="The data set's name, for --metrics-policy."),
    option(_TASKS, "--metrics-template", metavar="FILE", help="The task file that holds the policy."),
    option(
        _SUITES,
        "--config",
        "configs",
        multiple=True,
        metavar="SUITE",
        help="A suite, as if named as a target.  [default: $BENCHWRIGHT_CONFIG]",
    ),
    option(
        _SUITES, "--system", metavar="FILE", help="The machines to run on, as a system file.  [$BENCHWRIGHT_SYSTEM]"
    ),
    option(
        _SUITES,
        "--select",
        multiple=True,
        metavar="WORDS",
        help="Only these: names, groups, tags, separated by commas.",
    ),
    option(_SUITES, "--exclude", multiple=True, metavar="WORDS", help="Not these."),
    option(
        _SUITES,
        "--override",
        "overrides",
        multiple=True,
        metavar="PATH=VALUE",
        help="Changes a value, such as resnet50.argv.--epochs=1 or '*.max_duration=60'. Repeatable.",
    ),
    option(
        _SUITES,
        "--use-current-env",
        "--use_current_env",
        "use_current_env",
        is_flag=True,
        help="Run with the Python at hand instead of installed environments.",
    ),
    option(
        _SUITES,
        "--validations",
        multiple=True,
        metavar="LAYERS",
        help="More checks: usage, planning, version, plausibility, or all.",
    ),
    option(
        _SUITES,
        "--size",
        metavar="HOW",
        help="Batch sizes: auto (fits the device), optimized, default, a number, or search: find the largest that fits.",
    ),
    option(_SUITES, "--capacity", metavar="SIZE", help="Device memory to size for.  [default: the device's]"),
    option(_SUITES, "--scaling", metavar="FILE", help="What is known of memory over batch size, for --size auto."),
    option(_SUITES, "--save-scaling", metavar="FILE", help="Add what this run saw of it to that file."),
    option(_KEEP, "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Kept with the results. Repeatable."),
    option(_KEEP, "--tag", "tags", multiple=True, metavar="TAG", help="A word to find the run by. Repeatable."),
    option(
        _KEEP,
        "--keep-env",
        "keep_env",
        multiple=True,
        metavar="NAME",
        help="Write down this variable too, or those of a glob such as 'MY_*'. Repeatable.",
    ),
    option(
        _KEEP,
        "--share",
        is_flag=True,
        envvar="BENCHWRIGHT_SHARE",
        help="Let others read the run's files, as the umask allows.  [default: only you; $BENCHWRIGHT_SHARE]",
    ),
    option(_KEEP, "--discard-logs", is_flag=True, help="Remove a program's log after success."),
    option(
        _KEEP,
        "--base",
        metavar="DIR",
        help="Where results are kept.  [default: $BENCHWRIGHT_BASE, else the user's data folder]",
    ),
]


def request_of(ctx: click.Context, values: dict[str, Any], base: Path) -> Request:
    """The options as one checked request; suites find their things in the folder `base`."""
    from benchwright.kinds.models.options import model_options_of

    command = ctx.meta.get("command", ())
    if "command" in ctx.meta and not command:
        raise InvalidInput("there is no command after --", remedy="write benchwright run -- COMMAND ARGUMENTS")
    return Request(
        targets=values["targets"] + values["configs"],
        command=command,
        lines=values["commands"],
        shell=values["shell"],
        name=values["name"],
        metrics=values["metrics"],
        format=values["format_"],
        as_=values["as_"],
        script_args=words_of(values["script_args"], where="--script-args"),
        python=values["python"],
        cwd=values["cwd"],
        tasks=values["tasks"] + values["tasks_too"],
        task_options={key: values[key] for key in _TASK_OPTIONS if values[key] is not None},
        set_flags=values["set_flags"],
        remove_flags=values["remove_flags"],
        options=_measure_options(values),
        repeat=values["repeat"],
        warmup_runs=values["warmup_runs"],
        interleave=interleave_of(values["interleave"], values["turns"]),
        turn_s=turn_of(values["turns"]),
        discard_logs=values["discard_logs"],
        sample_interval_s=sample_interval_of(values["sample_interval"]),
        seed=values["seed"],
        on=values["on"],
        keep_env=values["keep_env"],
        shared=values["share"],
        suite=suite_request(values, base),
        models=model_options_of(values),
        params=values["params"],
        sweep=values["sweep"],
        search_dirs=values["search_dirs"],
        all_scripts=values["all_scripts"],
        builds=str(base / "builds"),
    )


def suite_request(values: dict[str, Any], base: Path) -> SuiteRequest:
    """What the options say about suites."""
    current = None
    if values.get("use_current_env"):
        from benchwright.kinds.suite.suites import current_python

        current = current_python()
    return SuiteRequest(
        base=str(base),
        select=_words(values.get("select", ())),
        exclude=_words(values.get("exclude", ())),
        overrides=values.get("overrides", ()),
        system=values.get("system"),
        use_current_env=current,
        validations=_words(values.get("validations", ())),
        size=values.get("size"),
        capacity=values.get("capacity"),
        scaling_file=values.get("scaling"),
        save_scaling=values.get("save_scaling"),
    )


def _words(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Comma lists, given once or several times."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


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
        stop=None if values["stop"] is None else parse_stop_rule(values["stop"]),
        warmup=None if values["warmup"] is None else parse_warmup(values["warmup"]),
        loop=values["loop"],
        timeout_s=None if values["timeout"] is None else timeout_of(values["timeout"]),
        env=dict(environment_change_of(text) for text in values["env"]),
        cores=None if values["cores"] is None else cores_of(values["cores"]),
        jobs=values["jobs"],
        labels=dict(label_of(text) for text in values["labels"]),
        tags=values["tags"],
    )
