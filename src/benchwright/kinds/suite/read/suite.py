"""Suites: YAML files of benchmarks that inherit from each other. docs/reference/suites.md is the format."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.kinds.metric_option import check_distinct, metrics_of
from benchwright.kinds.suite.benchfile.benchfile import PROGRAMS
from benchwright.kinds.suite.read.entry import Folders, benchmark_of
from benchwright.kinds.suite.read.folder import has_program, plain
from benchwright.kinds.suite.read.places import Places
from benchwright.kinds.suite.read.resolution import resolve_entries
from benchwright.kinds.suite.read.selection import choose
from benchwright.kinds.suite.read.stop_rules import Wrong
from benchwright.kinds.text_file import decode
from benchwright.kinds.yaml.nodes import parse_yaml
from benchwright.options.table import Options

SUFFIXES = (".yaml", ".yml")
_SNIFFED_BYTES = 32 << 10
_SYSTEM_KEYS = {"system", "multirun"}
_SYSTEM_VALUES = {"nodes", "sshkey", "arch"}  # a map of one of these names is an entry of a suite
_SCALING_KEYS = {"observations", "model", "optimized"}
_SUITE_KEYS = {*PROGRAMS, "inherits", "definition", "argv", "plan", "enabled", "weight", "matrix", "voir"}


class Suite(msgspec.Struct, frozen=True):
    """A suite, resolved. `entries` has the keys of the suite file for every public entry, disabled ones too.

    `selected` are to be run; `disabled` are meant by the selection but not enabled; `forced` are selected though disabled.
    """

    path: str
    entries: dict[str, dict[str, Any]]
    selected: tuple[str, ...]
    disabled: tuple[str, ...]
    forced: tuple[str, ...]
    places: Places
    warnings: tuple[str, ...]
    notes: dict[str, tuple[str, ...]]  # entry → warnings that concern it


def read_suite(
    path: str, *, overrides: Sequence[str] = (), select: Sequence[str] = (), exclude: Sequence[str] = ()
) -> Suite:
    """The suite at `path`; InvalidInput points at what is wrong in it, or in an option."""
    resolution = resolve_entries(path, overrides)
    selection = choose(resolution.entries, select, exclude)
    notes = dict(resolution.notes)
    for name in selection.forced:
        notes[name] = (*notes.get(name, ()), "disabled in the suite; runs because --select names it")
    warnings = [text for texts in resolution.notes.values() for text in texts]
    warnings += [f"{name} is disabled in the suite; it runs because --select names it" for name in selection.forced]
    return Suite(
        path=path,
        entries=resolution.entries,
        selected=selection.run,
        disabled=selection.disabled,
        forced=selection.forced,
        places=resolution.places,
        warnings=tuple(warnings),
        notes=notes,
    )


def selected_benchmarks(path: str, options: Options) -> list[Benchmark]:
    """The benchmarks of the suite at `path` that `options` select; InvalidInput if there are none."""
    select = (*options.select, *options.tasks)
    suite = read_suite(path, overrides=options.overrides, select=select, exclude=options.exclude)
    shown = {*suite.selected, *(suite.disabled if select else ())}
    reader = _Reader(suite, options)
    found = [reader.benchmark(name) for name in suite.entries if name in shown and _can_run(suite, name, select)]
    if not found:
        raise _nothing(suite, bool(select or options.exclude))
    for benchmark in found:
        check_distinct(benchmark.metrics)
    return found


def suite_benchmarks(suite: Suite, options: Options = Options()) -> list[Benchmark]:  # noqa: B008
    """Every entry of `suite` that has something to run, disabled ones too."""
    reader = _Reader(suite, options)
    return [reader.benchmark(name) for name, entry in suite.entries.items() if has_program(entry)]


def suite_file(benchmark: Benchmark) -> str | None:
    """The suite file the user named to get `benchmark`, if it came from one."""
    if benchmark.folder is None:
        return None
    place = benchmark.source.removesuffix(f" [{benchmark.pair or benchmark.name}]")
    return re.sub(r":\d+$| \([^()]*:\d+\)$", "", place)


def refuse_unrunnable(benchmarks: Sequence[Benchmark], *, before_install: bool = False) -> None:
    """InvalidInput for the first one that cannot be run as it is: no folder, no script, or a benchfile that
    cannot be obeyed. `before_install`: a script may be missing that the benchfile's own install can bring."""
    from benchwright.kinds.suite.benchfile.benchfile import RUN_METHODS, read_benchfile

    for benchmark in benchmarks:
        folder = benchmark.folder
        if folder is None or not benchmark.enabled:
            continue
        if not os.path.isdir(folder.path):
            remedy = "run: benchwright install" if folder.git else "check 'definition' of its entry"
            raise InvalidInput(f"the folder {folder.path} is missing", where=benchmark.source, remedy=remedy)
        facts = read_benchfile(folder.path)
        if (refusal := facts.refusal(folder.config)) is not None:
            raise refusal
        own_steps = benchmark.environment is not None and benchmark.environment.own_steps is not None
        if facts.obeyed(RUN_METHODS, folder.config) or (before_install and own_steps):
            continue
        script = os.path.join(folder.path, folder.main_script)
        if folder.config.get("command"):
            continue
        if not os.path.exists(script):
            raise InvalidInput(
                f"there is no script {script}", where=benchmark.source, remedy="write it, or name another: main: SCRIPT"
            )


def yaml_kind(path: str) -> str | None:
    """What the YAML file at `path` seems to be: suite, system or scaling. What cannot be read is a suite: reading it as one
    tells best what is wrong."""
    try:
        value = parse_yaml(_beginning(path), path, extras=True).value
    except InvalidInput:
        return "suite"
    if value is None:
        return "suite"
    if not isinstance(value, dict):
        return None
    if _SYSTEM_KEYS & set(value) or any(not isinstance(value.get(key, {}), dict) for key in _SYSTEM_VALUES):
        return "system"
    if "include" not in value and not any(isinstance(entry, dict) for entry in value.values()):
        return None if value else "suite"
    keys = set().union(*(entry for entry in value.values() if isinstance(entry, dict)))
    return "scaling" if _SCALING_KEYS & keys and not _SUITE_KEYS & keys else "suite"


def _beginning(path: str) -> str:
    """Enough of the file to recognise it by, cut where a new entry begins."""
    try:
        with open(path, "rb") as file:
            content = file.read(_SNIFFED_BYTES + 1)
    except OSError:
        return ""
    if len(content) <= _SNIFFED_BYTES:
        return decode(path, content)
    text = content.decode("utf-8", "ignore")
    return text[: max((match.start() for match in re.finditer(r"^\S", text, re.MULTILINE)), default=0) or None]


def _can_run(suite: Suite, name: str, select: Sequence[str]) -> bool:
    """Entries with nothing to run are skipped, as in milabench; selecting one by name is an error."""
    return has_program(suite.entries[name]) or any(name in words.split(",") for words in select)


def _nothing(suite: Suite, chosen: bool) -> InvalidInput:
    if chosen:
        return InvalidInput(
            "the selection leaves nothing to run", where=suite.path, remedy="check --select and --exclude"
        )
    if not suite.entries:
        remedy = "an entry that runs has a name without '_' in front, and a definition, command or script"
        return InvalidInput("the suite has no entry to run", where=suite.path, remedy=remedy)
    if suite.selected:
        return InvalidInput(
            "no enabled entry has a definition, command or script",
            where=suite.path,
            remedy="name the folders of their code",
        )
    return InvalidInput(
        "every entry is disabled", where=suite.path, remedy="write enabled: true, or name one with --select"
    )


class _Reader:
    """Makes benchmarks of a suite's entries."""

    def __init__(self, suite: Suite, options: Options) -> None:
        self._suite = suite
        self._metrics = metrics_of(options)
        self._folders = Folders(options.definitions)
        self._plain = all(layer.file.plain for layer in suite.places.layers) and not options.overrides
        self._sources: dict[str, str] = {}
        for layer in suite.places.layers:
            path = layer.file.path
            for name, line in layer.file.lines().items():
                self._sources[name] = f"{path}:{line}" if path == suite.path else f"{suite.path} ({path}:{line})"

    def benchmark(self, name: str) -> Benchmark:
        suite, entry = self._suite, self._suite.entries[name]
        written = suite.places.made.get(name, name)
        try:
            benchmark = benchmark_of(
                entry if self._plain else plain(entry),
                self._folders,
                source=f"{self._sources.get(written, suite.path)} [{name}]",
                notes=tuple(dict.fromkeys((*suite.notes.get(written, ()), *suite.notes.get(name, ())))),
            )
        except Wrong as wrong:
            raise suite.places.error(name, wrong.path, wrong.what, wrong.remedy) from None
        if not self._metrics and name not in suite.forced:
            return benchmark
        return msgspec.structs.replace(
            benchmark,
            metrics=benchmark.metrics + self._metrics,
            enabled=benchmark.enabled or name in suite.forced,
        )
