"""Runs the tests in parallel, then the few that failed once more, alone: `python tests/run_tests.py [pytest options]`.

On two busy cores a test that waits for a process can run out of time though nothing is wrong. Such a test passes alone,
and is named at the end. A test that fails twice fails the build, and so does a first round with more failures than
`--retry-at-most` (5). Both rounds add to the same coverage, so the floor holds for both together.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

WORKERS = str(max(3, os.cpu_count() or 1))  # three on two cores: tests wait a fifth of their time for processes
SOURCES = Path(__file__).parents[1] / "src"
GROUP = re.compile(r"@[^][@]+$")
TESTS_FAILED = 1  # pytest's exit code; the others are usage errors, crashes and Ctrl-C


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--retry-at-most", type=int, default=5, metavar="N")
    own, given = parser.parse_known_args(arguments)
    # Containers often set PYTHONDONTWRITEBYTECODE: each of thousands of processes would compile benchwright for itself.
    compileall.compile_dir(SOURCES, quiet=1, workers=0)
    coverage = ["--cov", "--cov-report="]
    with tempfile.TemporaryDirectory() as folder:
        remembered = ["-o", f"cache_dir={folder}"]  # of these two rounds alone: what failed last week is not asked for
        first = _pytest("-n", WORKERS, "--dist", "loadgroup", *coverage, *remembered, *given)
        failed = _failed(Path(folder))
        if first != TESTS_FAILED or not failed:  # without a failed test it is the coverage floor
            return first
        if len(failed) > own.retry_at_most:
            _say(f"{len(failed)} tests failed: too many to blame a busy machine, so none was tried again")
            return first
        _say(f"{_tests(len(failed))} failed and will be tried again, alone")
        second = _pytest("-n", "0", "--last-failed", *coverage, "--cov-append", *remembered, *given)
        again = _failed(Path(folder))
    _name("failed twice", again)
    _name("passed only when run alone (a race, or a limit too tight for a busy machine)", failed - again)
    return second or (TESTS_FAILED if again else 0)


def _pytest(*options: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *options], check=False).returncode


def _failed(cache: Path) -> set[str]:
    """Kept under the names that tests have alone: xdist adds `@group` to those of a group, which --last-failed would not find."""
    kept = cache / "v/cache/lastfailed"
    try:
        names = {GROUP.sub("", name) for name in json.loads(kept.read_text())}
    except FileNotFoundError:
        return set()
    kept.write_text(json.dumps(dict.fromkeys(names, True)))
    return names


def _name(what: str, tests: set[str]) -> None:
    if tests:
        _say("\n  ".join([f"{_tests(len(tests))} {what}:", *sorted(tests)]))


def _tests(count: int) -> str:
    return f"{count} test{'' if count == 1 else 's'}"


def _say(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
