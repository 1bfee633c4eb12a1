"""Command-line overrides for the tasks of a task file."""

from __future__ import annotations

import re

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.options.table import Options


class TaskOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """`num_gpus`, `epochs`, `kvstore` and `dtype` replace the command's flag, or are left out with a note if it has none.
    `flags` are replaced or added; None removes. The four of a policy belong together: a command from the command line,
    read with the patterns of a section."""

    framework: str | None = None
    metrics_suffix: str | None = None
    num_gpus: int | None = None
    epochs: int | None = None
    kvstore: str | None = None
    dtype: str | None = None
    flags: dict[str, str | None] = {}
    metrics_policy: str | None = None
    command_to_execute: str | None = None
    data_set: str | None = None
    metrics_template: str | None = None  # the file with the policy; None: the task file itself
    shell: bool = False
    workers: int | None = None  # DEEPLEARNING_WORKERS_COUNT, which `average_aggregate` needs

    def check(self) -> None:
        """InvalidInput if a value or a combination makes no sense."""
        if self.num_gpus is not None and self.num_gpus < 0:
            raise InvalidInput(f"{self.num_gpus} is not a number of GPUs", where="--num-gpus", remedy="give 0 or more")
        if self.epochs is not None and self.epochs < 1:
            raise InvalidInput(f"{self.epochs} is not a number of epochs", where="--epochs", remedy="give 1 or more")
        for option, text in (("--framework", self.framework), ("--metrics-suffix", self.metrics_suffix)):
            if text is not None and not text.strip():
                raise InvalidInput("the name is empty", where=option, remedy="leave the option out, or give a name")
        if self.metrics_policy is not None and self.command_to_execute is None:
            raise InvalidInput(
                f"policy '{self.metrics_policy}' needs a command to measure",
                where="--metrics-policy",
                remedy="give it with --command-to-execute",
            )
        if self.metrics_policy is None and self.metrics_template is not None:
            raise InvalidInput(
                "a metrics template is only read for a policy",
                where="--metrics-template",
                remedy="name the policy with --metrics-policy",
            )


_SAME = (
    *("framework", "metrics_suffix", "num_gpus", "epochs", "kvstore", "dtype", "metrics_policy"),
    *("command_to_execute", "data_set", "metrics_template", "shell", "workers"),
)


def overrides_of(options: Options) -> TaskOverrides:
    """What the options say about tasks; InvalidInput for what is not a flag."""
    flags: dict[str, str | None] = dict(parse_flag_option(text) for text in options.set_flags)
    flags |= {check_flag_name(name, where="--remove-flag"): None for name in options.remove_flags}
    return TaskOverrides(**{name: getattr(options, name) for name in _SAME}, flags=flags)


def parse_flag_option(text: str) -> tuple[str, str]:
    """Name and value from `--set-flag batch-size=64`; keeps leading dashes, for flags such as `-b`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(
            f"'{text}' has no value", where="--set-flag", remedy="write NAME=VALUE; --remove-flag NAME removes a flag"
        )
    return check_flag_name(name, where="--set-flag"), value


def check_flag_name(name: str, *, where: str) -> str:
    """`name` itself if it is a valid name of a flag."""
    if not re.fullmatch(r"-{0,2}[A-Za-z0-9_][\w.-]*", name):
        raise InvalidInput(f"'{name}' is not the name of a flag", where=where, remedy="write it like batch-size")
    return name
