"""Values of options as users write them; InvalidInput names the option."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from benchwright.core.errors import InvalidInput
from benchwright.core.numbers.quantities import parse_duration, parse_size
from benchwright.core.settings import RunSettings


def words_of(text: str, *, where: str) -> tuple[str, ...]:
    """As a shell would split it."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidInput(
            f"cannot be split into words: {error}", where=where, remedy="check the quotes", text=text
        ) from None


def script_args_of(text: str) -> tuple[str, ...]:
    """As a shell would split it; `--batch_size 8,--height 64` too, as users of MLAgility write it."""
    if not any(quote in text for quote in "'\"\\"):
        text = re.sub(r",(?=--[A-Za-z])", " ", text)
    return words_of(text, where="--script-args")


def comma_words(texts: Iterable[str]) -> tuple[str, ...]:
    """The words of comma lists, each given any number of times."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def shard_of(text: str | None) -> tuple[int, int] | None:
    """`3/8`."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text, re.ASCII)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise InvalidInput(f"'{text}' is not a shard", where="--shard", remedy="write 3/8 for the third of eight")
    return int(found[1]), int(found[2])


def environment_change_of(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not name or "\0" in text:
        raise InvalidInput(
            f"'{text}' is not a variable", where="--env", remedy="write NAME=VALUE, or NAME to remove it"
        )
    return name, value if equals else None


def label_of(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidInput(f"'{text}' is not a label", where="--label", remedy="write KEY=VALUE")
    return key, value


def cores_of(text: str) -> tuple[int, ...]:
    cores: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part, re.ASCII)
        if found is None:
            raise InvalidInput(f"'{text}' is not a list of cores", where="--cores", remedy="write 0,2-3")
        cores += range(int(found[1]), int(found[2] or found[1]) + 1)
    if not cores:
        raise InvalidInput(f"'{text}' names no core", where="--cores", remedy="write 0,2-3")
    return tuple(dict.fromkeys(cores))


def timeout_of(text: str) -> float:
    seconds = parse_duration(text, where="--timeout")
    if seconds <= 0:
        raise InvalidInput(
            f"{text} is not a time limit", where="--timeout", remedy="write 90s or 10m, or drop --timeout for no limit"
        )
    return seconds


def stop_grace_of(text: str | None) -> float:
    return RunSettings().stop_grace_s if text is None else parse_duration(text, where="--stop-grace")


def max_memory_of(text: str | None) -> int | None:
    if text is None:
        return None
    size = parse_size(text, where="--max-memory")
    if size <= 0:
        raise InvalidInput(f"{text} is not a limit", where="--max-memory", remedy="write 8GiB or 512MiB")
    return size


def interleave_of(asked: bool | None, turns: str | None) -> bool | None:
    if turns is None:
        return asked
    if asked is False:
        raise InvalidInput("contradicts --no-interleave", where="--turns", remedy="drop one of them")
    return True


def turn_of(text: str | None) -> float | None:
    if text is None:
        return None
    seconds = parse_duration(text, where="--turns")
    if seconds < 0.05:
        raise InvalidInput(
            f"{text} is too short", where="--turns", remedy="a turn ends at a step: give 50ms or more, such as 500ms"
        )
    return seconds


def sample_interval_of(text: str) -> float:
    seconds = parse_duration(text, where="--sample-interval")
    if seconds < 0.01:
        raise InvalidInput(
            f"{text} is too short", where="--sample-interval", remedy="sampling takes a few ms: give 10ms or more"
        )
    return seconds
