"""A Python program that ended by an exception: which one; of a missing module, which interpreter lacks it and which one has it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.run import Result, Run, culprit
from benchwright.core.status import Reason
from benchwright.kinds.registry import kind_of
from benchwright.options.table import OPTIONS

_MISSING = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '([\w.]+)'")
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)(?::\s|$)")
_WANTS_INPUT = "EOFError: EOF when reading a line"
_MOST_LINES = 5  # of an exception's text
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")


def with_missing_modules(run: Run, logs: Mapping[str, Sequence[str]]) -> Run:
    """The same run, in which results that failed by an exception name it, and say who has a module that is missing. `logs`: the last lines of failed jobs."""
    results = tuple(_explained(result, logs) for result in run.results)
    return run if results == run.results else msgspec.structs.replace(run, results=results)


def _explained(result: Result, logs: Mapping[str, Sequence[str]]) -> Result:
    if result.reason is Reason.CRASHED and not result.launches:  # while its models were looked for
        return msgspec.structs.replace(result, detail=explained(result.detail or "", result.benchmark))
    bad = culprit(result.launches) if result.reason is Reason.CRASHED else None
    text = _exception(logs.get(bad.job, ()) if bad else ())
    if not text or "no module" in (result.detail or "") or text in (result.detail or ""):
        return result
    return msgspec.structs.replace(result, detail=f"{result.detail}: {explained(text, result.benchmark)}")


def _exception(log: Sequence[str]) -> str:
    """The exception that ended a Python program, whole, from the last lines of its log; empty if none did."""
    lines = [line for line in log if line.strip()]
    traces = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    after = lines[traces[-1] + 1 :] if traces else lines[-1:]
    at = next((number for number, line in enumerate(after) if _EXCEPTION.match(line)), None)
    return "" if at is None else " ".join(line.strip() for line in after[at : at + _MOST_LINES])


def explained(trouble: str, benchmark: Benchmark) -> str:
    """`trouble`, with what to do if the program wanted input; or which interpreter lacks the module that it names as missing."""
    if trouble.startswith(_WANTS_INPUT):
        line = shlex.join(["benchwright", "run", "--shell", "-c", f"{shlex.join(benchmark.workload.words)} < FILE"])
        return f"{trouble} (measured programs have no input; to read it from a file: {line})"
    found = _MISSING.match(trouble)
    return trouble if found is None else _missing_words(benchmark, found[1])


def _missing_words(benchmark: Benchmark, module: str) -> str:
    """`/usr/bin/python3 has no module 'torch'`, and what to do about it."""
    takes_option = not set(OPTIONS["python"].applies).isdisjoint(kind_of(benchmark).option_sorts(benchmark))
    other = "--python PATH" if takes_option else "another interpreter"
    used = _interpreter(benchmark)
    what = f"{used or 'its Python'} has no module '{module}'"
    if used is not None and used != sys.executable and _is_here(module):
        return f"{what}, but benchwright's own has; run with {'--python ' if takes_option else ''}{sys.executable}"
    return f"{what}; install it there, or run with {other}"


def _interpreter(benchmark: Benchmark) -> str | None:
    """The path of the one that the program was started with; None if it was not started by one, or elsewhere."""
    program = next(iter(benchmark.workload.words), "")
    if benchmark.workload.shell or not _PYTHON.fullmatch(os.path.basename(program)):
        return None
    return shutil.which(os.path.join(benchmark.workload.cwd, program) if os.sep in program else program)


def _is_here(module: str) -> bool:
    return find_spec(module.partition(".")[0]) is not None
