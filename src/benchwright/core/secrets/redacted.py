"""Benchmarks and runs without the secrets that programs get, for writing and showing."""

from __future__ import annotations

from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark, Workload
from benchwright.core.run import Run
from benchwright.core.secrets.redact import REDACTED, redact, redact_body, redact_text, redact_words

# Fields with the user's own words. Metric patterns and names stay, or nothing could be found again.
_FIELDS = "workload env labels tags parameters environment folder source notes fault withheld validation".split()

# Of the test of a specification.
_SPEC_VALUES = ("values", "string_map", "programs", "description", "converter", "profiler")
_SPEC_LINES = ("commands", "arguments")
_SPEC_STEPS = ("first", "preprocess", "postprocess", "last")
_SPEC_FILES = ("files", "input_files", "libraries", "output_files", "goldens")


def without_secrets(benchmark: Benchmark) -> Benchmark:
    """The same benchmark with every secret replaced; idempotent."""
    before = msgspec.to_builtins(benchmark)
    after = {**before, **{field: redact_body(before[field]) for field in _FIELDS if field in before}}
    after["env"] = before["env"] | redact({n: v for n, v in before["env"].items() if v is not None})
    if "argv" in after["workload"]:  # redacted word by word
        after["workload"]["argv"] = _shown_words(benchmark.workload)
    hooks = {
        name: {**hook, "argv": _shown_words(getattr(benchmark.hooks, name))} for name, hook in before["hooks"].items()
    }
    after["hooks"] = hooks
    if benchmark.spec is not None:
        after["spec"] = _spec_without_secrets(before["spec"])
    return benchmark if after == before else msgspec.convert(after, Benchmark)


def _spec_without_secrets(spec: dict[str, Any]) -> dict[str, Any]:
    """Lines, values and locations are the user's; keys and sums of files are needed to find them again."""
    after = {**spec, **{field: redact_body(spec[field]) for field in _SPEC_VALUES if field in spec}}
    for field in _SPEC_LINES:
        if field in spec:
            after[field] = tuple(map(redact_text, spec[field]))
    for field in _SPEC_STEPS:
        if field in spec:
            steps = spec[field]
            after[field] = {**redact_body(steps), "commands": tuple(map(redact_text, steps["commands"]))}
    for field in _SPEC_FILES:
        if field in spec:
            after[field] = tuple({**each, "location": redact_text(each["location"])} for each in spec[field])
    return after


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
    """What is executed, or the one line for a shell, without secrets."""
    return tuple(map(redact_text, work.words)) if work.shell else redact_words(work.words)


def secrets_of(benchmark: Benchmark) -> list[str]:
    """The variables and arguments whose values are not written to disk although the program needs them."""
    shown = without_secrets(benchmark)
    found = [name for name, value in shown.env.items() if value != benchmark.env[name]]
    for old, new in zip(benchmark.written_words, shown.written_words, strict=True):
        if old != new:
            found.append(f"'{new}'" if new != REDACTED else "an argument")
    return list(dict.fromkeys(found))
