"""Named sets of sbatch's options, as the dialects of suites know them: `--slurm-profile NAME`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.dialect import dialects

# What the holder of nodes decides itself: it is one process on each of whole nodes.
_OWN = re.compile(
    r"(--ntasks|--ntasks-per-node|--exclusive|--mem|--output|--error|--job-name|--wait|-n|-o|-e|-J)(=.*)?"
)
_NODES = re.compile(r"(?:--nodes=|-N)(\d+)")
_OF_TASKS = "--gpus-per-task="


class SlurmProfile(msgspec.Struct, frozen=True):
    """`options`: for sbatch. `nodes`: how many it asks for; None: it does not say."""

    options: tuple[str, ...]
    nodes: int | None = None


def slurm_profile(name: str, folders: Sequence[str]) -> SlurmProfile:
    """The profile of that name in the first of `folders` that has any; InvalidInput if there is none."""
    found = [known for folder in folders for dialect in dialects() if (known := dialect.slurm_profiles(folder))]
    where = "--slurm-profile"
    if not found:
        looked = ", ".join(dict.fromkeys(map(os.path.abspath, folders)))
        remedy = "write sbatch's options themselves: --slurm '--partition=gpu --time=60'"
        raise InvalidInput(f"no file of profiles in {looked}", where=where, remedy=remedy)
    for known in found:
        if name in known.profiles:
            return _without_own(known.profiles[name])
    names = ", ".join(name for known in found for name in known.profiles)
    raise InvalidInput(f"'{name}' is not in {found[0].file}", where=where, remedy=f"choose one of {names}")


def _without_own(words: Sequence[str]) -> SlurmProfile:
    """The options left for sbatch when benchwright asks for whole nodes."""
    nodes = next((int(match[1]) for word in words if (match := _NODES.fullmatch(word))), None)
    kept = [word for word in words if not _OWN.fullmatch(word) and not _NODES.fullmatch(word)]
    options = [word.replace(_OF_TASKS, "--gpus-per-node=") if word.startswith(_OF_TASKS) else word for word in kept]
    return SlurmProfile(tuple(options), nodes)
