"""Where a newcomer could get stuck: every message names the next command to type."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine

Write = Callable[[str, str], Path]
PY = sys.executable
LOOP = "from benchprobe import iterate\nfor _ in iterate('train', range(3)): pass\n"


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def lean(tmp_path: Path) -> str:
    """An interpreter without any package."""
    path = tmp_path / "lean" / "python3"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {PY} -S "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_a_missing_module_names_the_interpreter_and_the_one_that_has_it(
    bw: CommandLine, script: Write, lean: str
) -> None:
    script("a.py", "import click\n" + LOOP)
    said = words(bw("run", "a.py", "--python", lean, code=1).stdout)
    assert f"{lean} has no module 'click', but benchwright's own has; run with --python {PY}" in said
    said = words(bw("run", "--", lean, "a.py", code=1).stdout)
    assert f"{lean} has no module 'click', but benchwright's own has; run with {PY}" in said
    assert "has no module 'click'" in words(bw("show", "last").stdout)


def test_a_module_that_nobody_has_is_to_be_installed_there(bw: CommandLine, script: Write, lean: str) -> None:
    script("a.py", "import nosuchmodule\n" + LOOP)
    said = words(bw("run", "a.py", "--python", lean, code=1).stdout)
    assert f"{lean} has no module 'nosuchmodule'; install it there, or run with --python PATH" in said
    body = bw.json("run", "a.py", "--python", PY, code=1)
    assert f"{PY} has no module 'nosuchmodule'" in body["results"][0]["detail"]


def test_a_missing_module_that_the_program_does_without_is_no_reason(bw: CommandLine, script: Write) -> None:
    script("a.py", "try:\n    import nosuchmodule\nexcept ImportError as e:\n    print(repr(e))\nraise SystemExit(3)\n")
    assert "no module" not in bw.json("run", "--", PY, "a.py", code=1)["results"][0]["detail"]


def test_find_says_it_too(bw: CommandLine, script: Write, lean: str) -> None:
    script("a.py", "import click\n")
    assert f"{lean} has no module 'click', but benchwright's own has" in words(
        bw("find", "a.py", "--python", lean, code=1).stdout
    )
