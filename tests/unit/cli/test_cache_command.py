"""`benchwright cache`, on artifacts and on builds of models."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from bad_server import BadServer, cut, honest
from command_line import CommandLine
from fetching import QUICK, model, sha256

from benchmodels.build.cache import BuildCache
from benchwright.artifacts.cache import ArtifactCache
from benchwright.core.errors import CannotFetch

BIG, SMALL = os.urandom(50_000), os.urandom(1000)
DAY_S = 24 * 3600


@pytest.fixture
def bw(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path / "base", tmp_path)


@pytest.fixture
def filled(bw: CommandLine) -> Path:
    """The artifacts folder of a base with a file, a golden, half a download and a build."""
    cache = ArtifactCache(bw.base / "artifacts", limits=QUICK)
    with BadServer() as server:
        cache.fetch(model(server.serve("/big.onnx", honest(BIG)), BIG), near=None)
        half = model(server.serve("/half.onnx", cut(BIG[::-1], 7000)), BIG[::-1], filename="half.onnx")
        with pytest.raises(CannotFetch):
            cache.fetch(half, near=None)
    cache.put(SMALL, "golden.npy")
    builds = BuildCache(bw.base / "builds")
    parts = {"runtime": "onnxruntime", "precision": "fp32", "path": "/models/mlp.py"}
    builds.entry("k" * 32, lambda place: write(place / "model.onnx"), parts=parts).release()
    return cache.folder


def write(path: Path) -> None:
    path.write_bytes(bytes(3000))


def listed(bw: CommandLine) -> dict[str, str]:
    return {entry["name"]: entry["kind"] for entry in json.loads(bw("cache", "list", "--json").stdout)}


ALL = {"model.onnx": "artifact", "golden.npy": "artifact", "half.onnx": "partial", "mlp.py onnxruntime fp32": "build"}


def test_the_list_has_artifacts_downloads_and_builds(bw: CommandLine, filled: Path) -> None:
    assert listed(bw) == ALL
    lines = bw("cache").stdout.splitlines()
    assert lines[1].split()[:4] == ["model.onnx", "artifact", "48.8", "KiB"]
    assert lines[-1].strip().startswith("4 entries, ")
    assert all(len(line) <= 80 for line in lines)


def test_an_empty_cache_says_so(bw: CommandLine) -> None:
    assert bw("cache").stdout == "the caches are empty\n"
    assert json.loads(bw("cache", "list", "--json").stdout) == []
    assert bw("cache", "clean", "--all", "--yes").stdout == "nothing to remove\n"


def test_verify_reads_every_byte(bw: CommandLine, filled: Path) -> None:
    assert bw("cache", "verify").stdout.startswith("4 of 4 intact")
    damaged = filled / "objects" / sha256(BIG) / "model.onnx"
    damaged.chmod(0o644)
    with open(damaged, "r+b") as file:
        file.write(b"x")
    (bw.base / "builds" / ("k" * 32) / "model.onnx").write_bytes(bytes(2999) + b"x")
    done = bw("cache", "verify", code=1)
    assert "2 of 4 intact" in done.stdout
    assert f"{damaged} has changed: its sha256 is" in done.stderr
    assert "the content of model.onnx has changed; it is built again" in done.stderr
    again = json.loads(bw("cache", "verify", "--json", code=1).stdout)
    assert len(again["problems"]) == 1  # the file is forgotten, and fetched when needed


def test_nothing_is_removed_without_a_limit_or_a_yes(bw: CommandLine, filled: Path) -> None:
    assert "--keep 30d, --max-size 20GB or --all" in bw("cache", "clean", code=2).stderr
    assert "add --yes" in bw("cache", "clean", "--all", code=2).stderr
    assert bw("cache", "clean", "--all", "--dry-run").stdout.count("would remove") == 4
    assert listed(bw) == ALL


def test_clean_by_name_and_by_id(bw: CommandLine, filled: Path) -> None:
    bw("cache", "clean", "golden.npy", sha256(BIG)[:12], "--yes")
    assert listed(bw) == {"half.onnx": "partial", "mlp.py onnxruntime fp32": "build"}
    assert "nothing in the cache is called 'golden.npy'" in bw("cache", "clean", "golden.npy", code=2).stderr


def test_clean_by_age_keeps_what_was_used(bw: CommandLine, filled: Path) -> None:
    for record in (filled / "objects").glob("*.json"):
        os.utime(record, (time.time() - 40 * DAY_S,) * 2)
    golden = model("", SMALL, filename="golden.npy")
    assert ArtifactCache(filled).known(golden) is not None  # which is a use
    assert "removed 1, 48.8 KiB" in bw("cache", "clean", "--keep", "30d", "--yes").stdout
    assert "model.onnx" not in listed(bw)


def test_clean_by_size_takes_the_oldest_first(bw: CommandLine, filled: Path) -> None:
    for number, record in enumerate([filled / "objects" / f"{sha256(c)}.json" for c in (SMALL, BIG)]):
        os.utime(record, (time.time() - (9 - number) * DAY_S,) * 2)
    bw("cache", "clean", "--max-size", "20KB", "--yes")
    assert listed(bw) == {"half.onnx": "partial", "mlp.py onnxruntime fp32": "build"}


def test_what_is_in_use_stays(bw: CommandLine, filled: Path) -> None:
    user = ArtifactCache(filled)
    path = user.known(model("", BIG))
    assert path is not None
    build = BuildCache(bw.base / "builds").entry("k" * 32, lambda place: None)
    done = bw("cache", "clean", "--all", "--yes", code=1)
    assert "model.onnx is in use and was kept" in done.stderr
    assert path.read_bytes() == BIG
    assert listed(bw) == {"model.onnx": "artifact", "mlp.py onnxruntime fp32": "build"}
    del user
    build.release()
    bw("cache", "clean", "--all", "--yes")
    assert listed(bw) == {}


def test_removing_frees_the_space_of_links_too(bw: CommandLine, filled: Path) -> None:
    cache = ArtifactCache(filled)
    files = [model("", BIG, key="a"), model("", SMALL, key="b", filename="golden.npy")]
    folder = next(iter(cache.fetch_all(files, near=None).values())).parent
    assert folder.parent.name == "sets"
    del cache
    bw("cache", "clean", "golden.npy", "--yes")
    assert not folder.exists()


def test_leftovers_of_a_crash_are_listed_once_they_are_old(bw: CommandLine, filled: Path) -> None:
    crashed = filled / "objects" / ("f" * 64)
    crashed.mkdir()
    assert listed(bw) == ALL
    os.utime(crashed, (time.time() - 2 * DAY_S,) * 2)
    assert listed(bw)["f" * 64] == "leftover"
    bw("cache", "clean", "f" * 64, "--yes")
    assert not crashed.exists()


def test_another_cache_can_be_named(bw: CommandLine, filled: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    assert "the caches are empty" in bw("cache", "list", "--model-cache", "models").stdout
    assert "no such folder" in bw("cache", "list", "--model-cache", "nowhere", code=2).stderr
