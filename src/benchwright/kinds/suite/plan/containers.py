"""The command line that runs a command inside a container."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Sequence

from benchwright.core.errors import InvalidInput
from benchwright.core.node.system import Container
from benchwright.kinds.suite.words.placeholders import Context, PlaceholderError, fill

# What the agent adds to the environment of the program it starts, which here is the engine.
_AGENTS_VARIABLES = (
    "BENCHPROBE_CONFIG",
    "BENCHWRIGHT_JOB",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "VOIRFILE",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
)


def contained(
    container: Container,
    words: Sequence[str],
    *,
    cwd: str,
    folders: Iterable[str],
    variables: Iterable[str],
    context: Context,
    image: str | None = None,
) -> tuple[str, ...]:
    """`words` in `container`, of `image` if there is one instead of its own: `folders` are there under their own paths, so that what is written there is found here.

    Variables are passed by name, so that their values stay out of the command line; one that is not set stays so.
    """
    try:
        image = image or fill(container.image, context)
        given = [fill(word, context) for word in container.args]
    except PlaceholderError as error:
        raise InvalidInput(error.what, where="system.docker", remedy=error.remedy, text=error.text) from None
    command = [container.executable, "run", *_without_terminal(given)]
    if "--rm" not in given:
        command.append("--rm")
    for folder in outermost(folders):
        command += ["-v", f"{folder}:{folder}"]
    for name in dict.fromkeys([*variables, *_AGENTS_VARIABLES]):
        command += ["-e", name]
    return (*command, "-w", cwd, image, *words)


def outermost(folders: Iterable[str]) -> list[str]:
    """`folders` without those inside another of them."""
    kept: list[str] = []
    for folder in sorted({os.path.normpath(f) for f in folders}):
        if not any(folder == k or folder.startswith(k.rstrip("/") + "/") for k in kept):
            kept.append(folder)
    return kept


def _without_terminal(words: Sequence[str]) -> list[str]:
    """A measured program has no terminal, and engines refuse to give it one."""
    kept = []
    for word in words:
        if word in ("-t", "--tty", "--tty=true"):
            continue
        kept.append("-i" if word in ("-it", "-ti") else word)
    return kept
