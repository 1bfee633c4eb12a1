"""Do the tests still catch old faults? `python tests/taken_out.py --fixes 20 --seed 1 --since 2026-11-15`.

Takes fixes of the past at random, each a commit that changed source and tests, puts the old source back, and runs the tests of
`make test` that it reaches, nearest first, until one fails. Whatever no test catches is listed, with the command to look at it.
Works in this checkout, which must be clean; the source is put back at the end, also after Ctrl-C.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from affected import ROOT, by_folder, reached_tests


class Fix(NamedTuple):
    commit: str
    subject: str
    change: str
    """Of the source alone, as git wrote it."""
    tests: tuple[str, ...]
    """Test files that came with it."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--fixes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--since", default="2 days ago", help="of which commits, as git writes dates")
    parser.add_argument("--lines", type=int, default=60, help="the largest change of source that counts as one fix")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="begin no test after that long")
    own = parser.parse_args(arguments)
    if git("status", "--porcelain", "--", "src"):
        sys.exit("src has changes that are not committed; commit them first")
    missed = []
    for number, fix in enumerate(fixes(own), 1):
        began = time.monotonic()
        is_caught, by = tried(fix, own.limit)
        word = "caught" if is_caught else "MISSED"
        print(
            f"{number:3} {fix.commit} {word} in {time.monotonic() - began:.0f} s: {fix.subject[:90]}\n      {by}",
            flush=True,
        )
        missed += [] if is_caught else [fix]
    print(f"{own.fixes - len(missed)} of {own.fixes} caught")
    for fix in missed:
        print(f"  look: git show {fix.commit} -- src    ({fix.subject})")
    return 1 if missed else 0


def fixes(own: argparse.Namespace) -> Iterator[Fix]:
    """As many as asked for, in random order, of those whose source change can still be undone."""
    commits = git("log", "--no-merges", f"--since={own.since}", "--format=%h %s").splitlines()
    random.Random(own.seed).shuffle(commits)
    found = 0
    for line in commits:
        commit, _, subject = line.partition(" ")
        changed = git("show", "--numstat", "--format=", commit).splitlines()
        lines = [
            int(row.split()[0]) + int(row.split()[1]) for row in changed if "\tsrc/" in row and row.endswith(".py")
        ]
        if not lines or sum(lines) > own.lines or not asserts_more(commit):
            continue
        tests = tuple(name for row in changed if (name := row.split("\t")[2]).startswith("tests/") and "/test_" in name)
        fix = Fix(commit, subject, git("show", "--format=", "--no-renames", commit, "--", "src"), tests)
        if found < own.fixes and apply(fix, "--check") and changes_behaviour(fix):
            found += 1
            yield fix


def asserts_more(commit: str) -> bool:
    """Whether it came with a test; a move of files does not."""
    change = git("show", "--format=", commit, "--", "tests").splitlines()
    return any(line.startswith("+") and ("assert " in line or "def test_" in line) for line in change)


def changes_behaviour(fix: Fix) -> bool:
    """Whether more than comments and docstrings changes without it."""
    apply(fix)
    try:
        changed = git("diff", "--name-only", "--", "src").split()
        return any(
            not (ROOT / name).exists() or _code(git("show", f"HEAD:{name}")) != _code((ROOT / name).read_text("utf-8"))
            for name in changed
            if name.endswith(".py")
        )
    finally:
        put_back()


def _code(text: str) -> str:
    """Without docstrings and imports, whose order means nothing."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [step for step in body if not _is_docstring_or_import(step)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_docstring_or_import(step: ast.stmt) -> bool:
    return isinstance(step, ast.Import | ast.ImportFrom) or (
        isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)
    )


def tried(fix: Fix, limit: float) -> tuple[bool, str]:
    """Whether a test failed with the fix taken out, and which."""
    apply(fix)
    try:
        reached = by_folder(reached_tests(git("diff", "--name-only", "--", "src").split()))
        first = [test for test in fix.tests if test in reached]
        rest = [test for test in reached if test not in first and "/test_of_tests.py" not in test]
        for tests in filter(None, (first, rest)):
            failed, said = failures(tests, limit)
            if failed:
                return True, failed[0][:160]
        return False, said[-1][:160]
    finally:
        put_back()


def failures(tests: list[str], limit: float) -> tuple[list[str], list[str]]:
    """The tests that fail, up to the first of each worker, and all that pytest said."""
    until = ["-p", "time_limit", "--until", str(time.time() + limit)]
    options = ["-x", "-q", "-n", "auto", "--dist", "loadgroup", "-m", "not long", "--hypothesis-profile", "repeatable"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    env = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-m", "pytest", *options, *until, *tests]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    said = done.stdout.splitlines() or ["nothing was said"]
    return [line for line in said if line.startswith(("FAILED", "ERROR"))], said


def put_back() -> None:
    git("checkout", "--", "src")
    git("clean", "-fdq", "--", "src")


def apply(fix: Fix, *options: str) -> bool:
    """Whether the fix could be taken out."""
    command = ["git", "apply", "--reverse", *options, "-"]
    return (
        subprocess.run(command, cwd=ROOT, input=fix.change, text=True, capture_output=True, check=False).returncode == 0
    )


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main(sys.argv[1:]))
