"""The options that change flags of a task's command."""

from __future__ import annotations

from benchwright.core.errors import InvalidInput
from benchwright.kinds.command_words import Fail
from benchwright.kinds.tasks.command_rewriting import FlagChange, Rewritten, flag_token, gpus_change, nearest_flag
from benchwright.kinds.tasks.overrides import TaskOverrides


def flag_changes(overrides: TaskOverrides) -> list[FlagChange]:
    """What the options ask for, in the order it is done."""
    changes = [] if overrides.num_gpus is None else [gpus_change(overrides.num_gpus)]
    for flag, value in (("epochs", overrides.epochs), ("kvstore", overrides.kvstore), ("dtype", overrides.dtype)):
        if value is not None:
            changes.append(FlagChange(flag_token(flag), str(value)))
    changes += [FlagChange(flag_token(flag), value, add=True) for flag, value in overrides.flags.items()]
    return changes


def notes_on_missing(
    task: str, rewritten: Rewritten, overrides: TaskOverrides, fail: Fail, own_gpus: int
) -> tuple[str, ...]:
    """A sentence for each option that changed nothing; the driver stayed silent and ran 400 epochs instead of 2."""
    notes = []
    for change in rewritten.missing:
        if change.add:
            raise fail(
                f"{change.flag} cannot be added to this command, it may belong to any part of it",
                0,
                "write it in the command",
            )
        near = nearest_flag(rewritten.line, change.flag)
        instead = (near or change.flag).lstrip("-")
        if change.counts_devices:
            if overrides.num_gpus != own_gpus:
                notes.append(
                    f"--num-gpus {change.value}: {task} is given that many GPUs; its command has no --gpus and was left unchanged"
                )
            continue
        notes.append(
            f"{change.flag} {change.value}: the command of {task} has no {change.flag}"
            + (f" (it has {near})" if near else "")
            + f" and was left unchanged; --set-flag {instead}={change.value} {'changes' if near else 'adds'} it"
        )
    return tuple(notes)


def check_taken_as_typed(overrides: TaskOverrides) -> None:
    """InvalidInput if a flag is to be changed in a command that was itself typed on the command line."""
    for option, value in (
        ("--epochs", overrides.epochs),
        ("--kvstore", overrides.kvstore),
        ("--dtype", overrides.dtype),
        ("--set-flag", overrides.flags or None),
    ):
        if value is not None:
            raise InvalidInput(
                "a command given with --command-to-execute is run as it is typed",
                where=option,
                remedy="write the flag into it",
            )
