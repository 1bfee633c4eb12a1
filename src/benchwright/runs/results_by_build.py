"""Results of a build: found in the run folders by the name of the build."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from benchwright.core.earlier_names import renamed_model
from benchwright.core.model import build_variant_of
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.known_runs import all_runs

_MOST = 20  # of the newest runs that have it


class BuildResult(msgspec.Struct, frozen=True, kw_only=True):
    """One result, as run.json has it."""

    run: str
    started: str
    runtime: str
    precision: str
    status: str
    detail: str | None
    latency_s: float | None
    vs_eager: float | None


def results_of_build(base: BaseFolder, name: str) -> list[BuildResult]:
    """Newest first; a run that cannot be read has none."""
    found: list[BuildResult] = []
    runs = sorted(all_runs(base.runs), key=lambda folder: folder.path.stat().st_mtime, reverse=True)
    needle = json.dumps(name).encode()
    for folder in runs:
        try:
            text = (folder.path / "run.json").read_bytes()
            found += _of_run(json.loads(text), name) if needle in text else ()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # `runs` says what is wrong with it
        if len(found) >= _MOST:
            break
    return found


def _of_run(body: dict[str, object], name: str) -> Iterator[BuildResult]:
    results: list[dict[str, object]] = body["results"]  # type: ignore[assignment]
    for result in results:
        model = result.get("model")
        if not isinstance(model, dict) or model.get("build") != name or model.get("profile"):
            continue
        metrics: list[dict[str, object]] = result["metrics"]  # type: ignore[assignment]
        latency = next((m["value"] for m in metrics if m["metric"] == "latency"), None)
        yield msgspec.convert(
            {
                "run": body["id"],
                "started": body["started"],
                "runtime": _way(model),
                "precision": model["precision"],
                "status": "built" if model.get("stops_after") and result["status"] == "ok" else result["status"],
                "detail": result.get("detail"),
                "latency_s": latency,
                "vs_eager": model.get("vs_eager"),
            },
            BuildResult,
        )


def _way(model: dict[str, object]) -> str:
    """Its runtime, and how it was built if not in the usual way."""
    return " ".join((str(model["runtime"]), *build_variant_of(renamed_model(model))))
