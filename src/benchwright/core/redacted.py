"""Benchmarks and runs without the secrets that programs get, for writing and showing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from benchwright.core.benchmark import Benchmark, Workload
from benchwright.core.run import Run
from benchwright.core.secrets import REDACTED, own_names, redact, redact_body, redact_text, redact_words

# Fields with the user's own words. Metric patterns and names stay, or nothing could be found again.
_FIELDS = "workload env labels tags parameters environment folder source notes fault withheld validation data".split()


def without_secrets(benchmark: Benchmark) -> Benchmark:
    """The same benchmark with every secret replaced; idempotent."""
    try:
        body = msgspec.msgpack.encode(benchmark)
    except (ValueError, OverflowError, TypeError):  # such as text that is not valid Unicode
        return _replaced(benchmark)
    return benchmark if _has_none(body, own_names()) else _replaced(benchmark)


@lru_cache(maxsize=1024)  # a server shows the same benchmarks again and again
def _has_none(body: bytes, own: tuple[str, ...]) -> bool:
    benchmark = msgspec.msgpack.decode(body, type=Benchmark)
    return _replaced(benchmark) is benchmark


def _replaced(benchmark: Benchmark) -> Benchmark:
    before = msgspec.to_builtins(benchmark)
    after = {**before, **{field: redact_body(before[field]) for field in _FIELDS if field in before}}
    after["env"] = before["env"] | redact({n: v for n, v in before["env"].items() if v is not None})
    if "argv" in after["workload"]:  # redacted word by word
        after["workload"]["argv"] = _shown_words(benchmark.workload)
    hooks = {
        name: {**hook, "argv": _shown_words(getattr(benchmark.hooks, name))} for name, hook in before["hooks"].items()
    }
    after["hooks"] = hooks
    return benchmark if after == before else msgspec.convert(after, Benchmark)


def run_without_secrets(run: Run) -> Run:
    """For imported runs, whose names may hold secrets too: some tools name a benchmark by its command."""
    replace = msgspec.structs.replace
    results = tuple(
        replace(
            result,
            benchmark=replace(without_secrets(result.benchmark), name=redact_text(result.benchmark.name)),
            detail=_text(result.detail),
            launches=tuple(replace(x, job=redact_text(x.job), detail=_text(x.detail)) for x in result.launches),
        )
        for result in run.results
    )
    return replace(run, results=results, labels=redact_body(run.labels))


def _text(detail: str | None) -> str | None:
    return None if detail is None else redact_text(detail)


def _shown_words(work: Workload) -> tuple[str, ...]:
    """The command, or the one line for a shell, without secrets."""
    return tuple(map(redact_text, work.words)) if work.shell else redact_words(work.words)


def secrets_of(benchmark: Benchmark) -> list[str]:
    """The variables and arguments whose values are not written to disk although the program needs them."""
    shown = without_secrets(benchmark)
    found = [name for name, value in shown.env.items() if value != benchmark.env[name]]
    written, kept = ([*each.written_words, *_texts(each.data)] for each in (benchmark, shown))
    for old, new in zip(written, kept, strict=True):
        if old != new:
            found.append(f"'{new}'" if new != REDACTED else "an argument")
    return list(dict.fromkeys(found))


def _texts(body: object) -> Iterator[str]:
    """Every text in JSON values."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict | list):
        for value in body.values() if isinstance(body, dict) else body:
            yield from _texts(value)
