"""Requests of a benchfile to benchwright: one JSON line each, answered by one.

The question goes to the descriptor in `questions`, since a benchfile may print what it likes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import IO, Any

options: dict[str, Any] = {}  # of the system file
surroundings = dict(os.environ)  # before the benchfile could change them
variables: dict[str, str] = {}  # of the environment that benchwright gives every process of the benchmark
planned: list[dict[str, Any]] | None = None  # the processes of a run that is being planned
questions: IO[str] | None = None
answers: IO[str] | None = None


class Pack:
    """A benchmark that commands are made for; `pack` has its methods."""


async def perform(action: str, words: Sequence[Any], *, pack: Any, options: Mapping[str, Any] | None = None) -> Any:
    """Asks benchwright to do it and waits; returns its exit code. Raises RuntimeError where there is no answer.

    While a run is planned it is only noted.
    """
    asked = described(action, words, pack, options or {})
    if planned is not None:
        planned.append(asked)
        return 0
    return ask(asked, "return_code")


def execute(words: Sequence[Any], cwd: str, env: Mapping[str, str]) -> None:
    """A program that must succeed, outside any plan; RuntimeError says which one failed."""
    if planned is not None:
        raise RuntimeError(f"a run plan cannot start {words[0]}: do that in install or prepare")
    argv = [str(word) for word in words]
    code = ask({"do": "execute", "argv": argv, "cwd": cwd, "env": dict(env)}, "return_code")
    if code != 0:
        raise RuntimeError(f"{' '.join(argv):.200} exited with code {code}")


def fill(text: str) -> str:
    """The text with its placeholders filled, `auto(…)` included."""
    return str(ask({"fill": text}, "text")) if "{" in text or "(" in text else text


def ask(question: Mapping[str, Any], expected: str) -> Any:
    assert questions is not None
    assert answers is not None
    questions.write(json.dumps(question) + "\n")
    questions.flush()
    answer = json.loads(answers.readline() or "{}")
    if expected not in answer:
        raise RuntimeError("benchwright is gone")
    return answer[expected]


def described(action: str, words: Sequence[Any], pack: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """A process, or another action, as data."""
    config = pack.config
    about: dict[str, Any] = {"do": action, "argv": [str(word) for word in words]}
    about["cwd"] = str(options.get("cwd") or pack.working_directory)
    about["env"] = texts({**own_environment(pack), **(options.get("env") or {})})
    about.update(tag=config["tag"], devices=config.get("devices") or [])
    about.update(device=config.get("device"), job=config.get("job-number"))
    about.update({name: options.get(name) for name in ("use_stdout", "node_name", "node_rank", "role", "sequence")})
    return about


def environment(pack: Any) -> dict[str, str]:
    """Environment of every process of the benchmark."""
    return {**variables, "MILABENCH_CONFIG": json.dumps(pack.config, default=str)}


def own_environment(pack: Any) -> dict[str, Any]:
    """Variables that the entry and the benchfile, in its `make_env` or in its own environment, add or change."""
    common = environment(pack)
    own = {name: value for name, value in pack.make_env().items() if str(value) != common.get(name)}
    changed = {name: value for name, value in os.environ.items() if surroundings.get(name) != value}
    return {**changed, **own, **pack.config.get("env", {})}


def texts(env: Mapping[str, Any]) -> dict[str, str | None]:
    return {str(name): None if value is None else str(value) for name, value in env.items()}
