"""A Python script as a target: its instrumented loop is measured."""

from __future__ import annotations

import ast
import os
import shutil
import sys
import tokenize
from pathlib import Path

from benchwright.domain.benchmark import Benchmark, Script
from benchwright.domain.errors import InvalidInput
from benchwright.domain.metric import MetricSpec


def is_script(target: str) -> bool:
    """Whether `target` names a Python file."""
    return target.endswith(".py") and Path(target).is_file()


def uses_probe(path: Path) -> bool:
    """Whether the script imports benchprobe; InvalidInput if it is no Python."""
    try:
        with tokenize.open(path) as handle:
            tree = ast.parse(handle.read(), filename=str(path))
    except SyntaxError as error:
        raise InvalidInput(
            f"is not valid Python: {error.msg}",
            where=str(path),
            line=error.lineno,
            column=error.offset,
            text=error.text,
        ) from None
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidInput(f"is not readable as Python: {error}", where=str(path)) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(a.name.split(".")[0] == "benchprobe" for a in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "benchprobe":
            return True
    return False


def read_script(
    target: str,
    *,
    args: tuple[str, ...],
    python: str | None,
    cwd: str | None,
    metrics: tuple[MetricSpec, ...],
    as_: str | None,
) -> Benchmark:
    """The script as a Benchmark; `as_` may say outright that it is to be run as it is."""
    path = Path(target).absolute()
    if as_ is None and not uses_probe(path):
        raise InvalidInput(
            "no loop to measure: it does not import benchprobe",
            where=target,
            remedy=f"put iterate() around its loop, or measure it as a command: benchwright run -- python {target}",
        )
    return Benchmark(
        name=path.name,
        workload=Script(path=str(path), args=args, cwd=cwd or os.getcwd(), python=python or default_python()),
        source=target,
        metrics=metrics,
    )


def default_python() -> str:
    """The interpreter a shell would start for `python`, since that is where the user's packages are."""
    return shutil.which("python") or shutil.which("python3") or sys.executable
