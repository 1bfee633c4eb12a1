"""The keys of a suite's entries: the one table that checks files, and that the JSON Schema for editors is made from."""

from __future__ import annotations

from typing import Any

from benchwright.core.errors import did_you_mean
from benchwright.kinds.suite.read.value_kinds import (
    Anything,
    Choice,
    Duration,
    Either,
    Flag,
    Key,
    ListOf,
    MapOf,
    Number,
    Problem,
    Scalar,
    Text,
    ValueKind,
    count,
    table,
)
from benchwright.kinds.suite.yaml.merge import DELETE

PER_DEVICE = ("per_gpu", "per-gpu")
TOGETHER = ("njobs", "n_jobs", "n-jobs")
LAUNCHERS = ("torchrun", "accelerate")
INCLUDE = "include"
EVERY = "*"  # the entry that is laid over every other
PRIVATE = "_"  # what the name of an entry that never runs begins with
_FREE = ("x-", "_")  # keys of a user's own

_TEXTS = Either((Text(), ListOf(Text())))
_WORDS = Either((MapOf(Either((Scalar(), ListOf(Scalar())))), ListOf(Scalar())))
_LAUNCHER = Either(
    (
        Choice("a launcher", LAUNCHERS),
        table(
            "a launcher",
            (
                Key("name", Choice("a launcher", LAUNCHERS), "torchrun or accelerate"),
                Key("processes", count(1, "a number of processes"), "on each machine; without it one for each device"),
                Key("args", _WORDS, "for the launcher itself"),
            ),
        ),
    )
)
_PLAN = table(
    "a plan",
    (
        Key(
            "method",
            Choice("a plan", (*PER_DEVICE, *TOGETHER)),
            "per_gpu: one process for each device; njobs: n processes",
        ),
        Key("n", count(1, "a number of processes"), "of njobs"),
        Key("launcher", _LAUNCHER, "what starts the processes of a job"),
    ),
)
_VOIR = table(
    "voir",
    (
        Key(
            "options",
            table(
                "voir.options",
                (
                    Key(
                        "stop",
                        Either(
                            (
                                count(0, "a number of observations"),
                                table(
                                    "stop",
                                    (
                                        Key("steps", count(1, "a number of steps"), "measured steps"),
                                        Key("seconds", Duration(), "measured time"),
                                    ),
                                ),
                            )
                        ),
                        "how many observations are measured; {steps: N} or {seconds: T} instead",
                    ),
                    Key(
                        "interval", Duration(), 'how long one observation takes, such as "1s"; a number: so many steps'
                    ),
                    Key("skip", Number(says="a number of observations", example="0 or more", least=0), "warm-up"),
                    Key(
                        "gpu_poll",
                        Number(says="a number of seconds", example="0.5", least=0),
                        "how often GPUs are looked at",
                    ),
                    Key("dash", Anything(), "voir's own dashboard"),
                ),
                open=True,
            ),
            "settings of the script's voirfile",
        ),
    ),
    open=True,
)
_VALIDATION = table(
    "validation",
    (
        Key(
            "usage",
            table(
                "validation.usage",
                (
                    Key("gpu_load_threshold", Number(), "least load of a GPU, 0 to 1"),
                    Key("gpu_mem_threshold", Number(), "least share of a GPU's memory, 0 to 1"),
                ),
                open=True,
            ),
            "how busy the GPUs must be",
        ),
    ),
    open=True,
)
_STOP = Either(
    (
        Text(says="a stop rule", example="100 (steps), 30s or 1%"),
        count(1, "a number of steps"),
        table(
            "stop",
            (
                Key("steps", count(1, "a number of steps"), "exactly so many measured steps"),
                Key("seconds", Duration(), "measured time"),
                Key("observations", count(1, "a number of observations"), "so many rates, each over `interval`"),
                Key("interval", Duration(), "of an observation; 1s without it"),
                Key("precision", Either((Text(), Number())), "until the median is known within this, such as 1%"),
            ),
        ),
    )
)
_WARMUP = Either(
    (
        count(0, "a number of steps"),
        Text(says="a warm-up", example="auto, 20 (steps) or 5s"),
        table(
            "warmup",
            (
                Key("steps", count(0, "a number of steps"), "of the loop"),
                Key("seconds", Duration(), "from the loop's first step"),
            ),
        ),
    )
)


def _side(noun: str, script: str) -> ValueKind:
    return table(
        noun,
        (
            Key("argv", _WORDS, "its arguments"),
            Key("script", Text(), script),
            Key("ready", Text(), "when it can be used: tcp:HOST:PORT or http://…"),
            Key("ready_timeout", Duration(), "how long to wait for that"),
        ),
        open=True,
    )


ENTRY = table(
    "an entry",
    (
        Key("inherits", Text(), "the entry that this one is laid over"),
        Key("enabled", Flag(), "false: not run unless --select names it"),
        Key("name", Text(), "of a job of a matrix, with {key} for the values"),
        Key("description", Anything(), "for readers"),
        Key("notes", Anything(), "for readers"),
        Key("url", _TEXTS, "where its model or data come from"),
        Key("group", Text(), "of benchmarks that share an extra folder; the name without it"),
        Key("tags", Either((Text(), ListOf(Scalar()))), "words for --select; those of what it inherits are added"),
        Key("tag", Anything(), "parts of the names of files"),
        Key("weight", Number(says="a weight", example="0 or more", least=0), "in the score"),
        Key(
            "definition",
            Either(
                (
                    Text(),
                    table(
                        "a definition",
                        (
                            Key("git", Text(), "the repository to clone"),
                            Key("branch", Text(), "of the repository; main without it"),
                        ),
                    ),
                )
            ),
            "the folder that holds main.py, relative to the file, or {git, branch}",
        ),
        Key("main", Text(), "the script of the folder to run; main.py without it"),
        Key("prepare", Either((Text(), Flag())), "the script that prepares data; prepare.py without it, false: none"),
        Key("install_group", Text(), "entries with the same one share an environment; the group without it"),
        Key("install_variant", Text(), "of requirements.VARIANT.txt, or unpinned; the system's arch without it"),
        Key(
            "pip",
            table("pip", (Key("constraints", _TEXTS, "versions"), Key("args", _TEXTS, "for installing"))),
            "how to install",
        ),
        Key("venv", Anything(), "ignored: environments are made by uv"),
        Key(
            "argv",
            _WORDS,
            "arguments: a map (true: the key alone; null or false: none; a list: joined by commas) or a list",
        ),
        Key("env", MapOf(Scalar()), "environment variables; null removes one"),
        Key("plan", _PLAN, "which processes run together"),
        Key("launcher", _LAUNCHER, "what starts the processes of a job"),
        Key("torchrun", Anything(), "true or arguments: started by torchrun"),
        Key("accelerate", Anything(), "true or arguments: started by accelerate"),
        Key("use_deepspeed", Flag(), "for scripts that look at it"),
        Key("deepspeed", Anything(), "for scripts that look at it"),
        Key("gradient_accumulation_steps", count(1, "a number of steps"), "for scripts that look at it"),
        Key("num_machines", count(1, "a number of machines"), "how many machines it needs"),
        Key("max_duration", Duration(), "limit for one launch; 600 without it"),
        Key("requires_capabilities", _TEXTS, "conditions on the system, such as gpu['count'] > 1"),
        Key("capabilities", Anything(), "of the system"),
        Key("voir", _VOIR, "for scripts with a voirfile; stop, interval and skip count for all"),
        Key("stop", _STOP, "when the loop was measured enough: 100 (steps), 30s, 1%, or a map"),
        Key("warmup", _WARMUP, "how much of the loop's beginning does not count: auto, 20 (steps) or 5s"),
        Key("loop", Text(), "the loop that counts; the first named train without it"),
        Key("metrics", MapOf(Text()), "numbers to read from the output: name → pattern, as --metric"),
        Key("labels", MapOf(Scalar()), "kept with the results"),
        Key("validation", _VALIDATION, "settings of validation layers"),
        Key(
            "matrix",
            MapOf(Either((Scalar(), ListOf(Anything())))),
            "keys and their values: one entry for each combination",
        ),
        Key("job", Anything(), "the entry that is made for each combination of the matrix"),
        Key("client", _side("client", "a script of the folder; main.py without it"), "what measures the server"),
        Key("server", _side("server", "a script of the folder or a program; server.py without it"), "the server"),
        Key("docker_image", Text(), "the image of its container, instead of docker.image of the system file"),
        Key("docker", Anything(), "settings of containers"),
        Key("mem", Anything(), "what is known of its memory"),
        Key("model", Anything(), "for scripts that look at it"),
        Key("system", Anything(), "kept apart: the system file says it"),
        Key("dirs", MapOf(Text()), "kept for scripts"),
        Key("run_name", Text(), "kept for scripts"),
        Key("config_base", Text(), "the folder that definition is relative to; that of the file without it"),
        Key("config_file", Text(), "the file"),
    ),
)
JOB = "job"


def entry_problem(entry: dict[Any, Any]) -> Problem | None:
    """The first thing that is wrong with an entry as it is written; None: nothing."""
    keys = ENTRY.keys
    for key, value in entry.items():
        known = keys.get(key)
        if known is None:
            found = _unknown(key)
        elif value is DELETE or value is None:
            continue
        elif key == JOB:
            found = _job_problem(value)
        else:
            found = known.kind.problem(value, key)
        if found is not None:
            return found.below(key)
    return None


def respelt(entry: dict[Any, Any]) -> tuple[dict[Any, Any], tuple[tuple[Any, ...], ...]]:
    """`entry` with `install_variant` for `install-variant`, and the ways to the keys that were changed.

    Suites in the wild spell keys so; milabench ignores them, which nobody meant.
    """
    changed: list[tuple[Any, ...]] = []
    if any(key not in ENTRY.keys for key in entry):
        meant = {key: _meant(key) for key in entry}
        changed += [(key,) for key in entry if meant[key] != key]
        entry = {meant[key]: value for key, value in entry.items()}
    if isinstance(entry.get(JOB), dict):
        job, within = respelt(entry[JOB])
        changed += [(JOB, *path) for path in within]
        entry = entry | {JOB: job} if within else entry
    return entry, tuple(changed)


def _meant(key: Any) -> Any:
    word = key.replace("-", "_") if isinstance(key, str) and key not in ENTRY.keys else key
    return word if word in ENTRY.keys else key


def _unknown(key: Any) -> Problem | None:
    if isinstance(key, str) and key.startswith(_FREE):
        return None
    if key == "<<<":
        return Problem(
            (), "'<<<' is understood only in a map with !expand-dot", "use << to merge a map in", at_key=True
        )
    near = did_you_mean(str(key), ENTRY.keys)
    remedy = near or "a key of your own begins with x- or _"
    return Problem((), f"'{key}' is not a key of an entry", remedy, at_key=True)


def _job_problem(value: Any) -> Problem | None:
    if not isinstance(value, dict):
        return Problem((), "job is not a map", "it is an entry, with a name such as 'resnet-{batch}'")
    return entry_problem(value)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of suite files, for editors."""
    entry = ENTRY.schema()
    entry["properties"][JOB] = {"description": ENTRY.keys[JOB].meaning, "$ref": "#/definitions/entry"}
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
