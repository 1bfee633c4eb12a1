"""What a benchfile wants done: asked of benchwright, one JSON line each, and answered by one.

The question goes to the descriptor in `answers`, since a benchfile may print what it likes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import IO, Any

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)\}")

names: dict[str, Any] = {}  # what placeholders stand for
variables: dict[str, str] = {}  # of the environment that benchwright gives every process of the benchmark
planned: list[dict[str, Any]] | None = None  # the processes of a run that is being planned
questions: IO[str] | None = None
answers: IO[str] | None = None


async def perform(action: str, words: Sequence[Any], *, pack: Any, options: Mapping[str, Any] | None = None) -> Any:
    """Asks benchwright to do it and waits; returns its exit code. Raises RuntimeError where there is no answer.

    While a run is planned it is only noted.
    """
    asked = described(action, words, pack, options or {})
    if planned is not None:
        planned.append(asked)
        return 0
    assert questions is not None
    assert answers is not None
    questions.write(json.dumps(asked) + "\n")
    questions.flush()
    answer = json.loads(answers.readline() or "{}")
    if "return_code" not in answer:
        raise RuntimeError("benchwright is gone")
    return answer["return_code"]


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
    """What every process of the benchmark finds in its environment."""
    return {**variables, "MILABENCH_CONFIG": json.dumps(pack.config, default=str)}


def own_environment(pack: Any) -> dict[str, Any]:
    """What the benchfile's `make_env` and the entry add to it or change."""
    common = environment(pack)
    own = {name: value for name, value in pack.make_env().items() if str(value) != common.get(name)}
    return {**own, **pack.config.get("env", {})}


def texts(env: Mapping[str, Any]) -> dict[str, str | None]:
    return {str(name): None if value is None else str(value) for name, value in env.items()}


def fill(text: str, config: Mapping[str, Any]) -> str:
    def found(match: re.Match[str]) -> str:
        value: Any = {**names, **config}
        for part in match[1].split("."):
            if not isinstance(value, Mapping) or part not in value:
                return match[0]
            value = value[part]
        return str(value)

    return _PLACEHOLDER.sub(found, text)
