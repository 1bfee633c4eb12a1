"""Makes an environment: built aside, completely, then swapped in for the previous one."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.environments.environment import (
    EnvironmentFolders,
    ExistingEnvironment,
    Installed,
    describe,
    existing_environment,
    finished_before,
    note_attempt,
    read_built,
    remove,
    reused,
    site_packages,
    write_built,
)
from benchwright.environments.failures import InstallFailure, failure_of
from benchwright.environments.groups import InstallGroup, constraint_text
from benchwright.environments.installers import Pip, Uv
from benchwright.environments.local_packages import LocalPackage, read_local_package
from benchwright.environments.locks import locked
from benchwright.environments.tools import Stopped, Tools

# torchvision and torchaudio that are built for CUDA in an environment whose torch is not: who they are, and what helps.


CUDA_BUILDS = os.path.join(
    os.path.dirname(__file__), "compat_modules", "cuda_builds"
)  # makes them importable all the same
_NAMES = ("torchvision", "torchaudio")
_SYMPTOM = re.compile(r"operator torchvision::\w+ does not exist|Could not load this library: .*torchaudio")
_NO_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*None", re.MULTILINE)


def doubtful_packages(site: str) -> list[str]:
    """Packages in `site` that may not load, because the torch there has no CUDA."""
    try:
        with open(os.path.join(site, "torch", "version.py"), encoding="utf-8") as file:
            if _NO_CUDA.search(file.read()) is None:
                return []
    except OSError:
        return []
    return [name for name in _NAMES if os.path.isdir(os.path.join(site, name))]


def lacks_cuda(output: str) -> bool:
    """From what the interpreter printed when it tried to import one."""
    return _SYMPTOM.search(output) is not None


def note_about(packages: list[str]) -> str:
    names = " and ".join(packages)
    are, them = ("is a CUDA build", "it") if len(packages) == 1 else ("are CUDA builds", "them")
    return (
        f"{names} {are}, and this torch is not: benchwright-cuda-builds lets {them} be imported; "
        "what needs compiled parts, such as detection operators, does not work"
    )


Say = Callable[[str, str, str], None]  # group, what is being done, its log; called from any thread
RunTool = Callable[[Sequence[str], str, Mapping[str, str]], int]  # words, folder, further variables → exit code
# Does the benchmark's own steps with the environment's interpreter, and these options for what it installs; InvalidInput where
# they fail.
FollowSteps = Callable[[Benchmark, str, RunTool, Sequence[str]], None]

Check = Callable[[InstallGroup, str], str | None]  # group, its new interpreter → why it is not to be used


class CannotBuild(Exception):
    """One group's environment could not be made."""

    def __init__(self, failure: InstallFailure) -> None:
        super().__init__(failure.what)
        self.failure = failure


class EnvironmentBuilder:
    """Builds environments. `force` rebuilds them; `newest` does if there is anything newer to install."""

    def __init__(
        self,
        folders: EnvironmentFolders,
        installer: Uv | Pip,
        tools: Tools,
        say: Say,
        *,
        force: bool = False,
        newest: bool = False,
        follow: FollowSteps | None = None,
        check: Check | None = None,
    ) -> None:
        self.folders = folders
        self.installer = installer
        self.tools = tools
        self.tell = say
        self.force = force
        self.newest = newest
        self.follow = follow
        self.check = check
        self.variables = installer.environment(os.environ)

    def _say(self, group: InstallGroup, what: str) -> None:
        self.tell(group.name, what, self.folders.log(group.name))

    def bring_about(self, group: InstallGroup) -> Installed:
        """Problems of one group do not raise; Stopped if asked to stop."""
        began = time.monotonic()
        try:
            with locked(
                self.folders.lock(group.name),
                waiting=lambda: self._say(group, "waiting for another install of this environment"),
                stopped=self.tools.is_stopped,
            ) as lock:
                return self._settle(group, began, lock)
        except InterruptedError:
            raise Stopped from None
        except CannotBuild as error:
            note_attempt(self.folders, group)
            return self._failed(group, began, error.failure)
        except OSError as error:
            where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
            return self._failed(group, began, InstallFailure(f"{where}{error.strerror or error}"))

    def _settle(self, group: InstallGroup, began: float, lock: int) -> Installed:
        name = group.name
        if self.folders.is_foreign(name):
            raise CannotBuild(
                InstallFailure(
                    f"{self.folders.link(name)} was not created by benchwright; use it as it is, or move it away"
                )
            )
        self.folders.remove_unfinished(name)
        found = existing_environment(group, self.folders)
        log = self.folders.log(name)
        remove(log)
        remove(self.folders.attempt(name))
        if found.why is None and not self.force:
            if not self.newest or self._is_newest(group, found, lock):
                return reused(group, self.folders, found)
            found = ExistingEnvironment(folder=found.folder, built=found.built, why="there are newer versions")
        again = None if self.force or self.newest else finished_before(group, self.folders)
        if again is not None:
            self.folders.switch(name, again)
            return reused(group, self.folders, existing_environment(group, self.folders))
        self._say(
            group, "creating an environment" if found.folder is None else f"rebuilding: {found.why or 'as asked'}"
        )
        folder = self.folders.vacant(name, group.recipe.identity)
        try:
            notes = self._make(group, folder, lock)
            seconds = time.monotonic() - began
            built = describe(folder, group, installer=self.installer.name, seconds=seconds)
            write_built(folder, built)
        except BaseException:
            remove(folder)
            raise
        self.folders.switch(name, folder)
        self.folders.remove_old(name, keep=[folder, *([found.folder] if found.folder else [])])
        return Installed(
            name=name,
            status="built",
            path=self.folders.link(name),
            python=built.python,
            seconds=built.seconds,
            packages=built.packages,
            log=log,
            notes=(*group.notes, *notes),
        )

    def into(self, group: InstallGroup, python: str) -> Installed:
        """Installs a group's requirements into somebody else's environment."""
        began = time.monotonic()
        log = self.folders.log(group.name)
        try:
            with locked(self.folders.lock(group.name), stopped=self.tools.is_stopped) as lock:
                remove(log)
                self._say(group, f"installing into the environment of {python}")
                scratch = os.path.join(self.folders.store, f"{group.name}.constraints")
                for wanted in self._batches(group, scratch) if group.files or group.recipe.added else ():
                    self._run(group, self.installer.install(python, wanted, newest=self.newest), lock)
                self._install_local(group, python, lock)
                self._follow_own_steps(group, python, lock)
        except InterruptedError:
            raise Stopped from None
        except CannotBuild as error:
            return self._failed(group, began, error.failure)
        changed = os.path.exists(log) and re.search(r"^( [+~-] |Successfully installed )", _text(log), re.MULTILINE)
        return Installed(
            name=group.name,
            status="built" if changed else "reused",
            path=os.path.dirname(os.path.dirname(python)),
            seconds=round(time.monotonic() - began, 3),
            log=log if changed else None,
            notes=group.notes,
        )

    def _make(self, group: InstallGroup, folder: str, lock: int) -> tuple[str, ...]:
        """Makes the environment and returns notes about it."""
        self._run(group, self.installer.create(folder, group.python), lock)
        python = os.path.join(folder, "bin", "python")
        if group.files or group.recipe.added:
            self._install(group, python, os.path.join(folder, "constraints.txt"), lock)
        self._install_local(group, python, lock)
        self._follow_own_steps(group, python, lock)
        notes = self._help_cuda_builds(group, folder, python, lock)
        if self.check is not None and (why := self.check(group, python)) is not None:
            raise CannotBuild(InstallFailure(why))
        return notes

    def _install(self, group: InstallGroup, python: str, scratch: str, lock: int) -> None:
        count = len(group.files)
        what = f"{count} requirements file{'s' if count != 1 else ''}" if count else ", ".join(group.recipe.added)
        self._say(group, f"installing {what} with {self.installer.name}")
        for wanted in self._batches(group, scratch):
            self._run(group, self.installer.install(python, wanted, newest=self.newest), lock)

    def _install_local(self, group: InstallGroup, python: str, lock: int) -> None:
        """Packages that lie as source beside the benchmarks, with what they require."""
        scratch = os.path.join(self.folders.store, f"{group.name}.constraints")
        for package in group.local_packages:
            self._say(group, f"installing {package.name} from its source")
            self._install_wheel(group, python, package, self.constraint_options(group, scratch), lock)

    def _install_wheel(
        self, group: InstallGroup, python: str, package: LocalPackage, options: Sequence[str], lock: int
    ) -> None:
        wheel = package.write_wheel(os.path.join(self.folders.store, "wheels"))
        self._run(group, self.installer.install(python, [wheel, *options]), lock)

    def _help_cuda_builds(self, group: InstallGroup, folder: str, python: str, lock: int) -> tuple[str, ...]:
        """A note, if there are packages for CUDA that could not be imported beside this torch."""
        log, failing = self.folders.log(group.name), []
        for name in doubtful_packages(os.path.join(folder, site_packages(folder))):
            self._say(group, f"trying {name}")
            start = os.path.getsize(log)
            words = (python, "-c", f"import {name}")
            code = self.tools.run(words, log=log, env=self.variables, cwd=folder, keep_open=(lock,))
            if code != 0 and lacks_cuda(_text(log, start)):
                failing.append(name)
        if not failing:
            return ()
        self._install_wheel(group, python, read_local_package(CUDA_BUILDS), (), lock)
        return (f"{group.name}: {note_about(failing)}",)

    def _follow_own_steps(self, group: InstallGroup, python: str, lock: int) -> None:
        programs, log = os.path.dirname(python), self.folders.log(group.name)
        variables = {**self.variables, "VIRTUAL_ENV": os.path.dirname(programs)}
        variables["PATH"] = os.pathsep.join([programs, variables.get("PATH", os.defpath)])

        def run(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> int:
            return self.tools.run(argv, log=log, env={**variables, **env}, cwd=cwd, keep_open=(lock,))

        options = self.constraint_options(group, os.path.join(self.folders.store, f"{group.name}.constraints"))
        for benchmark in group.own_steps if self.follow is not None else ():
            assert self.follow is not None
            self._say(group, f"following the benchfile of {benchmark.name}")
            try:
                self.follow(benchmark, python, run, options)
            except InvalidInput as error:
                raise CannotBuild(InstallFailure(error.on_one_line)) from None

    def _batches(self, group: InstallGroup, scratch: str) -> list[list[str]]:
        """Installer arguments, in batches. pip demands hashes for everything if one file has any, so it runs twice."""
        shared = self.constraint_options(group, scratch)
        files = [word for file in group.files for word in ("-r", file.path)]
        added = list(group.recipe.added)
        if self.installer.name == "pip" and files and added:
            return [[*files, *shared], [*added, *shared]]
        return [[*files, *added, *shared]]

    def constraint_options(self, group: InstallGroup, scratch: str) -> list[str]:
        options = [word for path in group.constraint_files for word in ("-c", path)]
        if text := constraint_text(group.constraints):
            with open(scratch, "w", encoding="utf-8") as file:
                file.write(text)
            options += ["-c", scratch]
        return [*options, *group.recipe.pip_args]

    def _is_newest(self, group: InstallGroup, found: ExistingEnvironment, lock: int) -> bool:
        """Whether uv would change anything; pip cannot say, so with pip the answer is no."""
        if not isinstance(self.installer, Uv) or found.folder is None:
            return False
        if not group.files and not group.recipe.added:
            return True
        self._say(group, "looking for newer versions")
        python = os.path.join(found.folder, "bin", "python")
        scratch = os.path.join(found.folder, "constraints.txt")
        for wanted in self._batches(group, scratch):
            self._run(group, self.installer.would_install(python, wanted), lock)
        return "Would make no changes" in _text(self.folders.log(group.name))

    def _run(self, group: InstallGroup, argv: list[str], lock: int) -> None:
        log = self.folders.log(group.name)
        code = self.tools.run(argv, log=log, env=self.variables, cwd=group.folder, keep_open=(lock,))
        if code != 0:
            raise CannotBuild(failure_of(_text(log)))

    def _failed(self, group: InstallGroup, began: float, failure: InstallFailure) -> Installed:
        """Says where the package is required, and whether an older environment is still in use."""
        current = self.folders.current(group.name)
        built = read_built(current) if current is not None else None
        detail = failure.what
        mention = next((f.packages[failure.package] for f in group.files if failure.package in f.packages), None)
        if mention is not None:
            names = next((group.users[f.path] for f in group.files if failure.package in f.packages), ())
            detail = f"{mention.file}:{mention.line}: {detail}" + (f" (for {', '.join(names[:3])})" if names else "")
        log = self.folders.log(group.name)
        return Installed(
            name=group.name,
            status="failed",
            path=self.folders.link(group.name),
            python=built.python if built is not None else None,
            seconds=round(time.monotonic() - began, 3),
            packages=built.packages if built is not None else {},
            detail=detail + ("; the previous environment is still in use" if built is not None else ""),
            package=failure.package,
            log=log if os.path.exists(log) else None,
            notes=group.notes,
        )


def _text(path: str, start: int = 0) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        file.seek(start)
        return file.read()
