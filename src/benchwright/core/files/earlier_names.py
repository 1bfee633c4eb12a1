"""Old names in files of earlier versions, mapped to today's when read; they are never written."""

from __future__ import annotations

from typing import Any

MARKS = (b'"pack":', b'"settings":', b'"step_timeout_s":')  # every file with an old name contains one of these

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
_MODEL = {"sequence": "sequence_file", "step_timeout_s": "build_timeout"}


def renamed_benchmark(body: object) -> object:
    """A stored benchmark with today's names; anything else is returned unchanged, for the reader to refuse."""
    if not isinstance(body, dict):
        return body
    if isinstance(body.get("workload"), dict) and body["workload"].get("type") == "model":
        body = {**body, "workload": renamed_model(body["workload"])}
    if "pack" not in body:
        return body
    pack, renamed = body["pack"], {key: value for key, value in body.items() if key != "pack"}
    if not isinstance(pack, dict):
        return {**renamed, "folder": pack}
    environment = {key: pack[key] for key in ("requirements", "variant", "constraints", "pip_args") if key in pack}
    environment |= {"name": pack.get("install_group"), "folder": pack.get("definition")}
    environment["packages"] = ["voir"] if pack.get("voir") is not None else []
    folder = {key: value for key, value in pack.items() if key not in (*environment, "definition", "install_group")}
    return {**renamed, "environment": environment, "folder": {**folder, "path": pack.get("definition")}}


def renamed_model(body: dict[str, Any]) -> dict[str, Any]:
    """The same for a stored model."""
    return {_MODEL.get(key, key): value for key, value in body.items()}


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
    renamed = [
        {**r, "benchmark": renamed_benchmark(r["benchmark"])} if isinstance(r, dict) and "benchmark" in r else r
        for r in results
    ]
    return {**body, "results": renamed}
