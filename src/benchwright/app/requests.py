"""What a user asks for, from the command line or from Python, as one checked Request."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchwright.app import option_values as parse
from benchwright.app.options import OPTIONS, Option
from benchwright.app.reporting import reporters_of
from benchwright.app.run import RunOrder
from benchwright.core.errors import InvalidInput
from benchwright.core.inputs.request import MeasureOptions, Request, SuiteRequest
from benchwright.core.stop_rule import parse_repeat, parse_stop_rule, parse_warmup
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.resume import NEWEST

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
_AS_GIVEN = ("cold", "overlap", "lean_cache", "build_jobs", "discard_logs")  # options that a request has as they are
SEARCH = "search"  # --size
_EMPTY: dict[str, Any] = {"flag": False, "list": (), "words": (), "pairs": (), "optional": None}


def order_of(
    values: Mapping[str, object], given: Collection[str], *, targets: Sequence[str] = (), command: Sequence[str] = ()
) -> RunOrder:
    """The run that the options ask for; `given`: those that were given, the others have their defaults."""
    values = with_defaults(values)
    resume = values["resume"]
    if resume is not None and Path(resume).is_file():
        # `--resume tasks.cfg` means the newest run of tasks.cfg: a file is no run folder.
        resume, targets = NEWEST, (resume, *targets)
    if values["anyway"] and resume is None:
        raise InvalidInput("only applies to a resumed run", where="--anyway", remedy="add --resume")
    _check_placeholders(values["run_name"] or "")
    base = BaseFolder.choose(values["base"], os.environ)
    return RunOrder(
        request=request_of(values, base.path, targets=targets, command=command),
        base=base,
        given=frozenset(given),
        name=values["run_name"],
        resume=resume,
        anyway=values["anyway"],
        store=values["store"],
        keep=not values["no_store"],
        set_up=not values["no_setup"],
        reporters=reporters_of(values),
    )


def _check_placeholders(run_name: str) -> None:
    for unknown in re.findall(r"\{\w*\}", run_name.replace("{time}", "")):
        raise InvalidInput(f"{unknown} has no meaning in a run's name", where="--run-name", remedy="use {time}")


def with_defaults(values: Mapping[str, object]) -> dict[str, Any]:
    """Every option of the table, those that are not in `values` as if they had not been given."""
    unset = {option.name: _EMPTY.get(option.form, option.default) for option in OPTIONS.values()}
    return unset | dict(values)


def request_of(
    values: Mapping[str, Any], base: Path, *, targets: Sequence[str] = (), command: Sequence[str] = ()
) -> Request:
    """The options, in the notation of the command line, as one checked request; suites keep their things in `base`."""
    from benchwright.kinds.models.options import model_options_of
    from benchwright.kinds.spec.options import spec_options_of

    values = with_defaults(values)
    targets = (*targets, *_modules(values), *values["configs"])
    script_args, command = _script_args(values, command, targets)
    return Request(
        targets=targets,
        command=tuple(command),
        lines=values["commands"],
        shell=values["shell"],
        setup=values["setup"],
        prepare=values["prepare"],
        cleanup=values["cleanup"],
        name=values["name"],
        metrics=values["metrics"],
        format=values["format"],
        as_=values["as_"],
        script_args=script_args,
        python=values["python"],
        cwd=values["cwd"],
        tasks=values["tasks"],
        task_options={key: values[key] for key in _TASK_OPTIONS if values[key] is not None},
        set_flags=values["set_flags"],
        remove_flags=values["remove_flags"],
        options=_measure_options(values),
        repeat=parse_repeat(values["repeat"]),
        warmup_runs=values["warmup_runs"],
        interleave=parse.interleave_of(values["interleave"], values["turns"]),
        turn_s=parse.turn_of(values["turns"]),
        lock_clocks=values["lock_clocks"],
        **{name: values[name] for name in _AS_GIVEN},
        max_memory_bytes=parse.max_memory_of(values["max_memory"]),
        stop_grace_s=parse.stop_grace_of(values["stop_grace"]),
        sample_interval_s=parse.sample_interval_of(values["sample_interval"]),
        seed=values["seed"],
        on=values["on"],
        platform=values["platform"],
        device_names=parse.comma_words(values["device_names"]),
        excluded_devices=parse.comma_words(values["excluded_devices"]),
        remote_dir=values["remote_dir"],
        echo=values["show_output"],
        keep_env=values["keep_env"],
        shared=values["share"],
        suite=suite_request_of(values, base),
        models=model_options_of(values, targets, any_runtime=_names_only_specs(targets)),
        specs=spec_options_of(values, str(base / "artifacts")),
        params=values["params"],
        sweep=values["sweep"],
        search_dirs=values["search_dirs"],
        all_scripts=values["all_scripts"],
        shuffle=values["shuffle"],
        shard=parse.shard_of(values["shard"]),
        builds=str(base / "builds"),
        zoos=str(base / "zoos") if values["on"] in (None, "local") else "",  # those of another machine are not known
    )


def _modules(values: Mapping[str, Any]) -> list[str]:
    """The files of --module; InvalidInput if --python starts no interpreter."""
    from benchwright.kinds.interpreter import check_starts, file_of_module

    if values["python"] and values["on"] in (None, "local"):
        check_starts(values["python"])
    return [file_of_module(name, values["python"], values["cwd"]) for name in values["modules"]]


def _script_args(
    values: Mapping[str, Any], words: Sequence[str], targets: Sequence[str]
) -> tuple[tuple[str, ...], Sequence[str]]:
    """The arguments of scripts, and the command that is left: words after `--` are the scripts' where there are targets."""
    given = parse.script_args_of(values["script_args"] or "")
    if words and (targets or values["all_scripts"]):
        return (*given, *_arguments(words, targets)), ()
    return given, words


def _arguments(words: Sequence[str], targets: Sequence[str]) -> Sequence[str]:
    """What follows `--` behind targets: arguments of the scripts among them; InvalidInput for what is plainly a command."""
    from benchwright.runs.provenance.code_files import INTERPRETER

    if not INTERPRETER.fullmatch(os.path.basename(words[0])):
        return words
    line = shlex.join(words)
    whose = " and ".join(targets) or "the scripts"
    raise InvalidInput(
        f"'{line}' would be the arguments of {whose}",
        where="--",
        remedy=f"to measure it too, write: -c {shlex.quote(line)}; if they are arguments: --script-args {shlex.quote(line)}",
    )


def _names_only_specs(targets: Sequence[str]) -> bool:
    """A specification's program may have backends that are no runtimes of ours."""
    if not targets:
        return False
    from benchwright.app.resolve import shipped_file
    from benchwright.kinds.spec.read.document import looks_like_one

    return all(looks_like_one(shipped_file(target)) for target in targets)


def suite_request_of(values: Mapping[str, object], base: Path) -> SuiteRequest:
    """What the options say about suites."""
    values = with_defaults(values)
    current = None
    if values["use_current_env"]:
        from benchwright.kinds.suite.suites import current_python

        current = current_python()
    return SuiteRequest(
        base=str(base),
        select=parse.comma_words(values["select"]),
        exclude=parse.comma_words(values["exclude"]),
        overrides=values["overrides"],
        system=values["system"],
        use_current_env=current,
        validations=parse.comma_words(values["validations"]),
        size=values["size"],
        capacity=values["capacity"],
        scaling_file=values["scaling"],
        save_scaling=values["save_scaling"],
    )


def _measure_options(values: Mapping[str, Any]) -> MeasureOptions:
    def parsed(name: str, parser: Callable[[str], Any]) -> Any:
        return None if values[name] is None else parser(values[name])

    return MeasureOptions(
        stop=parsed("stop", parse_stop_rule),
        warmup=parsed("warmup", parse_warmup),
        loop=values["loop"],
        timeout_s=parsed("timeout", parse.timeout_of),
        env=dict(map(parse.environment_change_of, values["env"])),
        cores=parsed("cores", parse.cores_of),
        jobs=values["jobs"],
        labels=dict(map(parse.label_of, values["labels"])),
        tags=values["tags"],
        ignore_failure=values["ignore_failure"],
    )


def values_of(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Options as Python writes them in the notation of the command line; None: not given. InvalidInput for other values."""
    return {name: _value(OPTIONS[name], value) for name, value in keywords.items() if value is not None}


def _value(option: Option, value: Any) -> object:
    if option.form in ("flag", "switch"):
        return _checked(option, value, isinstance(value, bool), "True or False")
    if option.form == "count":
        number = isinstance(value, int) and not isinstance(value, bool)
        low, high = option.least, option.most
        fits = number and (low is None or value >= low) and (high is None or value <= high)
        return _checked(option, value, fits, "a whole number" + ("" if low is None else f", {low} or more"))
    if option.form == "choice":
        return _checked(option, value, value in option.choices, f"one of {', '.join(option.choices)}")
    if option.form in ("list", "words", "pairs"):
        return _texts(option, value)
    if isinstance(value, Sequence) and not isinstance(value, str):  # cores=[0, 1], script_args=["--epochs", "1"]
        return ",".join(map(str, value)) if option.name == "cores" else shlex.join(map(str, value))
    known = isinstance(value, str | os.PathLike | int | float) and not isinstance(value, bool)
    return str(_checked(option, value, known, "text"))


def _texts(option: Option, value: Any) -> tuple[str, ...]:
    """A list of texts; one text is a list of one, and a mapping is one text for each of its pairs."""
    if isinstance(value, Mapping):
        _checked(option, value, option.form == "pairs", "a list of texts")
        return tuple(key if each is None else f"{key}={_joined(each)}" for key, each in value.items())
    if isinstance(value, str | os.PathLike):
        return (os.fspath(value),)
    _checked(option, value, isinstance(value, Sequence), "a list of texts")
    return tuple(map(str, value))


def _joined(value: Any) -> str:
    return str(value) if isinstance(value, str) or not isinstance(value, Sequence) else ",".join(map(str, value))


def _checked(option: Option, value: Any, fits: bool, wanted: str) -> object:
    if not fits:
        raise InvalidInput(f"{value!r} is not {wanted}", where=option.name, remedy=f"give {wanted}")
    return value
