"""Suites: YAML files of benchmarks that inherit from each other. docs/reference/suites.md is the format."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from benchload.settings import WrongSetting, parse
from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Command, Placement, Script
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.metric import MetricSpec
from benchwright.core.stop_rule import parse_stop_rule, parse_warmup
from benchwright.kinds.command_words import command_from_line
from benchwright.kinds.metric_option import check_distinct, metrics_of, parse_metric_option
from benchwright.kinds.requests.gather import CLIENT_MODULE
from benchwright.kinds.suite.dialect import claim, dialects
from benchwright.kinds.suite.folder_facts import PROGRAMS, FolderFacts
from benchwright.kinds.suite.read.folder import (
    argv_words,
    environment_of,
    folder_of,
    folder_of_entry,
    has_program,
    plain,
)
from benchwright.kinds.suite.read.inheritance import tag_list
from benchwright.kinds.suite.read.keys import ENDPOINT, PER_DEVICE
from benchwright.kinds.suite.read.places import Places
from benchwright.kinds.suite.read.resolution import resolve_entries
from benchwright.kinds.suite.read.stop_rules import LoopRules, Wrong, parsed, seconds_of, whole_of
from benchwright.kinds.text_file import decode
from benchwright.kinds.yaml.values import parse_yaml
from benchwright.options.table import Options

# A resolved entry of a suite as a Benchmark; its words still hold placeholders.


DEFAULT_DURATION_S = 600.0
MOST_JOBS = 10_000  # of one launch: what is more is a slip, and would take all memory to plan


class Folders:
    """Facts about a suite's folders, each read once."""

    def __init__(self, definitions: str) -> None:
        self._definitions = definitions
        self._facts: dict[str, FolderFacts] = {}
        self._notes: dict[str, tuple[str, ...]] = {}
        self._scripts: dict[str, tuple[str, ...]] = {}

    def facts(self, entry: dict[str, object]) -> FolderFacts:
        folder = folder_of(entry, self._definitions)
        if not entry.get("definition"):  # the suite's folder is not the benchmark's: it installs and prepares nothing
            return FolderFacts(folder=folder, requirements=(), prepare_script=None)
        if folder not in self._facts:
            self._facts[folder] = claim(folder).facts
        return self._facts[folder]

    def notes(self, entry: dict[str, object], facts: FolderFacts, script: str) -> tuple[str, ...]:
        """Remarks on the entry's folder and script."""
        if facts.folder not in self._notes:
            missing = not os.path.isdir(facts.folder)
            cloned = isinstance(entry.get("definition"), dict)
            says = (
                "its folder is missing until `install` clones it" if cloned else f"its folder {facts.folder} is missing"
            )
            self._notes[facts.folder] = (says,) if missing else facts.notes
        refusal = facts.refusal(entry)
        if refusal is None:
            return (*self._notes[facts.folder], *self._of_script(entry, facts, script))
        place = ":".join(str(part) for part in (refusal.where, refusal.line) if part is not None)
        return (*self._notes[facts.folder], f"it cannot run as it is: {refusal.what} ({place})")

    def _of_script(self, entry: dict[str, object], facts: FolderFacts, script: str) -> tuple[str, ...]:
        """A benchfile's own plan may do without one; its own install may bring it."""
        if entry.get("command") or facts.follows("run", entry):
            return ()
        path = os.path.join(facts.folder, script)
        if path not in self._scripts:
            lacking = os.path.isdir(facts.folder) and not os.path.exists(path)
            until = " before `install`" if facts.follows("install", entry) else ""
            self._scripts[path] = (f"there is no script {path}{until}",) if lacking else ()
        return self._scripts[path]


def benchmark_of(entry: dict[str, Any], folders: Folders, *, source: str, notes: tuple[str, ...] = ()) -> Benchmark:
    """The benchmark of an `entry` that JSON can hold; Wrong points at an invalid key."""
    entry = _with_our_client(entry)
    if not has_program(entry):
        remedy = "name the folder of its main.py (definition: ./folder), a command or a script"
        raise Wrong((), f"'{entry['name']}' has no definition", remedy)
    measuring = _loop_rules(entry)
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
            *(measuring.notes if folder.runner is None else ()),
            *folders.notes(entry, facts, folder.main_script),
        ),
    )


def _with_our_client(entry: dict[str, Any]) -> dict[str, Any]:
    """With the command of our client, if that is what measures the server."""
    client = entry.get("client")
    given = {"script": client} if isinstance(client, str) else client or {}
    if given.get("script") != ENDPOINT:
        return entry
    if entry.get("command"):
        raise Wrong(("command",), "the client is the command", "leave one of them out")
    url = (str(given["url"]),) if given.get("url") else ()
    words = [*url, *argv_words(entry.get("argv")), *argv_words(given.get("argv"))]
    try:
        if not any("{" in word for word in words):  # no placeholder is left to be filled
            parse(words)
    except WrongSetting as error:
        remedy = "give client: {script: endpoint, url: http://…/v1, argv: {--model: NAME}}"
        raise Wrong(("client",), f"{error.option} {error}".strip(), remedy) from None
    return entry | {"command": ["python", *CLIENT_MODULE, *words], "argv": None, "client": {"script": ENDPOINT}}


def _loop_rules(entry: dict[str, Any]) -> LoopRules:
    """Its own `stop` and `warmup` win over what a dialect's keys say. Raises Wrong."""
    known = (rules for dialect in dialects() if (rules := dialect.loop_rules(entry)) is not None)
    observed = next(known, LoopRules())
    stop, warmup = entry.get("stop"), entry.get("warmup")
    return LoopRules(
        stop=observed.stop if stop is None else parsed(parse_stop_rule, stop, ("stop",)),
        warmup=observed.warmup if warmup is None else parsed(parse_warmup, warmup, ("warmup",)),
        notes=observed.notes if stop is None else (),
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


# `--select` and `--exclude`: choosing entries of a suite.


class Selection(msgspec.Struct, frozen=True):
    """Names in the order of the suite. `forced`: disabled ones that `--select` names."""

    run: tuple[str, ...]
    disabled: tuple[str, ...]  # meant too, but not enabled: reported as skipped where `--select` is given
    forced: tuple[str, ...] = ()


def choose(entries: dict[str, dict[str, object]], select: Sequence[str], exclude: Sequence[str]) -> Selection:
    """The entries that fit a word of `select` (all, if there is none) and none of `exclude`.

    A word is a name, a group, an install group, a tag, the name of a definition's folder, or a pattern such as `llm-*`.
    InvalidInput for a word that fits nothing.
    """
    wanted, unwanted = _split_words(select), _split_words(exclude)
    keys = {name: _keys(name, entry) for name, entry in entries.items()}
    _check_words(wanted, keys, "--select")
    _check_words(unwanted, keys, "--exclude")
    meant = [
        name
        for name, own in keys.items()
        if (not wanted or _fits(wanted, own)) and not (unwanted and _fits(unwanted, own))
    ]
    off = [name for name in meant if not enabled(entries[name])]
    forced = tuple(name for name in off if name in wanted)
    skipped = tuple(name for name in off if name not in wanted)
    left_out = set(skipped)
    return Selection(tuple(name for name in meant if name not in left_out), skipped, forced)


def enabled(entry: dict[str, object]) -> bool:
    """Whether an entry is enabled."""
    return entry.get("enabled") is not False


def _split_words(given: Sequence[str]) -> list[str]:
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


def _keys(name: str, entry: dict[str, object]) -> set[str]:
    found = {name, *(str(tag) for tag in tag_list(entry.get("tags")))}
    found.update(str(entry[key]) for key in ("group", "install_group") if entry.get(key) is not None)
    definition = entry.get("definition")
    if isinstance(definition, dict):
        definition = str(definition.get("git") or "").removesuffix(".git")
    if isinstance(definition, str) and definition:
        found.add(os.path.basename(definition.rstrip("/")))
    return found


def _fits(words: Iterable[str], keys: set[str]) -> bool:
    for word in words:
        if word in keys or word == "*":
            return True
        if _is_pattern(word) and any(fnmatch.fnmatchcase(key, word) for key in keys):
            return True
    return False


def _is_pattern(word: str) -> bool:
    return any(character in word for character in "*?[")


def _check_words(words: Iterable[str], keys: dict[str, set[str]], option: str) -> None:
    known: set[str] = set().union(*keys.values()) if keys else set()
    for word in words:
        if word != "*" and not _fits((word,), known):
            raise InvalidInput(
                f"no benchmark, tag or group is called '{word}'",
                where=option,
                remedy=did_you_mean(word, sorted(known)) or "see the names with: benchwright resolve SUITE",
            )


SUFFIXES = (".yaml", ".yml")
_USUAL_NAMES = ("suite.yaml", "suite.yml", "dev.yaml")
_SNIFFED_BYTES = 32 << 10
_SYSTEM_KEYS = {"system", "multirun"}
_SYSTEM_VALUES = {"nodes", "sshkey", "arch"}  # a map of one of these names is an entry of a suite
_SCALING_KEYS = {"observations", "model", "optimized"}
_SUITE_KEYS = {*PROGRAMS, "inherits", "definition", "argv", "plan", "enabled", "weight", "matrix"}


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


def is_suite(path: str) -> bool:
    return path.lower().endswith(SUFFIXES) and os.path.isfile(path) and yaml_kind(path) == "suite"


def suite_in(folder: str) -> str | None:
    """The suite in `folder`; of several, suite.yaml or the dev.yaml that `bw new` makes."""
    names = sorted(name for name in os.listdir(folder) if name.lower().endswith(SUFFIXES))
    found = [name for name in names if is_suite(os.path.join(folder, name))]
    usual = [name for name in found if name in _USUAL_NAMES] or found
    if len(usual) > 1:
        remedy = "name one of them"
        raise InvalidInput(f"holds {len(usual)} suites: {', '.join(usual)}", where=folder, remedy=remedy)
    return os.path.join(folder, usual[0]) if usual else None


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
    for benchmark in benchmarks:
        folder = benchmark.folder
        if folder is None or not benchmark.enabled:
            continue
        if not os.path.isdir(folder.path):
            remedy = "run: benchwright install" if folder.git else "check 'definition' of its entry"
            raise InvalidInput(f"the folder {folder.path} is missing", where=benchmark.source, remedy=remedy)
        facts = claim(folder.path).facts
        if (refusal := facts.refusal(folder.config)) is not None:
            raise refusal
        own_steps = benchmark.environment is not None and benchmark.environment.own_steps is not None
        if facts.follows("run", folder.config) or (before_install and own_steps):
            continue
        script = os.path.join(folder.path, folder.main_script)
        if folder.config.get("command"):
            continue
        if not os.path.exists(script):
            raise InvalidInput(
                f"there is no script {script}", where=benchmark.source, remedy="write it, or name another: main: SCRIPT"
            )


def yaml_kind(path: str) -> str | None:
    """The apparent kind of the YAML file at `path`: suite, system or scaling. An unreadable file is a suite: reading it as one
    shows best what is wrong."""
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
    theirs = {key for dialect in dialects() for key in dialect.entry_keys()}
    return "scaling" if _SCALING_KEYS & keys and not (_SUITE_KEYS | theirs) & keys else "suite"


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
    """Entries with nothing to run are skipped; selecting one by name is an error."""
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
