"""benchprobe runs on every Python from 3.9 on, whatever benchwright itself needs."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src"
IN_MEASURED_PROGRAMS = [
    *SOURCE.glob("benchprobe/**/*.py"),
    *SOURCE.glob("benchmodels/**/*.py"),
    SOURCE / "benchwright" / "compat" / "voir" / "voirfile.py",
]
VERSIONS = ("3.9", "3.10", "3.12", "3.13", "3.14")

PROGRAM = """
    import asyncio, os, sys
    from benchprobe import iterate, give, phase
    def bar(iterable):
        for x in iterable:
            yield x
    for i in iterate("train", range(1000), batch_size=2):
        give(loss=float(i), step=i)
    for i in iterate("broken off", range(100)):
        if i == 6:
            break
    for i in bar(iterate("broken off inside", range(100))):
        if i == 6:
            break
    def returns():
        for i in iterate("returned", range(100)):
            if i == 6:
                return i
    returns()
    try:
        for i in iterate("failed", range(100)):
            if i == 6:
                int("x")
    except ValueError:
        pass
    try:
        for i in bar(iterate("failed inside", range(100))):
            if i == 6:
                raise ValueError
    except ValueError:
        pass
    for a, b in zip(iterate("short", range(5)), iterate("long", range(9))): pass
    async def numbers():
        for i in range(100):
            yield i
    async def main():
        async for i in iterate("async", numbers()):
            if i == 6:
                break
        try:
            async for i in iterate("async failed", numbers()):
                if i == 6:
                    raise ValueError
        except ValueError:
            pass
    asyncio.run(main())
    child = os.fork()
    if child == 0:
        give(child=1)
        sys.exit()
    os.waitpid(child, 0)
"""


def interpreter(version: str) -> str:
    found = shutil.which(f"python{version}")
    candidates = [found] if found else []
    candidates += [str(path) for path in sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    for candidate in candidates:  # a shim may stand for a version that is not there
        if subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    pytest.skip(f"Python {version} is not on this machine")


@pytest.mark.parametrize("path", sorted(IN_MEASURED_PROGRAMS), ids=lambda path: path.stem)
def test_every_file_is_python_3_9(path):
    assert ast.parse(path.read_text(), feature_version=(3, 9)) is not None  # SyntaxError otherwise


@pytest.mark.parametrize("version", VERSIONS)
def test_loops_and_their_endings_are_alike_on_every_python(programs, version):
    record = programs.finish(
        programs.start(PROGRAM, python=interpreter(version), stop={"steps": 500}, warmup={"steps": 10})
    )
    assert (record.code, record.errors) == (0, "")
    assert record.all("probe")[0]["python"].startswith(version)
    assert record.steps("train", phase="measured") == 500
    assert record.given("step") == [(i, i) for i in range(510)]
    for name in ("broken off", "broken off inside", "returned", "async"):
        assert (name, record.steps(name)) == (name, 7)
    for name in ("failed", "failed inside", "async failed"):
        assert (name, record.steps(name)) == (name, 6)
    assert (record.steps("short"), record.steps("long")) == (5, 5)
    assert record.one("give")["values"] == {"child": 1}
    assert record.messages() == ""
    assert record.junk == []
