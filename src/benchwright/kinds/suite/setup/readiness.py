"""Whether a suite's benchmarks are ready to run, read from a few small files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import msgspec

from benchwright.core.benchmark import Benchmark, Environment
from benchwright.core.errors import InvalidInput
from benchwright.core.system import SuitePaths
from benchwright.environments.environment import Built, EnvironmentFolders, failed_attempt, read_built, why_broken
from benchwright.environments.groups import requirement_paths
from benchwright.environments.local_packages import read_local_package
from benchwright.environments.requirement_files import read_requirements
from benchwright.kinds.suite.read.suite import suite_file
from benchwright.kinds.suite.setup.preparation import Marks, missing_data, preparation_of
from benchwright.runs.base_folder import BaseFolder

INSTALL, PREPARE = "install", "prepare"  # the phases, as commands
_MOST_NAMED = 5  # in a command


class Lack(msgspec.Struct, frozen=True):
    """Why a benchmark cannot run yet, and the phase that changes it."""

    benchmark: Benchmark
    why: str
    phase: str


def readiness(benchmarks: Sequence[Benchmark], paths: SuitePaths) -> dict[str, str]:
    """For each benchmark that cannot run yet: why, and the command that changes it."""
    return {
        lack.benchmark.name: f"{lack.why}; run: {phase_command(lack.phase, [lack.benchmark], paths)}"
        for lack in lacks(benchmarks, paths)
    }


def readiness_together(benchmarks: Sequence[Benchmark], paths: SuitePaths) -> list[str]:
    """As `readiness`, with one sentence and one command for all benchmarks with the same problem."""
    groups: dict[tuple[str, str, str], list[Benchmark]] = {}
    for lack in lacks(benchmarks, paths):
        groups.setdefault((lack.why, lack.phase, _suite_of(lack.benchmark)), []).append(lack.benchmark)
    problems = []
    for (why, phase, _), lacking in groups.items():
        names = ", ".join(b.name for b in lacking[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
        who = f"{names}: " if len(benchmarks) > 1 else ""
        problems.append(f"{who}{why}; run: {phase_command(phase, lacking, paths)}")
    return problems


def lacks(benchmarks: Sequence[Benchmark], paths: SuitePaths) -> list[Lack]:
    environments = _Environments(paths)
    marks = Marks(paths.data)
    code: dict[str, bytes] = {}
    lacking: list[Lack] = []
    for benchmark in benchmarks:
        if benchmark.environment is None:
            continue
        if (why := environments.why_not(benchmark.environment)) is not None:
            lacking.append(Lack(benchmark, why, INSTALL))
        elif (why := _why_unprepared(benchmark, marks, code)) is not None:
            lacking.append(Lack(benchmark, why, PREPARE))
    return lacking


def not_installed(benchmarks: Sequence[Benchmark], paths: SuitePaths) -> dict[str, str]:
    """As `readiness`, of environments only."""
    environments = _Environments(paths)
    return {
        b.name: f"{why}; run: {phase_command(INSTALL, [b], paths)}"
        for b in benchmarks
        if b.environment is not None and (why := environments.why_not(b.environment)) is not None
    }


def outdated(benchmarks: Sequence[Benchmark], paths: SuitePaths) -> list[str]:
    """Benchmarks that run in their previous environment, because installing their new requirements failed."""
    environments = _Environments(paths)
    return [b.name for b in benchmarks if b.environment is not None and environments.is_outdated(b.environment)]


def phase_command(phase: str, benchmarks: Sequence[Benchmark], paths: SuitePaths) -> str:
    """The command for benchmarks of one suite; where they are many, for all of the suite."""
    words = ["benchwright", phase, _suite_of(benchmarks[0])]
    if len(benchmarks) <= _MOST_NAMED:
        words += ["--select", ",".join(b.name for b in benchmarks)]
    words += [word for override in paths.overrides for word in ("--override", override)]
    if paths.system.file is not None:
        words += ["--system", paths.system.file]
    if str(BaseFolder.choose(None, os.environ).path) != paths.base:
        words += ["--base", paths.base]
    if paths.python is not None:
        words.append("--use-current-env")
    return shlex.join(words)


def _suite_of(benchmark: Benchmark) -> str:
    """The suite the user named: an included file cannot always stand alone."""
    return suite_file(benchmark) or "SUITE"


class _Environments:
    """Looks at each environment once."""

    def __init__(self, paths: SuitePaths) -> None:
        self._paths = paths
        self._folders = EnvironmentFolders(paths.venv)
        self._known: dict[str, tuple[Built | None, str | None]] = {}
        self._of_folders: dict[tuple[str, str, str | None], str | None] = {}

    def why_not(self, environment: Environment) -> str | None:
        key = (environment.folder, environment.name, environment.variant)
        if key not in self._of_folders:  # many entries share one
            self._of_folders[key] = self._why_not(environment)
        return self._of_folders[key]

    def _why_not(self, environment: Environment) -> str | None:
        if not os.path.isdir(environment.folder):
            return f"its folder {environment.folder} is missing"
        if self._paths.python is not None or environment.name in self._paths.interpreters:
            return None
        if environment.name not in self._known:
            self._known[environment.name] = self._look(environment.name)
        built, why = self._known[environment.name]
        if why is not None or built is None:
            return why
        try:
            changed = _changed_since(built, environment)
        except InvalidInput as error:
            return str(error)
        if changed - failed_attempt(self._folders, environment.name):
            return "its requirements changed since it was installed"
        return None

    def is_outdated(self, environment: Environment) -> bool:
        """Only of one that can run."""
        if self.why_not(environment) is not None or environment.name not in self._known:
            return False
        built = self._known[environment.name][0]
        return built is not None and bool(_changed_since(built, environment))

    def _look(self, group: str) -> tuple[Built | None, str | None]:
        if self._folders.is_foreign(group):
            works = os.access(os.path.join(self._folders.link(group), "bin", "python"), os.X_OK)
            return None, None if works else f"{self._folders.link(group)} is not an environment"
        folder = self._folders.current(group)
        if folder is None:
            return None, "not installed"
        built = read_built(folder)
        if built is None:
            return None, f"its environment {self._folders.link(group)} is broken"
        why = why_broken(folder, built, changed_too=False)
        return built, None if why is None else f"its environment {self._folders.link(group)} is broken: {why}"


def _changed_since(built: Built, environment: Environment) -> set[str]:
    """Digests of this benchmark's requirements that the environment was not made with."""
    # `install --variant` may have chosen another than the entry says; what it chose is what counts.
    variant = built.variant if built.variant_given else environment.variant or built.variant
    read = [read_requirements(path) for path in requirement_paths(environment, variant)]
    local = {read_local_package(folder).digest for folder in environment.local_packages}
    lacking = {file.digest for file in read if not file.is_empty} - set(built.recipe.requirements)
    return lacking | (local - set(built.recipe.local_packages))


def _why_unprepared(benchmark: Benchmark, marks: Marks, code: dict[str, bytes]) -> str | None:
    preparation = preparation_of(benchmark, code)
    if preparation is None:
        return None
    mark = marks.read(preparation.identity)
    if mark is None:
        return "not prepared"
    gone = missing_data(mark)
    return None if gone is None else f"its data is gone: {gone} no longer exists"
