"""The keys of a suite's entries: the one table that checks files, and that the JSON Schema for editors is made from."""

from __future__ import annotations

from functools import cache
from typing import Any

from benchwright.core.errors import did_you_mean
from benchwright.kinds.suite.dialect import SuiteDialect, dialects
from benchwright.kinds.yaml.merge import DELETE
from benchwright.kinds.yaml.value_types import (
    ANYTHING,
    DURATION,
    FLAG,
    FREE,
    SCALAR,
    Either,
    Key,
    ListOf,
    MapOf,
    Problem,
    Table,
    ValueType,
    choice,
    count,
    number,
    text,
)

PER_DEVICE = ("per_gpu", "per-gpu")
TOGETHER = ("njobs", "n_jobs", "n-jobs")
LAUNCHERS = ("torchrun", "accelerate")
ENDPOINT = "endpoint"  # our own client
INCLUDE = "include"
EVERY = "*"  # the entry that is laid over every other
PRIVATE = "_"  # what the name of an entry that never runs begins with

_TEXTS = Either((text(), ListOf(text())))
_WORDS = Either((MapOf(Either((SCALAR, ListOf(SCALAR)))), ListOf(SCALAR)))
_LAUNCHER = Either(
    (
        choice("a launcher", LAUNCHERS),
        Table(
            "a launcher",
            {
                "name": Key(choice("a launcher", LAUNCHERS), "torchrun or accelerate"),
                "processes": Key(count(1, "a number of processes"), "on each machine; default: one for each device"),
                "args": Key(_WORDS, "for the launcher itself"),
            },
        ),
    )
)
_PLAN = Table(
    "a plan",
    {
        "method": Key(
            choice("a plan", (*PER_DEVICE, *TOGETHER)), "per_gpu: one process for each device; njobs: n processes"
        ),
        "n": Key(count(1, "a number of processes"), "of njobs"),
        "launcher": Key(_LAUNCHER, "what starts the processes of a job"),
    },
)
_VALIDATION = Table(
    "validation",
    {
        "usage": Key(
            Table(
                "validation.usage",
                {
                    "gpu_load_threshold": Key(number(), "least load of a GPU, 0 to 1"),
                    "gpu_mem_threshold": Key(number(), "least share of a GPU's memory, 0 to 1"),
                },
                open=True,
            ),
            "how busy the GPUs must be",
        )
    },
    open=True,
)
_STOP = Either(
    (
        text(says="a stop rule", example="100 (steps), 30s or 1%"),
        count(1, "a number of steps"),
        Table(
            "stop",
            {
                "steps": Key(count(1, "a number of steps"), "exactly so many measured steps"),
                "seconds": Key(DURATION, "measured time"),
                "observations": Key(count(1, "a number of observations"), "so many rates, each over `interval`"),
                "interval": Key(DURATION, "of an observation; default: 1s"),
                "precision": Key(Either((text(), number())), "until the median is known within this, such as 1%"),
            },
        ),
    )
)
_WARMUP = Either(
    (
        count(0, "a number of steps"),
        text(says="a warm-up", example="auto, 20 (steps) or 5s"),
        Table(
            "warmup",
            {
                "steps": Key(count(0, "a number of steps"), "of the loop"),
                "seconds": Key(DURATION, "from the loop's first step"),
            },
        ),
    )
)


def _side(noun: str, script: str) -> ValueType:
    return Table(
        noun,
        {
            "argv": Key(_WORDS, "its arguments"),
            "script": Key(text(), script),
            "ready": Key(text(), "when it can be used: tcp:HOST:PORT or http://…"),
            "ready_timeout": Key(DURATION, "how long to wait for that"),
        },
        open=True,
    )


_OWN = {
    "inherits": Key(text(), "the entry that this one is laid over"),
    "enabled": Key(FLAG, "false: not run unless --select names it"),
    "name": Key(text(), "of a job of a matrix, with {key} for the values"),
    "description": Key(ANYTHING, "for readers"),
    "notes": Key(ANYTHING, "for readers"),
    "url": Key(_TEXTS, "where its model or data come from"),
    "group": Key(text(), "of benchmarks that share an extra folder; default: the name"),
    "tags": Key(Either((text(), ListOf(SCALAR))), "words for --select; those of what it inherits are added"),
    "tag": Key(ANYTHING, "parts of the names of files"),
    "weight": Key(number(says="a weight", example="0 or more", least=0), "in the score"),
    "definition": Key(
        Either(
            (
                text(),
                Table(
                    "a definition",
                    {
                        "git": Key(text(), "the repository to clone"),
                        "branch": Key(text(), "of the repository; default: main"),
                    },
                ),
            )
        ),
        "the folder that holds main.py, relative to the file, or {git, branch}",
    ),
    "command": Key(
        Either((text(), ListOf(SCALAR))),
        "what to run instead of main.py: one line, or a list of words; argv is added; without a definition, in the folder of the file",
    ),
    "shell": Key(FLAG, "true: the command is run with /bin/sh, for pipes and &&"),
    "script": Key(text(), "a Python script to run instead of main.py; without a definition, relative to the file"),
    "main": Key(text(), "the script of the folder to run; default: main.py"),
    "prepare": Key(Either((text(), FLAG)), "the script that prepares data; prepare.py without it, false: none"),
    "install_group": Key(text(), "entries with the same one share an environment; default: the group"),
    "install_variant": Key(text(), "of requirements.VARIANT.txt, or unpinned; default: the system's arch"),
    "pip": Key(
        Table("pip", {"constraints": Key(_TEXTS, "versions"), "args": Key(_TEXTS, "for installing")}),
        "how to install",
    ),
    "venv": Key(ANYTHING, "ignored: environments are made by uv"),
    "argv": Key(
        _WORDS, "arguments: a map (true: the key alone; null or false: none; a list: joined by commas) or a list"
    ),
    "env": Key(MapOf(SCALAR), "environment variables; null removes one"),
    "plan": Key(_PLAN, "which processes run together"),
    "launcher": Key(_LAUNCHER, "what starts the processes of a job"),
    "torchrun": Key(ANYTHING, "true or arguments: started by torchrun"),
    "accelerate": Key(ANYTHING, "true or arguments: started by accelerate"),
    "use_deepspeed": Key(FLAG, "for scripts that look at it"),
    "deepspeed": Key(ANYTHING, "for scripts that look at it"),
    "gradient_accumulation_steps": Key(count(1, "a number of steps"), "for scripts that look at it"),
    "num_machines": Key(count(1, "a number of machines"), "how many machines it needs"),
    "max_duration": Key(DURATION, "limit for one launch; default: 600"),
    "requires_capabilities": Key(_TEXTS, "conditions on the system, such as gpu['count'] > 1"),
    "capabilities": Key(ANYTHING, "of the system"),
    "stop": Key(_STOP, "when the loop was measured enough: 100 (steps), 30s, 1%, or a map"),
    "warmup": Key(_WARMUP, "how much of the loop's beginning does not count: auto, 20 (steps) or 5s"),
    "loop": Key(text(), "the loop that counts; default: the first named train"),
    "metrics": Key(MapOf(text()), "numbers to read from the output: name → pattern, as --metric"),
    "labels": Key(MapOf(SCALAR), "kept with the results"),
    "validation": Key(_VALIDATION, "settings of validation layers"),
    "matrix": Key(MapOf(Either((SCALAR, ListOf(ANYTHING)))), "keys and their values: one entry for each combination"),
    "job": Key(ANYTHING, "the entry that is made for each combination of the matrix"),
    "client": Key(
        Either(
            (choice("a client", (ENDPOINT,)), _side("client", "a script of the folder, or endpoint; default: main.py"))
        ),
        "what measures the server; endpoint: our client for servers of language models",
    ),
    "server": Key(_side("server", "a script of the folder or a program; default: server.py"), "the server"),
    "docker_image": Key(text(), "the image of its container, instead of docker.image of the system file"),
    "docker": Key(ANYTHING, "settings of containers"),
    "mem": Key(ANYTHING, "what is known of its memory"),
    "model": Key(ANYTHING, "for scripts that look at it"),
    "system": Key(ANYTHING, "kept apart: the system file says it"),
    "dirs": Key(MapOf(text()), "kept for scripts"),
    "run_name": Key(text(), "kept for scripts"),
    "config_base": Key(text(), "the folder that definition is relative to; default: that of the file"),
    "config_file": Key(text(), "the file"),
}
JOB = "job"


def entry_table() -> Table:
    """The keys of an entry, those of dialects included."""
    return _table(dialects())


@cache
def _table(known: tuple[SuiteDialect, ...]) -> Table:
    return Table("an entry", _OWN | {key: value for dialect in known for key, value in dialect.entry_keys().items()})


def entry_problem(entry: dict[Any, Any]) -> Problem | None:
    """The first problem of an entry as written; None if there is none."""
    keys = entry_table().keys
    for key, value in entry.items():
        known = keys.get(key)
        if known is None:
            found = _unknown(key)
        elif value is DELETE or value is None:
            continue
        elif key == JOB:
            found = _job_problem(value)
        else:
            found = known.type.problem(value, key)
        if found is not None:
            return found.below(key)
    return None


def respelt(entry: dict[Any, Any]) -> tuple[dict[Any, Any], tuple[tuple[Any, ...], ...]]:
    """`entry` with `install_variant` for `install-variant`, and the ways to the keys that were changed.

    Suites in the wild spell keys so; ignoring them is not what anybody meant.
    """
    changed: list[tuple[object, ...]] = []
    known = entry_table().keys
    if any(key not in known for key in entry):
        meant = {key: _meant(key) for key in entry}
        changed += [(key,) for key in entry if meant[key] != key]
        entry = {meant[key]: value for key, value in entry.items()}
    if isinstance(entry.get(JOB), dict):
        job, within = respelt(entry[JOB])
        changed += [(JOB, *path) for path in within]
        entry = entry | {JOB: job} if within else entry
    return entry, tuple(changed)


def _meant(key: object) -> object:
    known = entry_table().keys
    word = key.replace("-", "_") if isinstance(key, str) and key not in known else key
    return word if word in known else key


def _unknown(key: object) -> Problem | None:
    if isinstance(key, str) and key.startswith(FREE):
        return None
    if key == "<<<":
        return Problem(
            (), "'<<<' is understood only in a map with !expand-dot", "use << to merge a map in", at_key=True
        )
    near = did_you_mean(str(key), entry_table().keys)
    remedy = near or "a key of your own begins with x- or _"
    return Problem((), f"'{key}' is not a key of an entry", remedy, at_key=True)


def _job_problem(value: object) -> Problem | None:
    if not isinstance(value, dict):
        return Problem((), "job is not a map", "it is an entry, with a name such as 'resnet-{batch}'")
    return entry_problem(value)


def json_schema() -> dict[str, object]:
    """The JSON Schema of suite files, for editors."""
    table = entry_table()
    entry = table.schema()
    entry["properties"][JOB] = {"description": table.keys[JOB].meaning, "$ref": "#/definitions/entry"}
    entry |= {"type": "object", "patternProperties": {"^(x-|_)": {}}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "Written by docs/generate_schema.py; do not edit.",
        "title": "Benchwright suite",
        "description": "Entries by name. A name that begins with _ is never run; '*' is laid over every entry.",
        "type": "object",
        "properties": {
            INCLUDE: {
                "description": "files that are read first, relative to this one",
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            }
        },
        "additionalProperties": {"$ref": "#/definitions/entry"},
        "definitions": {"entry": entry},
    }
