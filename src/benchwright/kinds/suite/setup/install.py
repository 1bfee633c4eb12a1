"""`install`: one environment for each install group of a suite."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.core.benchmark import Benchmark, BenchmarkFolder
from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.core.git_command import GIT
from benchwright.core.quantities import format_duration
from benchwright.core.system import SuitePaths
from benchwright.environments.builder import EnvironmentBuilder, RunTool
from benchwright.environments.environment import (
    EnvironmentFolders,
    Installed,
    existing_environment,
    read_built,
    remove,
    reused,
)
from benchwright.environments.groups import InstallGroup, digests_if_readable, groups_of
from benchwright.environments.installers import choose_installer
from benchwright.environments.locks import locked
from benchwright.environments.package_indexes import configured_indexes
from benchwright.environments.tools import Stopped, Tools
from benchwright.environments.vendor import ARCHES, arch_here, constraints_file
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.observer import Observer
from benchwright.kinds.suite.dialect import DialectStep, claiming
from benchwright.kinds.suite.plan.filled_words import filled_words
from benchwright.kinds.suite.plan.machine_facts import machine_facts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.kinds.suite.suites import read_benchmarks, suite_paths_of, wanted_of
from benchwright.options.table import Options
from benchwright.report.text.numbers import counted


def follow_install(
    benchmark: Benchmark,
    paths: SuitePaths,
    python: str,
    run: RunTool,
    install: Callable[[str, Sequence[str]], list[str]],
) -> None:
    """A folder's own steps, in the environment being built. `install` gives the installer's command. InvalidInput names the file where it fails, or asks for what we cannot do."""
    assert benchmark.folder is not None
    assert benchmark.environment is not None
    place, facts = BenchmarkPlace(benchmark, paths), machine_facts(read_machine(), paths.system)
    place.folders["venv"] = os.path.dirname(os.path.dirname(python))  # the one that is being built
    filled = filled_words(benchmark, place, paths, facts)
    for folder in place.made_folders:
        os.makedirs(folder, exist_ok=True)

    def perform(step: DialectStep) -> int:
        words = install(python, step.argv) if step.is_install else step.argv
        own = {name: value for name, value in {**step.env, **filled.env}.items() if value is not None}
        code = run(words, step.cwd, own)
        if code != 0 and step.is_install:
            what = f"its install failed: pip install {' '.join(step.argv):.100}"
            raise InvalidInput(what, where=own_steps, remedy="look at the log")
        return code

    own_steps = benchmark.environment.own_steps
    dialect, stem = claiming(benchmark.folder.path), os.path.join(place.folders["extra"], "install")
    dialect.follow("install", benchmark, place, facts, python, stem, filled.fill, perform)


TYPE_CHECKING = False

if TYPE_CHECKING:
    from benchwright.environments.package_indexes import PackageIndexes


# Benchmark folders that are cloned from a git repository.


class CannotClone(Exception):
    """git could not get a definition."""


def clone(folder: BenchmarkFolder, tools: Tools, *, anew: bool = False) -> str | None:
    """Clones the definition aside, then puts it in its place; returns its commit, or None if it was there already."""
    assert folder.git is not None
    os.makedirs(os.path.dirname(folder.path), exist_ok=True)
    with locked(folder.path + ".lock", stopped=tools.is_stopped) as lock:
        if os.path.isdir(folder.path) and not anew:
            return None
        aside = folder.path + ".part"
        log = folder.path + ".log"
        for leftover in (aside, log):
            remove(leftover)
        branch = ["--branch", folder.branch] if folder.branch else []
        argv = [*GIT, "clone", "--recurse-submodules", "--depth=1", *branch, "--", folder.git, aside]
        environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
        if tools.run(argv, log=log, env=environment, keep_open=(lock,)) != 0:
            remove(aside)
            raise CannotClone(f"{folder.git}: {_last_line(log)}")
        _replace(aside, folder.path)
        return _commit(folder.path)


def _replace(aside: str, place: str) -> None:
    before = place + ".before"
    remove(before)
    if os.path.isdir(place):
        os.rename(place, before)
    os.rename(aside, place)
    remove(before)


def _commit(folder: str) -> str:
    """Of the clone's HEAD, as far as its files tell."""
    try:
        with open(os.path.join(folder, ".git", "HEAD"), encoding="utf-8") as file:
            head = file.read().strip()
        if head.startswith("ref: "):
            with open(os.path.join(folder, ".git", head.removeprefix("ref: ")), encoding="utf-8") as file:
                head = file.read().strip()
        return head
    except OSError:
        return "unknown"


def _last_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    return next((line for line in reversed(lines) if line.startswith(("fatal:", "error:"))), lines[-1])


_MOST_AT_ONCE = 4  # installers wait for the network and the disk more than they compute


class IndexOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where packages come from, beyond what pip and uv are configured with."""

    index_url: str | None = None
    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    installer: str | None = None  # uv or pip; None: uv if there is one


class InstallOptions(msgspec.Struct, frozen=True, kw_only=True):
    force: bool = False
    update: bool = False
    variant: str | None = None
    jobs: int | None = None
    constraints: tuple[str, ...] = ()
    where: IndexOptions = IndexOptions()


def install(
    targets: Sequence[str], suite: Options, options: InstallOptions, observer: Observer | None = None
) -> list[Installed]:
    """The environments of the selected benchmarks; a group that fails does not stop the others."""
    observer = observer or Observer()
    wanted, everything = read_suite(targets, suite)
    if clone_definitions(wanted, anew=options.update, observer=observer):
        wanted, everything = read_suite(targets, suite)  # what the folders hold is known only now
    paths = suite_paths_of(suite, wanted)
    return bring_about(install_groups(wanted, everything, paths, targets, options), paths, options, observer)


def install_groups(
    wanted: Sequence[Benchmark],
    everything: Sequence[Benchmark],
    paths: SuitePaths,
    targets: Sequence[str],
    options: InstallOptions,
) -> list[InstallGroup]:
    """The groups of `wanted`, with those of their other members whose requirements are installed already: one group, one
    environment, which must not lose what others need."""
    arch = paths.system.arch or arch_here()
    names = {b.name for b in wanted}
    groups = {b.environment.name for b in wanted if b.environment is not None}
    beside = [
        b for b in everything if b.name not in names and b.environment is not None and b.environment.name in groups
    ]
    folders = EnvironmentFolders(paths.venv)
    more = [b for b in beside if b.enabled and _is_installed(b, folders, arch, options.variant)]
    members = {b.name for b in more} | names
    return groups_of(
        [b for b in _in_order(wanted, everything) if b.name in members],
        arch=arch,
        variant=options.variant,
        constraint_files=vendor_constraints(arch, options.variant, wanted, targets, options.constraints),
        others=[b for b in beside if b.name not in members],
    )


def vendor_constraints(
    arch: str, variant: str | None, benchmarks: Sequence[Benchmark], targets: Sequence[str], given: Sequence[str]
) -> list[str]:
    """`constraints/<arch>.txt` of the suite, or ours, then what the command line names."""
    vendor = variant if variant in ARCHES else arch
    folders = [os.path.dirname(os.path.abspath(target)) for target in targets]
    folders += [
        str(b.folder.config["config_base"]) for b in benchmarks if b.folder and b.folder.config.get("config_base")
    ]
    for path in given:
        if not os.path.isfile(path):
            raise InvalidInput("no such file", where=f"--constraints {path}", remedy="check the name")
    found = constraints_file(vendor, list(dict.fromkeys(folders)))
    return [*([found] if found else []), *map(os.path.abspath, given)]


def package_indexes(options: IndexOptions) -> PackageIndexes:
    return configured_indexes(os.environ).with_options(options.index_url, options.indexes, options.find_links)


def read_suite(targets: Sequence[str], suite: Options) -> tuple[list[Benchmark], list[Benchmark]]:
    """The selected benchmarks, and all of the suite."""
    found = read_benchmarks(targets, suite)
    wanted = wanted_of(found, suite)
    if not suite.select and not suite.exclude:
        return wanted, found
    return wanted, read_benchmarks(targets, msgspec.structs.replace(suite, select=(), exclude=()))


def _in_order(wanted: Sequence[Benchmark], everything: Sequence[Benchmark]) -> list[Benchmark]:
    """As the suite has them, whatever was selected: the same environment must come out."""
    known = {b.name for b in everything}
    return [*everything, *(b for b in wanted if b.name not in known)]


def _is_installed(benchmark: Benchmark, folders: EnvironmentFolders, arch: str, variant: str | None) -> bool:
    """Whether its group's environment was made with what it requires now."""
    environment = benchmark.environment
    assert environment is not None
    folder = folders.current(environment.name)
    built = None if folder is None else read_built(folder)
    if built is None or not os.path.isdir(environment.folder):
        return False
    digests = digests_if_readable(environment, arch, variant)
    return bool(digests) and digests <= set(built.recipe.requirements)


def bring_about(
    groups: Sequence[InstallGroup], paths: SuitePaths, options: InstallOptions, observer: Observer
) -> list[Installed]:
    """The environments of `groups`, in that order. What is already there and unchanged is reused."""
    for note in dict.fromkeys(note for group in groups for note in group.notes):
        observer.on_note(note)
    folders = EnvironmentFolders(paths.venv)
    done: dict[str, Installed] = {}
    if not options.force and not options.update and paths.python is None:
        for group in groups:
            found = existing_environment(group, folders)
            if found.why is None:
                done[group.name] = reused(group, folders, found)
    left = [group for group in groups if group.name not in done]
    if left:
        check_writable(folders.store)
        for installed in _build(left, folders, paths, options, observer):
            done[installed.name] = installed
    return [done[group.name] for group in groups]


def _build(
    groups: Sequence[InstallGroup],
    folders: EnvironmentFolders,
    paths: SuitePaths,
    options: InstallOptions,
    observer: Observer,
) -> list[Installed]:
    tools = Tools()
    installer = choose_installer(options.where.installer, package_indexes(options.where))

    def follow(benchmark: Benchmark, python: str, run: RunTool, options: Sequence[str]) -> None:
        follow_install(
            benchmark, paths, python, run, lambda python, wanted: installer.install(python, [*wanted, *options])
        )

    builder = EnvironmentBuilder(
        folders, installer, tools, observer.on_step, force=options.force, newest=options.update, follow=follow
    )
    together = options.jobs or min(_MOST_AT_ONCE, len(groups))
    if paths.python is not None:
        together = 1  # all of them change the same environment

    def work(group: InstallGroup) -> Installed:
        installed = _bring_one(builder, group, paths.python)
        observer.on_step_done(installed.name, _how(installed))
        for note in installed.notes[len(group.notes) :]:  # found while it was built
            observer.on_note(note)
        return installed

    with stops_on_signals(tools.stop):
        return _in_threads(work, groups, together, tools)


def _how(installed: Installed) -> str:
    took = format_duration(installed.seconds)
    if installed.status != "built":
        return f"failed after {took}" if installed.status == "failed" else ""
    return f"built in {took}" + (f", {counted(len(installed.packages), 'package')}" if installed.python else "")


def _bring_one(builder: EnvironmentBuilder, group: InstallGroup, python: str | None) -> Installed:
    return builder.bring_about(group) if python is None else builder.into(group, python)


def _in_threads(
    work: Callable[[InstallGroup], Installed], groups: Sequence[InstallGroup], together: int, tools: Tools
) -> list[Installed]:
    with ThreadPoolExecutor(max_workers=together) as pool:
        futures = [pool.submit(work, group) for group in groups]
        try:
            return [future.result() for future in futures]
        except Stopped:
            raise Interrupted("interrupted; existing environments are unchanged; run the same command again") from None
        except BaseException:
            tools.stop()
            raise


def clone_definitions(benchmarks: Sequence[Benchmark], *, anew: bool, observer: Observer) -> bool:
    """Clones definitions that live in git repositories; True if there were any to clone."""
    cloned = {b.folder.path: b for b in benchmarks if b.folder is not None and b.folder.git is not None}
    todo = [b for path, b in cloned.items() if anew or not os.path.isdir(path)]
    if not todo:
        return False

    tools = Tools()
    with stops_on_signals(tools.stop):
        for benchmark in todo:
            folder = benchmark.folder
            assert folder is not None
            observer.on_step(benchmark.name, f"cloning {folder.git}")
            try:
                clone(folder, tools, anew=anew)
            except CannotClone as error:
                raise CannotMeasure(f"{error}; check the address, the branch and the network") from None
            except (Stopped, InterruptedError):
                raise Interrupted("interrupted; run the same command again") from None
            except OSError as error:
                raise CannotMeasure(f"{folder.path}: {error.strerror}; choose another folder with --base") from None
    return True


def check_writable(folder: str, *, other: str = "--base") -> None:
    """Creates the folder; CannotMeasure if that is impossible or nothing can be written there."""
    try:
        os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise CannotMeasure(f"{folder}: {error.strerror or error}; choose another folder with {other}") from None
