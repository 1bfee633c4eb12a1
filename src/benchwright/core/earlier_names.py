"""Old names in files of earlier versions, mapped to today's when read; they are never written."""

from __future__ import annotations

from typing import Any

from benchwright.core.entry_points import own_entry_points
from benchwright.core.stream_dialect import STREAM_DIALECTS, first_installed

# Each plan with an old name contains one of these, or the name of a stream dialect: as a key, or as the name of an event, it stood
# for what `reported`, `runner` and `packages` say today of any dialect.
_MARKS = (b'"pack":', b'"settings":', b'"step_timeout_s":', b'"spec":{')

_SETTINGS = {
    "surroundings": "suite_paths",
    "turn_s": "turns",
    "echo": "show_output",
    "shared": "share",
    "sample_interval_s": "sample_interval",
    "grace_s": "grace",
    "stop_grace_s": "stop_grace",
    "max_memory_bytes": "max_memory",
}
_FILES = ("files", "input_files", "libraries", "output_files", "goldens")
_FILE = {"key": "name"}
_MODEL = {"sequence": "sequence_file", "step_timeout_s": "build_timeout"}


def has_earlier_names(raw: bytes) -> bool:
    """Whether a stored plan may have some."""
    return any(mark in raw for mark in _MARKS) or any(f'"{name}":'.encode() in raw for name in STREAM_DIALECTS.built_in)


def renamed_event(event: dict[str, Any]) -> dict[str, Any]:
    """An event that is called by its dialect, as one that was reported in it; others as they are."""
    name = event["event"]
    return event | {"event": "reported", "dialect": name} if name in STREAM_DIALECTS.built_in else event


def dialect_of(env: dict[str, str | None]) -> str | None:
    """Of the lines of a stored job that names none."""
    return first_installed() if "DATA_FD" in env else None


def renamed_benchmark(body: object) -> object:
    """A stored benchmark with today's names; anything else is returned unchanged, for the reader to refuse."""
    if not isinstance(body, dict):
        return body
    if isinstance(body.get("workload"), dict) and body["workload"].get("type") == "model":
        body = {**body, "workload": renamed_model(body["workload"])}
    if isinstance(body.get("spec"), dict):
        body = {**body, "data": _renamed_test(body["spec"])}
    if isinstance(body.get("folder"), dict):
        body = {**body, "folder": _renamed_folder(body["folder"])}
    if "pack" not in body:
        return body
    pack, renamed = body["pack"], {key: value for key, value in body.items() if key != "pack"}
    if not isinstance(pack, dict):
        return {**renamed, "folder": pack}
    environment = {key: pack[key] for key in ("requirements", "variant", "constraints", "pip_args") if key in pack}
    environment |= {"name": pack.get("install_group"), "folder": pack.get("definition")}
    environment["packages"] = [name for name in STREAM_DIALECTS.built_in if pack.get(name) is not None]
    folder = {key: value for key, value in pack.items() if key not in (*environment, "definition", "install_group")}
    return {
        **renamed,
        "environment": environment,
        "folder": _renamed_folder({**folder, "path": pack.get("definition")}),
    }


def _renamed_folder(body: dict[str, Any]) -> dict[str, Any]:
    """The settings of a runner were named by it; its suites have the only dialect that we have."""
    name, rest = _without_dialect(body)
    if not name or body[name] is None:
        return rest
    dialect = next(iter(own_entry_points("benchwright.suite_dialects")), "")
    return {**rest, "runner": {"name": name, "dialect": dialect, "settings": body[name]}}


def _without_dialect(body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The dialect that a key of `body` is named by, empty if none is, and `body` without that key."""
    name = next((key for key in body if key in STREAM_DIALECTS.built_in), "")
    return name, {key: value for key, value in body.items() if key != name}


def renamed_model(body: dict[str, Any]) -> dict[str, Any]:
    """The same for a stored model."""
    return {_MODEL.get(key, key): value for key, value in body.items()}


def _renamed_test(body: dict[str, Any]) -> dict[str, Any]:
    """The test of a specification, formerly a separate field; its files had a key instead of a name."""
    named = {field: body[field] for field in _FILES if isinstance(body.get(field), list)}
    return body | {
        field: [{_FILE.get(key, key): value for key, value in file.items()} for file in files if isinstance(file, dict)]
        for field, files in named.items()
    }


def renamed_plan(body: object) -> object:
    """The same for plan.json."""
    if not isinstance(body, dict):
        return body
    changed = dict(body)
    for key in ("benchmarks", "asked"):
        if isinstance(body.get(key), list):
            changed[key] = [renamed_benchmark(benchmark) for benchmark in body[key]]
    if "settings" in changed:
        settings = changed.pop("settings")
        named = isinstance(settings, dict)
        changed["options"] = {_SETTINGS.get(k, k): v for k, v in settings.items()} if named else settings
    return changed


def renamed_run(body: Any) -> Any:
    """The same for a stored run."""
    results = body.get("results") if isinstance(body, dict) else None
    if not isinstance(results, list | tuple):
        return body
    return {**body, "results": [_renamed_result(r) if isinstance(r, dict) else r for r in results]}


def _renamed_result(body: dict[str, Any]) -> dict[str, Any]:
    renamed = dict(body)
    if "benchmark" in body:
        renamed["benchmark"] = renamed_benchmark(body["benchmark"])
    if isinstance(body.get("launches"), list | tuple):
        renamed["launches"] = [_renamed_launch(x) if isinstance(x, dict) else x for x in body["launches"]]
    return renamed


def _renamed_launch(body: dict[str, Any]) -> dict[str, Any]:
    """Its number was called `repeat`, which is now the number of launches only, and the fact `reported` by its dialect."""
    facts = body.get("facts")
    name, rest = _without_dialect(facts) if isinstance(facts, dict) else ("", {})
    if facts and name:
        said = facts[name]
        said = {"dialect": name, **said} if isinstance(said, dict) else said
        body = body | {"facts": rest if said is None else rest | {"reported": said}}
    return {"launch" if key == "repeat" else key: value for key, value in body.items()} if "repeat" in body else body
