"""Changes of one side of an A/B: the folder it stands in, its program, arguments, environment or packages."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from benchwright.core.benchmark import REVISION, Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.revision import CONTROL, TREATMENT, Revision, RevisionInfo, RevisionKind
from benchwright.core.secrets import redact, redact_words
from benchwright.core.system import SuitePaths
from benchwright.kinds.base import Resolved
from benchwright.kinds.registry import kind_of
from benchwright.options.table import OPTIONS, Option, Options

_PATH = "PATH"
_SEARCHED = (_PATH, "PYTHONPATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "PKG_CONFIG_PATH")  # lists of folders
_LEADING = [row for row in OPTIONS.values() if row.leads]


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """One side. `folder`: the repository's root, and the folder that stands in for it: its worktree.

    What stays empty is as the target says.
    """

    side: str  # control or treatment
    revision: str  # in words, without secrets; a label of its benchmarks
    folder: tuple[str, str] | None = None
    python: str | None = None  # the interpreter for scripts, models and suites
    path: tuple[str, ...] = ()  # folders before those of $PATH
    env: dict[str, str | None] = {}
    args: tuple[str, ...] = ()
    programs: dict[str, str] = {}  # name → path; the main one is called `program`
    line: str | None = None  # the command itself
    target: str | None = None  # the target itself
    labels: dict[str, str] = {}  # further ones of its benchmarks
    info: RevisionInfo | None = None  # what reports of specifications say about this side
    kept: dict[str, str] = {}  # words of the command → files of the user's that no revision has

    def is_like(self, other: Variation) -> bool:
        """Whether both sides measure the same."""
        return replace(self, side=other.side, revision=other.revision) == other

    @property
    def here(self) -> str:
        """The worktree's counterpart of the current folder, if that is in the repository; else the current folder."""
        here = os.getcwd()
        if self.folder is None:
            return here
        root, stands_in = self.folder
        inside = here == root or here.startswith(f"{root}/")
        return _existing(stands_in + here.removeprefix(root), stands_in) if inside else here

    def request(self, asked: Options) -> Options:
        """The options for this side: paths into the repository, and relative ones, lead into its worktree."""
        here = replace(asked, **{row.name: self._led(getattr(asked, row.name), row) for row in _LEADING})
        return replace(
            here,
            treatment=self.info or asked.treatment,
            targets=(self.target,) if self.target is not None else tuple(map(self._named, asked.targets)),
            command=tuple(self.kept.get(word) or self._moved(word) for word in asked.command),
            commands=(self.line,) if self.line is not None else here.commands,
            cwd=self._path(asked.cwd or "."),
            search_dirs=tuple(map(self._named, asked.searched)),
            python=self.python or asked.python,  # the side inherits the packages of the one asked for
            use_current_env=asked.use_current_env or self.python is not None,
            interleave=True,
        )

    def _led(self, value: Any, row: Option) -> Any:
        """The value of an option that leads to files."""
        if isinstance(value, tuple):
            return tuple(map(self._moved, value))
        return value and (self._path(value) if row.leads == "file" else self._moved(value))

    def applied(self, benchmark: Benchmark) -> Benchmark:
        """A benchmark that was read on this side, with what else it changes; its name is that of the pair still."""
        kind = kind_of(benchmark)
        if not kind.starts_what_it_measures and (self.env or self.python or self.programs or self.folder):
            what = f"{benchmark.name} is running already, and would be the same on both sides"
            remedy = "compare two servers (openai:URL), or a suite that starts it (server: …)"
            raise InvalidInput(what, where=f"--{self.side}", remedy=remedy)
        return kind.on_side(self.changed(benchmark), self.side)

    def changed(self, benchmark: Benchmark) -> Benchmark:
        """The same for a side that is measured alone."""
        kind = kind_of(benchmark)
        if self.args:
            benchmark = kind.with_arguments(benchmark, self.args)
        if self.programs:
            benchmark = kind.with_programs(benchmark, self.programs)
        env = {**self._searched(), **benchmark.env, **self.env}
        return replace(benchmark, env=env, labels=benchmark.labels | self.labels)

    def _searched(self) -> dict[str, str | None]:
        """Variables with lists of folders: those of the repository are taken from the worktree, if they are there."""
        found: dict[str, str | None] = {}
        for name in _SEARCHED:
            before = os.environ.get(name, "")
            after = os.pathsep.join(map(self._moved_if_there, before.split(os.pathsep)))
            if name == _PATH and self.path:
                after = os.pathsep.join((*self.path, after))
            if after != before:
                found[name] = after
        return found

    def _moved_if_there(self, place: str) -> str:
        moved = self._moved(place)
        return moved if os.path.exists(moved) else place

    def _named(self, text: str) -> str:
        """A target or folder: the absolute path on this side, unless nothing on either side has that name."""
        if self.folder is None:
            return text
        path = os.path.normpath(self._path(text))
        file, given = path.partition("::")[0], text.partition("::")[0]
        is_there = os.path.exists(file) or os.path.exists(given) or glob.glob(file, recursive=True)
        return path if is_there else self._moved(text)

    def _path(self, text: str) -> str:
        if self.folder is None:
            return text
        return os.path.join(self.here, self._moved(os.path.expanduser(text)))

    def _moved(self, text: str) -> str:
        """With paths into the repository changed to those into the worktree."""
        if self.folder is None:
            return text
        root, stands_in = self.folder
        return re.sub(rf"(?<![\w/.-]){re.escape(root)}(?![\w.-])", lambda _: stands_in, text)


def _existing(folder: str, root: str) -> str:
    """Of a folder that this revision lacks, the nearest above it."""
    while not os.path.isdir(folder) and folder != root:
        folder = os.path.dirname(folder)
    return folder


def simple_variation(side: str, revision: Revision, where: str) -> Variation:
    """Of a revision that needs nothing built: arguments, variables, a program, a command or a server. `where`: its option."""
    text = shown(revision, where)
    match revision.kind:
        case RevisionKind.ARGS:
            return Variation(side=side, revision=text, args=revision.words(where))
        case RevisionKind.ENV:
            return Variation(side=side, revision=text, env={**revision.variables(where)})
        case RevisionKind.BIN:
            return Variation(side=side, revision=text, programs={"program": _program(revision.text, where)})
        case RevisionKind.CMD:
            return Variation(side=side, revision=text, line=revision.text)
        case RevisionKind.OPENAI:
            return Variation(side=side, revision=text, target=text)
    raise ValueError(f"{revision} must be built first")


def shown(revision: Revision, where: str) -> str:
    """As reports and labels have it: secrets are left out."""
    if revision.kind is RevisionKind.ENV:
        words = [f"{name}={value}" for name, value in redact(revision.variables(where)).items()]
    elif revision.kind in (RevisionKind.ARGS, RevisionKind.CMD):
        words = [*redact_words(revision.words(where))]
    else:
        return str(revision)
    return f"{revision.kind.value}:{shlex.join(words)}"


def _program(text: str, where: str) -> str:
    """An absolute path, so that it means the same in every folder."""
    import shutil  # with every compression there is: 3 ms

    found = os.path.abspath(os.path.expanduser(text)) if os.sep in text or os.path.isfile(text) else shutil.which(text)
    if found is None or not os.path.isfile(found):
        raise InvalidInput(f"there is no program '{text}'", where=where, remedy="check the path")
    if not os.access(found, os.X_OK):
        raise InvalidInput(f"'{text}' cannot be executed", where=where, remedy=f"chmod +x {shlex.quote(text)}")
    return found


def unpaired(side: Variation, resolved: Resolved) -> Resolved:
    """One side, compared with nothing."""
    labels = {REVISION: side.revision}
    benchmarks = tuple(replace(b, labels=b.labels | labels) for b in map(side.changed, resolved.benchmarks))
    return replace(resolved, benchmarks=benchmarks)


def paired(sides: Sequence[tuple[Variation, Resolved]]) -> Resolved:
    """Both sides as the benchmarks of one run, each beside its partner.

    What only one side has is listed with the reason, and not measured.
    """
    (control, before), (treatment, after) = sides
    if (control.line or control.target) is not None and (treatment.line or treatment.target) is not None:
        before, after = _called_alike(before, after)
    names = dict.fromkeys(b.name for side in (before, after) for b in side.benchmarks)
    found: list[Benchmark] = []
    for name in names:
        for variation, side, other in ((control, before, after), (treatment, after, before)):
            benchmark = next((b for b in side.benchmarks if b.name == name), None)
            if benchmark is None:
                continue
            if all(b.name != name for b in other.benchmarks):
                lacking = CONTROL if variation.side == TREATMENT else TREATMENT
                benchmark = replace(benchmark, withheld=f"the {lacking} has no such benchmark")
            found.append(variation.applied(benchmark).on_side(variation.side, variation.revision))
    options = replace(after.options, interleave=True)
    if before.options.suite_paths is not None and after.options.suite_paths is not None:
        found, paths = _with_interpreters(found, before.options.suite_paths, after.options.suite_paths)
        options = replace(options, suite_paths=paths)
    return Resolved(benchmarks=tuple(found), options=options, name=after.name)


def _called_alike(before: Resolved, after: Resolved) -> tuple[Resolved, Resolved]:
    """Two commands, or two servers, are one benchmark, called after both where their names differ."""
    (one,), (other,) = before.benchmarks, after.benchmarks
    name = one.name if one.name == other.name else f"{other.name} vs {one.name}"
    return replace(before, benchmarks=(replace(one, name=name),)), replace(
        after, benchmarks=(replace(other, name=name),)
    )


def _with_interpreters(
    benchmarks: Sequence[Benchmark], before: SuitePaths, after: SuitePaths
) -> tuple[list[Benchmark], SuitePaths]:
    """A suite's environment differs between the sides if their interpreters or requirements do."""
    paths = {CONTROL: before, TREATMENT: after}
    apart = before.python != after.python
    required = {side: _requirements(b for b in benchmarks if b.side == side) for side in paths}
    made, interpreters = [], dict[str, str]()
    for benchmark in benchmarks:
        environment, of_side = benchmark.environment, paths[benchmark.side or TREATMENT]
        if environment is not None:
            known = of_side.python if apart else of_side.interpreters.get(environment.name)
            if apart or required[CONTROL].get(environment.name) != required[TREATMENT].get(environment.name):
                environment = replace(environment, name=f"{environment.name}-{benchmark.side}")
            if known is not None:
                interpreters[environment.name] = known
        made.append(replace(benchmark, environment=environment))
    return made, replace(after, python=None if apart else after.python, interpreters=interpreters)


def _requirements(benchmarks: Iterable[Benchmark]) -> dict[str, set[object]]:
    """Ingredients of each environment, by its name: every file of its folder that may name some, and what the suite adds."""
    found: dict[str, set[object]] = {}
    for benchmark in benchmarks:
        if (environment := benchmark.environment) is not None:
            files = sorted(Path(environment.folder).glob("requirements*"))
            text = tuple((file.name, file.read_bytes()) for file in files if file.is_file())
            more = (environment.packages, environment.constraints, environment.pip_args, environment.python)
            found.setdefault(environment.name, set()).add((environment.requirements, text, more))
    return found
