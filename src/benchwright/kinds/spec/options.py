"""Options of specifications, checked before any file is read."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from benchwright.artifacts.model_cache import model_cache_folder
from benchwright.core.errors import InvalidInput
from benchwright.core.revision import RevisionInfo
from benchwright.kinds.spec.spec_test import SpecTestOptions
from benchwright.kinds.text_file import read_text
from benchwright.options.table import Options

RUN_TYPES = ("benchmark", "verify", "regress")
MAIN = "program"


class SpecOptions(SpecTestOptions, frozen=True, kw_only=True):
    """`programs`: name → path or command; the main one is called `program`. `treatment` and `control`: of `--info`."""

    programs: dict[str, str] = {}
    framework: str | None = None
    backends: tuple[str, ...] = ()
    treatment: RevisionInfo | None = None
    control: RevisionInfo | None = None
    labels: dict[str, str] = {}  # of `--info`'s meta


def spec_options_of(options: Options) -> SpecOptions:
    """InvalidInput names the option that is wrong."""
    here = options.cwd or os.getcwd()
    info = _info(options.info, here)
    run_type = options.run_type or info.get("run_type") or RUN_TYPES[0]
    if run_type not in RUN_TYPES:
        raise InvalidInput(f"'{run_type}' is not a run type", where="--info", remedy=f"use {', '.join(RUN_TYPES)}")
    return SpecOptions(
        programs=dict(_program(text, "--program", here) for text in options.programs),
        framework=options.framework,
        backends=options.runtimes,
        treatment=options.treatment or _revision(info, "treatment", here),
        control=None if options.treatment else _revision(info, "control", here),
        string_map=_string_map(options.string_map, here),
        shared_libs=_shared_libs(options.shared_libs, here),
        root_model_dir=_folder(options.root_model_dir, "--root-model-dir", here),
        model_cache=_model_cache(options),
        offline=options.offline,
        run_type=run_type,
        regressed_types=_regressed(options.regressed_types, info, run_type),
        labels=_labels(info),
    )


def _json(text: str, where: str, here: str) -> dict[str, Any]:
    """A JSON object, or the path of a file that holds one, relative to `here`."""
    if os.path.isfile(path := os.path.join(here, text)):
        text = read_text(path, kind="JSON file")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is not JSON: {error}", where=where, remedy="write {…} in single quotes") from None
    if not isinstance(value, dict):
        raise InvalidInput("is not a JSON object", where=where, remedy="write {…} in single quotes")
    return value


def _string_map(text: str | None, here: str) -> dict[str, str]:
    if not text:
        return {}
    found = _json(text, "--string-map", here)
    for name, value in found.items():
        if isinstance(value, dict | list) or value is None:
            raise InvalidInput(f"{name} is not text", where="--string-map", remedy='write {"NAME": "VALUE"}')
    return {name: str(value) for name, value in found.items()}


def _program(text: str, where: str, here: str) -> tuple[str, str]:
    """PATH, or NAME=PATH for a further program."""
    name, equals, rest = text.partition("=")
    if not equals or not name.isidentifier() or os.path.exists(os.path.join(here, text)):
        name, rest = MAIN, text
    return name, _program_path(rest, where, here)


def _program_path(text: str, where: str, here: str) -> str:
    """An absolute path; a command with arguments stays one."""
    expanded = os.path.join(here, os.path.expanduser(text))
    if text and os.path.exists(expanded):
        if os.path.isdir(expanded):
            raise InvalidInput(f"{text} is a folder", where=where, remedy="name the program")
        return os.path.abspath(expanded)
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words:
        raise InvalidInput("names no program", where=where, remedy="give the path of the program")
    path = os.path.join(here, words[0])
    found = os.path.abspath(path) if os.path.isfile(path) else shutil.which(words[0])
    if found is None:
        raise InvalidInput(f"no such program: {words[0]}", where=where, remedy="check the path")
    return found if len(words) == 1 else shlex.join([found, *words[1:]])


def _info(text: str | None, here: str) -> dict[str, Any]:
    if not text:
        return {}
    found = _json(text, "--info", here)
    for side in ("treatment", "control"):
        if found.get(side) is not None and not isinstance(found[side], dict):
            raise InvalidInput(f"{side} is not an object", where="--info", remedy=f'write {{"{side}": {{…}}}}')
    if found.get("control") and not found.get("treatment"):
        raise InvalidInput("a control needs a treatment", where="--info", remedy='add "treatment"')
    return found


def _revision(info: Mapping[str, Any], side: str, here: str) -> RevisionInfo | None:
    given = info.get(side)
    if not given:
        return None
    where = f"--info {side}"
    programs: dict[str, str] = {}
    for name, entry in (given.get("programs") or {}).items():
        location = entry.get("location") if isinstance(entry, dict) else entry
        if not isinstance(location, str):
            raise InvalidInput(f"program '{name}' has no location", where=where, remedy='write {"location": "PATH"}')
        programs[name] = _program_path(location, where, here)
    if isinstance(given.get("program"), str):
        programs[MAIN] = _program_path(given["program"], where, here)
    return RevisionInfo(
        commit=_text(given.get("commit")),
        commit_time=_time(given.get("commit_time"), where),
        version=_text(given.get("version")),
        programs=programs,
    )


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


def _time(value: object, where: str) -> float | None:
    """Seconds since 1970, or an ISO time; one without a zone is UTC."""
    if value is None or value == "":
        return None
    try:
        return float(str(value))
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        remedy = "write seconds since 1970, or 2026-11-16T12:00:00+00:00"
        raise InvalidInput(f"commit_time '{value}' is not a time", where=where, remedy=remedy) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _regressed(given: tuple[str, ...], info: Mapping[str, Any], run_type: str) -> tuple[str, ...]:
    found = given or info.get("regressed_types")
    if found and not given and not _is_texts(found):
        raise InvalidInput("regressed_types is not a list", where="--info", remedy="""write ["NET"]""")
    if found and run_type != "regress":
        raise InvalidInput("marks nothing in this run", where="--regressed-types", remedy="add --run-type regress")
    return tuple(found or ())


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _labels(info: Mapping[str, Any]) -> dict[str, str]:
    """Labels of `meta`, which are kept with the results."""
    meta = {} if info.get("meta") is None else info["meta"]
    if not isinstance(meta, dict):
        raise InvalidInput("meta is not an object", where="--info", remedy='write "meta": {}')
    return {str(k): str(v) for k, v in meta.items() if v is not None and not isinstance(v, dict | list)}


def _shared_libs(names: Iterable[str], here: str) -> tuple[str, ...]:
    found = []
    for name in names:
        path = os.path.abspath(os.path.join(here, os.path.expanduser(name)))
        if not os.path.exists(path):
            raise InvalidInput(f"no such file: {name}", where="--shared-libs", remedy="check the path")
        found.append(path)
    return tuple(found)


def _folder(text: str | None, where: str, here: str) -> str | None:
    if text is None:
        return None
    path = os.path.abspath(os.path.join(here, os.path.expanduser(text)))
    if not os.path.isdir(path):
        raise InvalidInput(f"no such folder: {text}", where=where, remedy="check the path")
    return path


def _model_cache(options: Options) -> str | None:
    """The folder for fetched files: `--model-cache`, else in the base folder."""
    if options.model_cache is None:
        return f"{options.base}/artifacts" if options.base else None

    return str(model_cache_folder(options.model_cache, forced=options.force_model_cache))
