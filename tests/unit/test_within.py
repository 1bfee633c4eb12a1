"""What most flows are called by: nothing of a program called within this process may stay in it, or be lost."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
from within import called


def state() -> list[object]:
    files = [os.fstat(number).st_ino for number in range(3)]
    return [dict(os.environ), os.getcwd(), sys.argv, list(sys.path), sys.stdout, files, tempfile.gettempdir()]


@pytest.mark.parametrize(
    ("end", "code", "err"),
    [(None, 0, ""), (0, 0, ""), (3, 3, ""), ("no luck", 1, "no luck\n")],
    ids=["nothing", "zero", "number", "words"],
)
def test_the_exit_code_is_that_of_a_process(end: object, code: int, err: str) -> None:
    done = called(lambda: sys.exit(end), ["program"], {})  # type: ignore[arg-type]
    assert (done.returncode, done.stdout, done.stderr) == (code, "", err)


def test_an_error_is_told_as_python_tells_it() -> None:
    done = called(lambda: int("x"), ["program"], {})
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "ValueError" in done.stderr


def test_it_has_surroundings_of_its_own_and_leaves_ours(tmp_path: Path) -> None:
    seen: list[object] = []

    def work() -> None:
        seen.extend([dict(os.environ), os.getcwd(), sys.argv, sys.stdin.read(), tempfile.gettempdir()])
        os.environ["LEFT"] = "behind"
        sys.path.append("behind")
        os.chdir("/")
        warnings.warn("of no interest", ResourceWarning, stacklevel=1)

    before = state()
    env = {"A": "b", "TMPDIR": str(tmp_path)}
    assert called(work, ["program", "word"], env, tmp_path).returncode == 0
    assert seen == [env, str(tmp_path), ["program", "word"], "", str(tmp_path)]
    assert state() == before


def test_what_children_say_is_heard_in_order() -> None:
    def work() -> None:
        print("first é", flush=True)
        subprocess.run(["sh", "-c", "echo second; echo third >&2"], check=True)
        print("fourth")

    done = called(work, ["program"], dict(os.environ))
    assert (done.stdout, done.stderr) == ("first é\nsecond\nfourth\n", "third\n")


def test_what_stops_the_tests_is_not_kept_from_them() -> None:
    before = state()
    with pytest.raises(KeyboardInterrupt):
        called(lambda: (_ for _ in ()).throw(KeyboardInterrupt()), ["program"], {})
    assert state() == before
