"""Values of options as users write them; InvalidInput names the option."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.model import PRECISIONS
from benchwright.core.quantities import parse_duration, parse_size


def words_of(text: str, *, where: str) -> tuple[str, ...]:
    """As a shell would split it."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidInput(
            f"cannot be split into words: {error}", where=where, remedy="check the quotes", text=text
        ) from None


def arguments(text: str) -> tuple[str, ...]:
    """As a shell would split it; `--batch_size 8,--height 64` too, as some write it."""
    if not any(quote in text for quote in "'\"\\"):
        text = re.sub(r",(?=--[A-Za-z])", " ", text)
    return words_of(text, where="--script-args")


def comma_words(texts: Iterable[str]) -> tuple[str, ...]:
    """The words of comma lists, each given any number of times."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def shard(text: str) -> tuple[int, int]:
    """`3/8`."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text, re.ASCII)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise InvalidInput(f"'{text}' is not a shard", where="--shard", remedy="write 3/8 for the third of eight")
    return int(found[1]), int(found[2])


def _environment_change(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not name or "\0" in text:
        raise InvalidInput(
            f"'{text}' is not a variable", where="--env", remedy="write NAME=VALUE, or NAME to remove it"
        )
    return name, value if equals else None


def environment(texts: Sequence[str]) -> dict[str, str | None]:
    return dict(map(_environment_change, texts))


def labels(texts: Sequence[str]) -> dict[str, str]:
    return dict(map(label_of, texts))


def label_of(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidInput(f"'{text}' is not a label", where="--label", remedy="write KEY=VALUE")
    return key, value


def cores(text: str) -> tuple[int, ...]:
    found_cores: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part, re.ASCII)
        if found is None:
            raise InvalidInput(f"'{text}' is not a list of cores", where="--cores", remedy="write 0,2-3")
        found_cores += range(int(found[1]), int(found[2] or found[1]) + 1)
    if not found_cores:
        raise InvalidInput(f"'{text}' names no core", where="--cores", remedy="write 0,2-3")
    return tuple(dict.fromkeys(found_cores))


def counts(text: str, *, where: str, most: int) -> tuple[int, ...]:
    """`1,2,4`, each once."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 9 and 1 <= int(word) <= most for word in words):
        remedy = f"write 1,2,4: whole numbers from 1 to {most:,}"
        raise InvalidInput(f"'{text}' is not a list of counts", where=where, remedy=remedy)
    return tuple(dict.fromkeys(map(int, words)))


def limit(text: str, *, where: str, remedy: str) -> float:
    """A time that is not nothing."""
    seconds = parse_duration(text, where=where)
    if seconds <= 0:
        raise InvalidInput(f"{text} is not a time limit", where=where, remedy=remedy)
    return seconds


def at_least(text: str, *, least_s: float, where: str, remedy: str) -> float:
    seconds = parse_duration(text, where=where)
    if seconds < least_s:
        raise InvalidInput(f"{text} is too short", where=where, remedy=remedy)
    return seconds


def size(text: str, *, where: str, remedy: str) -> int:
    """A size that is not nothing."""
    found = parse_size(text, where=where)
    if found <= 0:
        raise InvalidInput(f"{text} is not a limit", where=where, remedy=remedy)
    return found


def interleave(asked: bool | None, turns: float | None) -> bool | None:
    if turns is None:
        return asked
    if asked is False:
        raise InvalidInput("contradicts --no-interleave", where="--turns", remedy="drop one of them")
    return True


_DEVICE_ALIASES = {"x86": "cpu", "nvidia": "cuda"}


def devices(texts: Sequence[str]) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(_DEVICE_ALIASES.get(word, word) for word in comma_words(texts)))
    for word in words:
        if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", word):
            raise InvalidInput(f"unknown device '{word}'", where="--device", remedy="use cpu, cuda or cuda:1")
    return words


def precisions(texts: Sequence[str]) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(comma_words(texts)))
    for word in words:
        if word not in PRECISIONS:
            remedy = did_you_mean(word, PRECISIONS) or f"use one of {', '.join(PRECISIONS)}"
            raise InvalidInput(f"unknown precision '{word}'", where="--precision", remedy=remedy)
    return words


def shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """`INPUT=1x3x224x224`, once for each input."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, sizes = _shape(text)
        if name in found:
            raise InvalidInput(f"two shapes for '{name}'", where="--shape", remedy="give one per input")
        found[name] = sizes
    return found


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, dims = text.rpartition("=")
    sizes = re.split(r"[x×,]", dims)
    if not equals or not name or not all(re.fullmatch(r"[1-9]\d{0,8}", size.strip()) for size in sizes):
        raise InvalidInput(f"invalid shape '{text}'", where="--shape", remedy="write INPUT=1x3x224x224")
    return name, tuple(int(size) for size in sizes)


def texts_in_json(text: str, *, where: str, remedy: str) -> tuple[str, ...]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidInput("is not a JSON list of types", where=where, remedy=remedy)
    return tuple(found)
