"""The folder of a suite's benchmark and what its phases need, from the resolved entry and the folder itself."""

from __future__ import annotations

import functools
import hashlib
import math
import os
import re
from collections.abc import Mapping
from typing import Any

from benchwright.core.benchmark import BenchmarkFolder, Environment, Launcher, Serving
from benchwright.kinds.suite.folder_facts import BENCHFILE, PROGRAMS, FolderFacts
from benchwright.kinds.suite.read.keys import LAUNCHERS
from benchwright.kinds.suite.read.stop_rules import Wrong, seconds_of, whole_of
from benchwright.kinds.yaml.merge import APPEND, is_append

ARCH = "${system.arch}"  # the variant of an entry that names none
_UNSAFE = re.compile(r"[/\0]")
DEFAULT_SERVER = "server.py"


def folder_of_entry(entry: dict[str, Any], facts: FolderFacts) -> BenchmarkFolder:
    """The folder of an entry, from the `facts` about it; Wrong points at an invalid key."""
    git, branch = _repository(entry)
    return BenchmarkFolder(
        path=facts.folder,
        group=folder_name(entry, "group"),
        git=git,
        branch=branch,
        prepare_script=_prepare(entry, facts),
        main_script=main_script(entry, facts),
        runner=facts.runner(entry),
        launcher=_launcher(entry),
        serving=_serving(entry),
        config=entry,
    )


def has_program(entry: Mapping[str, object]) -> bool:
    """Whether an entry says what to run: a folder, a command or a script."""
    return any(entry.get(key) for key in ("definition", *PROGRAMS))


def environment_of(entry: dict[str, Any], facts: FolderFacts) -> Environment:
    """The environment of an entry, from the `facts` about its folder; Wrong points at an invalid key."""
    pip, variant = entry.get("pip") or {}, entry.get("install_variant")
    return Environment(
        name=folder_name(entry, "install_group"),
        folder=facts.folder,
        requirements=facts.requirements,
        variant=None if variant in (None, ARCH, "{arch}") else folder_name(entry, "install_variant"),
        packages=facts.packages,
        constraints=_lines(pip.get("constraints")),
        pip_args=tuple(word for line in _lines(pip.get("args")) for word in line.split()),
        python=_python(entry.get("venv"), facts.folder),
        local_packages=facts.local_packages,
        own_steps=os.path.join(facts.folder, BENCHFILE) if facts.follows("install", entry) else None,
    )


def _python(venv: object, folder: str) -> str | None:
    """The interpreter of `venv: {python: …}`; a relative path is taken from the benchmark's folder."""
    given = venv.get("python") if isinstance(venv, dict) else None
    if given is None:
        return None
    text = os.path.expanduser(str(given))
    return os.path.join(folder, text) if os.sep in text else text


def folder_of(entry: dict[str, object], definitions: str) -> str:
    """The definition's absolute folder; for git, the clone's; without a definition, the folder of the file."""
    git, branch = _repository(entry)
    if git is None:
        return str(entry.get("definition") or entry["config_base"])
    name = re.sub(r"[^\w.-]", "_", os.path.basename(git.rstrip("/")).removesuffix(".git")) or "definition"
    return os.path.join(definitions, f"{name}-{hashlib.sha256(f'{git} {branch}'.encode()).hexdigest()[:12]}")


def folder_name(entry: dict[str, object], key: str) -> str:
    """The value of `key`, which becomes part of a path."""
    name = entry.get(key)
    if not isinstance(name, str):
        raise Wrong((key,), f"{key} is '{name}', not text", "put it in quotes")
    if not name.strip() or name in (".", "..") or _UNSAFE.search(name) or not name.isprintable():
        raise Wrong((key,), f"{key} is {name!r}, which cannot be the name of a folder", "write a word without '/'")
    return name


def main_script(entry: dict[str, Any], facts: FolderFacts) -> str:
    """Relative to the folder: the client's, the entry's, or what the folder says."""
    client = entry.get("client") or {}
    return str(client.get("script") or entry.get("script") or entry.get("main") or facts.main_script)


def plain(value: object) -> Any:
    """`value` for JSON: keys become text, and so do NaN and infinity."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return str(value)
    return value


def _key(key: object) -> str:
    return {None: "null", True: "true", False: "false"}[key] if key is None or isinstance(key, bool) else str(key)


@functools.lru_cache(maxsize=4096)
def real_folder(base: str, definition: str) -> str:
    """`definition` relative to the folder `base`, absolute and without links; of a benchfile.py its folder."""
    if os.path.basename(definition) == BENCHFILE:
        definition = os.path.dirname(definition) or "."
    return os.path.realpath(os.path.join(base, os.path.expanduser(definition)))


def _repository(entry: dict[str, object]) -> tuple[str | None, str | None]:
    definition = entry.get("definition")
    if not isinstance(definition, dict):
        return None, None
    git = definition.get("git")
    if not isinstance(git, str) or not git.strip() or git.startswith("-"):
        raise Wrong(
            ("definition",), "the definition names no repository", "write {git: ADDRESS, branch: main}, or a path"
        )
    return git, str(definition.get("branch") or "main")


def _prepare(entry: dict[str, object], facts: FolderFacts) -> str | None:
    given = entry.get("prepare")
    if given is None or given is True:
        return facts.prepare_script
    return str(given) if given is not False else None


def _lines(value: Any) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(map(str, value))


def _launcher(entry: dict[str, Any]) -> Launcher | None:
    at: tuple[str, ...] = ("launcher",)
    given = entry.get("launcher")
    if given is None:
        at, given = ("plan", "launcher"), (entry.get("plan") or {}).get("launcher")
    if isinstance(given, str):
        return Launcher(name=given)
    if given is not None:
        if given.get("name") is None:
            raise Wrong(at, "the launcher has no name", f"write name: {' or '.join(LAUNCHERS)}")
        processes = given.get("processes")
        return Launcher(
            name=given["name"],
            processes=None if processes is None else whole_of(processes, (*at, "processes"), 1),
            args=argv_words(given.get("args")),
        )
    for name in LAUNCHERS:
        words = entry.get(name)
        if words is True:
            return Launcher(name=name)
        if words and isinstance(words, list | dict):
            return Launcher(name=name, args=argv_words(words))
    return None


_READY = re.compile(r"https?://[^/\s].*|tcp:(//)?(\[[^\]]+\]|[^:\s]+):\d{1,5}")  # as benchprobe.served_client takes it


def _serving(entry: dict[str, Any]) -> Serving | None:
    server = entry.get("server")
    if not server:
        return None
    timeout, ready = server.get("ready_timeout"), server.get("ready")
    if ready is not None and "{" not in ready and _READY.fullmatch(ready) is None:
        raise Wrong(("server", "ready"), f"'{ready}' cannot be waited for", "write tcp:HOST:PORT or http://HOST:PORT")
    return Serving(
        script=str(server.get("script") or DEFAULT_SERVER),
        args=argv_words(server.get("argv")),
        ready=ready,
        ready_timeout_s=Serving(script="").ready_timeout_s
        if timeout is None
        else seconds_of(timeout, ("server", "ready_timeout")),
    )


def argv_words(argv: Any) -> tuple[str, ...]:
    """The words. In a map: `true` gives the key alone, null and false nothing, a list is joined by commas; behind the key
    `--` stands a list of words that are taken as they are. Keys alone that are no options come first:
    an entry's subcommand goes before the options that it inherits."""
    if argv is None:
        return ()
    if is_append(argv) and len(argv) == 1:  # there was no list to make longer
        argv = argv[APPEND]
    if isinstance(argv, list):
        return tuple(_as_word(item) for item in argv)
    positional: list[str] = []
    words: list[str] = []
    for key, value in argv.items():
        if value is True:
            (words if str(key).startswith("-") else positional).append(str(key))
        elif value is None or value is False:
            continue
        elif isinstance(value, list):
            words += map(_as_word, value) if key == "--" else (str(key), ",".join(map(_as_word, value)))
        else:
            words += (_as_word(value),) if key == "--" else (str(key), _as_word(value))
    return (*positional, *words)


def _as_word(value: object) -> str:
    return "" if value is None else str(value)
