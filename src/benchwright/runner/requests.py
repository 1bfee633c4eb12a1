"""Requests of a user, from the command line or from Python, as checked Options."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchwright.core.decision import Decision
from benchwright.core.errors import InvalidInput
from benchwright.core.stop_rule import StopRule
from benchwright.executors.registry import is_here, joins
from benchwright.kinds.interpreter import check_starts, file_of_module
from benchwright.options.table import OPTIONS, Option, Options
from benchwright.options.values import interleave
from benchwright.runner.resolve import shipped_file
from benchwright.runner.run import RunOrder
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.delivery import open_deliveries
from benchwright.runs.provenance.code_files import INTERPRETER
from benchwright.runs.resume import NEWEST

SEARCH = "search"  # --size
_UNSET = object()


def order_of(
    values: Mapping[str, object], given: Collection[str], *, targets: Sequence[str] = (), command: Sequence[str] = ()
) -> RunOrder:
    """The run that the options ask for; `given`: options set by the user, the others have their defaults."""
    resume: Any = values.get("resume")
    if resume is not None and Path(resume).is_file():
        # `--resume tasks.cfg` means the newest run of tasks.cfg: a file is no run folder.
        resume, targets = NEWEST, (resume, *targets)
    options = options_of(values, targets=targets, command=command)
    if options.anyway and resume is None:
        raise InvalidInput("only applies to a resumed run", where="--anyway", remedy="add --resume")
    _check_placeholders(options.run_name or "")
    if joins(options.on) and "nodes" not in given:
        options = replace(options, nodes=0)  # all that the job has
    base = BaseFolder(Path(options.base or ""))
    return RunOrder(
        options=options,
        base=base,
        given=frozenset(given),
        name=options.run_name,
        resume=resume,
        deliveries=open_deliveries(options, base.path),
    )


def _check_placeholders(run_name: str) -> None:
    for unknown in re.findall(r"\{\w*\}", run_name.replace("{time}", "")):
        raise InvalidInput(f"{unknown} has no meaning in a run's name", where="--run-name", remedy="use {time}")


def options_of(values: Mapping[str, Any], *, targets: Sequence[str] = (), command: Sequence[str] = ()) -> Options:
    """Values in the notation of the command line as checked options. What is not in the table is passed over."""
    fields = {name: _parsed(OPTIONS[name], value) for name, value in values.items() if name in OPTIONS}
    options = replace(
        Options(**{name: value for name, value in fields.items() if value is not _UNSET}), **_launches(fields)
    )
    targets = (*targets, *_modules(options), *options.configs)
    script_args, command = _script_args(options, command, targets)
    options = replace(
        options,
        targets=targets,
        command=tuple(command),
        script_args=script_args,
        interleave=interleave(options.interleave, options.turns),
        base=str(BaseFolder.choose(options.base, os.environ).path),
    )
    return _with_builds(_with_profile(options) if options.slurm_profile else options)


def _with_profile(options: Options) -> Options:
    """With the options of sbatch that the profile has; the given ones come last, and so they hold."""
    from benchwright.kinds.suite.slurm_profiles import slurm_profile

    folders = [os.path.dirname(shipped_file(target)) or "." for target in options.targets]
    found = slurm_profile(options.slurm_profile or "", [*folders, *(os.path.join(f, "..") for f in folders), "."])
    nodes = options.nodes if options.nodes > 1 else found.nodes or 1
    return replace(options, slurm=(*found.options, *options.slurm), nodes=nodes)


def _parsed(option: Option, value: Any) -> Any:
    if value is None or value == ():
        return _UNSET
    return value if option.parse is None else option.parse(value)


def _launches(fields: Mapping[str, Any]) -> dict[str, Any]:
    """`--repeat` is a number of launches, or a rule for when there are enough."""
    repeat = fields.get("repeat")
    if isinstance(repeat, StopRule):
        return {"repeat": repeat.max_steps or 1, "enough": repeat}
    if isinstance(repeat, Decision):
        return {"repeat": repeat.most_launched, "decision": repeat}
    return {}


def _with_builds(options: Options) -> Options:
    """With the proper names of runtimes, and with what is known of the build sequence; InvalidInput if they contradict."""
    if options.runtimes and not _names_only_specs(options.targets):
        from benchwright.kinds.runtime_names import runtimes_named

        options = replace(options, runtimes=runtimes_named(options.runtimes, options.python))
    if options.say_how_to_build:
        from benchwright.kinds.models.build_options import with_sequence

        options = with_sequence(options)
    return options


def _modules(options: Options) -> list[str]:
    """The files of --module; InvalidInput if --python starts no interpreter."""
    if options.python and is_here(options.on):
        check_starts(options.python)
    return [file_of_module(name, options.python, options.cwd) for name in options.modules]


def _script_args(
    options: Options, words: Sequence[str], targets: Sequence[str]
) -> tuple[tuple[str, ...], Sequence[str]]:
    """The arguments of scripts, and the command that is left: words after `--` are the scripts' where there are targets."""
    if words and (targets or options.all_scripts):
        return (*options.script_args, *_arguments(words, targets)), ()
    return options.script_args, words


def _arguments(words: Sequence[str], targets: Sequence[str]) -> Sequence[str]:
    """Words after `--` behind targets: arguments of the scripts among them; InvalidInput for an obvious command."""
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
    from benchwright.kinds.spec.read.document import looks_like_one

    return all(looks_like_one(shipped_file(target)) for target in targets)


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
        return ",".join(map(str, value)) if option.metavar in ("LIST", "N,N") else shlex.join(map(str, value))
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
