"""A resolved entry of a suite as a Benchmark; its words still hold placeholders."""

from __future__ import annotations

import os
import shlex
from typing import Any

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Command, Placement, Script
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import MetricSpec
from benchwright.kinds.command_words import command_from_line
from benchwright.kinds.metric_option import parse_metric_option
from benchwright.kinds.suite.benchfile.benchfile import (
    INSTALL_METHODS,
    RUN_METHODS,
    BenchFacts,
    read_benchfile,
)
from benchwright.kinds.suite.read.folder import argv_words, environment_of, folder_of, folder_of_entry, has_program
from benchwright.kinds.suite.read.inheritance import tag_list
from benchwright.kinds.suite.read.keys import PER_DEVICE
from benchwright.kinds.suite.read.stop_rules import Wrong, loop_rules_of, seconds_of, whole_of

DEFAULT_DURATION_S = 600.0
MOST_JOBS = 10_000  # of one launch: what is more is a slip, and would take all memory to plan


class Folders:
    """Facts about a suite's folders, each read once."""

    def __init__(self, definitions: str) -> None:
        self._definitions = definitions
        self._facts: dict[str, BenchFacts] = {}
        self._notes: dict[str, tuple[str, ...]] = {}
        self._scripts: dict[str, tuple[str, ...]] = {}

    def facts(self, entry: dict[str, object]) -> BenchFacts:
        folder = folder_of(entry, self._definitions)
        if not entry.get("definition"):  # the suite's folder is not the benchmark's: it installs and prepares nothing
            return BenchFacts(folder=folder, requirements=(), prepare_script=None)
        if folder not in self._facts:
            self._facts[folder] = read_benchfile(folder)
        return self._facts[folder]

    def notes(self, entry: dict[str, object], facts: BenchFacts, script: str) -> tuple[str, ...]:
        """Remarks on the entry's folder and script."""
        if facts.folder not in self._notes:
            missing = not os.path.isdir(facts.folder)
            cloned = isinstance(entry.get("definition"), dict)
            says = (
                "its folder is missing until `install` clones it" if cloned else f"its folder {facts.folder} is missing"
            )
            self._notes[facts.folder] = (says,) if missing else facts.notes
        refusal = facts.refusal(entry) if facts.overridden or facts.trouble is not None else None
        if refusal is None:
            return (*self._notes[facts.folder], *self._of_script(entry, facts, script))
        place = ":".join(str(part) for part in (refusal.where, refusal.line) if part is not None)
        return (*self._notes[facts.folder], f"it cannot run as it is: {refusal.what} ({place})")

    def _of_script(self, entry: dict[str, object], facts: BenchFacts, script: str) -> tuple[str, ...]:
        """A benchfile's own plan may do without one; its own install may bring it."""
        if entry.get("command") or facts.obeyed(RUN_METHODS, entry):
            return ()
        path = os.path.join(facts.folder, script)
        if path not in self._scripts:
            lacking = os.path.isdir(facts.folder) and not os.path.exists(path)
            until = " before `install`" if facts.obeyed(INSTALL_METHODS, entry) else ""
            self._scripts[path] = (f"there is no script {path}{until}",) if lacking else ()
        return self._scripts[path]


def benchmark_of(entry: dict[str, Any], folders: Folders, *, source: str, notes: tuple[str, ...] = ()) -> Benchmark:
    """The benchmark of an `entry` that JSON can hold; Wrong points at an invalid key."""
    if not has_program(entry):
        remedy = "name the folder of its main.py (definition: ./folder), a command or a script"
        raise Wrong((), f"'{entry['name']}' has no definition", remedy)
    measuring = loop_rules_of(entry)
    facts = folders.facts(entry)
    folder = folder_of_entry(entry, facts)
    usual = facts.has_usual_plan(entry)
    limit = entry.get("max_duration")
    return Benchmark(
        name=entry["name"],
        workload=_command(entry, folder) if entry.get("command") else _script(entry, folder, usual),
        source=source,
        metrics=_metrics(entry),
        placement=_placement(entry, only_main=usual),
        env=_environment(entry),
        timeout_s=DEFAULT_DURATION_S if limit is None else seconds_of(limit, ("max_duration",)),
        stop=measuring.stop,
        warmup=measuring.warmup,
        loop=entry.get("loop"),
        labels={str(key): _written(value) for key, value in (entry.get("labels") or {}).items()},
        tags=tuple(dict.fromkeys(str(tag) for tag in tag_list(entry.get("tags")))),
        parameters={str(key): _written(value) for key, value in (entry.get("matrix") or {}).items()},
        enabled=_enabled(entry),
        environment=environment_of(entry, facts),
        folder=folder,
        weight=_weight(entry),
        requires=_conditions(entry),
        validation=entry.get("validation") or {},
        notes=(
            *notes,
            *(measuring.notes if folder.voir is None else ()),
            *folders.notes(entry, facts, folder.main_script),
        ),
    )


def _script(entry: dict[str, Any], folder: BenchmarkFolder, usual: bool) -> Script:
    path = os.path.join(folder.path, folder.main_script)
    return Script(path=path, args=_words(entry), cwd=os.path.dirname(path) if usual else folder.path, python="")


def _command(entry: dict[str, Any], folder: BenchmarkFolder) -> Command:
    """The entry's command with its `argv` behind it; Wrong for a line that cannot be run like that."""
    if entry.get("script"):
        raise Wrong(("script",), "an entry has a command or a script, not both", "leave one of them out")
    if folder.launcher is not None:
        remedy = f"write it into the command: {folder.launcher.name} script.py"
        raise Wrong(("command",), f"{folder.launcher.name} starts scripts, not commands", remedy)
    given, shell = entry["command"], bool(entry.get("shell"))
    if isinstance(given, list):
        words = tuple(str(word) for word in given)
        command = Command(argv=(shlex.join(words),) if shell else words, cwd=folder.path, shell=shell)
    else:
        command = command_from_line(str(given), cwd=folder.path, shell=shell, fail=_wrong_command)
    return command.with_arguments(_words(entry))


def _wrong_command(what: str, position: int, remedy: str) -> InvalidInput:
    raise Wrong(("command",), what, remedy.replace("run it with --shell", "add shell: true"))


def _words(entry: dict[str, Any]) -> tuple[str, ...]:
    """The script's words; where a server is measured, the client's behind them."""
    return (*argv_words(entry.get("argv")), *argv_words((entry.get("client") or {}).get("argv")))


def _placement(entry: dict[str, Any], *, only_main: bool) -> Placement:
    machines = entry.get("num_machines")
    plan = entry.get("plan") or {}
    jobs = 1 if plan.get("n") is None or plan.get("method") in PER_DEVICE else whole_of(plan["n"], ("plan", "n"), 1)
    if jobs > MOST_JOBS:
        raise Wrong(("plan", "n"), f"{jobs} processes are too many", f"write {MOST_JOBS} or less")
    return Placement(
        jobs=jobs,
        per_device=plan.get("method") in PER_DEVICE,
        numbered=plan.get("method") not in PER_DEVICE,
        machines=1 if machines is None or only_main else whole_of(machines, ("num_machines",), 1),
    )


def _environment(entry: dict[str, Any]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for name, value in (entry.get("env") or {}).items():
        word = str(name)
        if not word or "=" in word or "\0" in word:
            raise Wrong(("env", name), f"'{name}' cannot be the name of a variable", "write NAME: value")
        changes[word] = None if value is None else _written(value)
    return changes


def _metrics(entry: dict[str, Any]) -> tuple[MetricSpec, ...]:
    found = []
    for name, pattern in (entry.get("metrics") or {}).items():
        try:
            found.append(parse_metric_option(str(name) if pattern is None else f"{name}={pattern}"))
        except InvalidInput as error:
            raise Wrong(("metrics", name), error.what, error.remedy) from None
    names = [metric.name for metric in found]
    for name in names:
        if names.count(name) > 1:
            raise Wrong(("metrics",), f"metric '{name}' is given twice", "rename one of the two")
    return tuple(found)


def _enabled(entry: dict[str, object]) -> bool:
    value = entry.get("enabled")
    if value is not None and not isinstance(value, bool):
        raise Wrong(("enabled",), f"enabled is '{value}', not true or false", "write true or false")
    return value is not False


def _weight(entry: dict[str, object]) -> float:
    weight = entry.get("weight")
    if weight is None:
        return 1.0
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise Wrong(("weight",), f"weight is '{weight}', not a number", "write 0 or more")
    return float(weight)


def _conditions(entry: dict[str, Any]) -> tuple[str, ...]:
    given = entry.get("requires_capabilities")
    return () if given is None else (given,) if isinstance(given, str) else tuple(str(one) for one in given if one)


def _written(value: object) -> str:
    """A value as a user wrote it: `true`, not `True`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
