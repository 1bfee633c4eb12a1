"""Builds are made once, whole or not at all, and never used when they are damaged."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmodels.build.cache import BuildCache, CacheFailure

BUILDER = """
import sys, time
from pathlib import Path
from benchmodels.build.cache import BuildCache

def make(folder):
    (folder / "model.bin").write_text("x" * 1000)
    with open(sys.argv[2], "a") as log:
        log.write("built\\n")
    print("making", flush=True)
    time.sleep(float(sys.argv[3]))

entry = BuildCache(sys.argv[1]).entry("k", make)
print(entry.cached, (entry.folder / "model.bin").stat().st_size, flush=True)
"""


class Maker:
    """A build that counts."""

    def __init__(self, text: str = "weights") -> None:
        self.text = text
        self.times = 0

    def __call__(self, folder: Path) -> list[dict[str, object]]:
        self.times += 1
        (folder / "sub").mkdir()
        (folder / "sub" / "model.bin").write_text(self.text * 100)
        (folder / "about.json").write_text("{}")
        return [{"step": "export", "seconds": 0.5}]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def cache(tmp_path: Path, said: list[str]) -> BuildCache:
    return BuildCache(tmp_path / "builds", said.append)


def names(tmp_path: Path) -> set[str]:
    return {name for name in os.listdir(tmp_path / "builds") if not name.endswith(".lock")}


def test_the_key_depends_on_every_part_and_not_on_their_order():
    key = BuildCache.key
    assert key({"a": 1, "b": {"c": [2]}}) == key({"b": {"c": [2]}, "a": 1})
    assert len({key({"a": 1}), key({"a": "1"}), key({"a": None}), key({"b": 1})}) == 4


def test_it_is_made_once_with_its_steps(cache, tmp_path):
    make = Maker()
    first = cache.entry("k", make, parts={"runtime": "x"})
    first.release()
    second = cache.entry("k", make)
    assert (first.cached, second.cached, make.times) == (False, True, 1)
    assert first.steps == second.steps == [{"step": "export", "seconds": 0.5}]
    assert second.parts == {"runtime": "x"}
    assert second.verify_s > 0
    assert names(tmp_path) == {"k"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "sub" / "model.bin").write_text("weights" * 99 + "wEights"),
        lambda folder: (folder / "sub" / "model.bin").write_text("short"),
        lambda folder: (folder / "sub" / "model.bin").unlink(),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text('{"format": 1, "files"'),
        lambda folder: (folder / "manifest.json").write_text("[]"),
        lambda folder: (folder / "manifest.json").write_text(
            (folder / "manifest.json").read_text().replace("about.json", "../k.lock")
        ),
    ],
    ids=["one byte", "cut off", "file gone", "no manifest", "half a manifest", "not ours", "outside"],
)
def test_a_damaged_entry_is_never_used_but_moved_aside_and_made_again(cache, said, tmp_path, damage: Callable):
    make = Maker()
    cache.entry("k", make).release()
    damage(tmp_path / "builds" / "k")
    entry = cache.entry("k", make)
    assert (entry.cached, make.times) == (False, 2)
    assert (entry.folder / "sub" / "model.bin").read_text() == "weights" * 100
    assert names(tmp_path) == {"k", "k.corrupt-1"}
    assert any("damaged" in text and "k.corrupt-1" in text for text in said)


def test_never_says_what_is_missing_and_builds_nothing(cache, tmp_path):
    make = Maker()
    with pytest.raises(CacheFailure, match="no cached build") as failure:
        cache.entry("k", make, rebuild="never")
    assert (failure.value.kind, make.times) == ("not_found", 0)
    cache.entry("k", make).release()
    assert cache.entry("k", make, rebuild="never").cached
    (tmp_path / "builds" / "k" / "about.json").write_text("[]")
    with pytest.raises(CacheFailure):
        cache.entry("k", make, rebuild="never")


def test_always_replaces_the_older_one(cache, tmp_path):
    cache.entry("k", Maker("old")).release()
    entry = cache.entry("k", Maker("new"), rebuild="always")
    assert not entry.cached
    assert (entry.folder / "sub" / "model.bin").read_text() == "new" * 100
    assert names(tmp_path) == {"k"}


def test_what_a_build_raises_is_raised_and_the_older_entry_stays(cache, tmp_path):
    cache.entry("k", Maker("old")).release()

    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise KeyError("export")

    with pytest.raises(KeyError):
        cache.entry("k", fail, rebuild="always")
    assert names(tmp_path) == {"k"}
    assert cache.entry("k", fail).cached


def test_a_full_disk_is_told_and_nothing_half_is_left(cache, tmp_path):
    def fill(folder: Path) -> None:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
        try:
            (folder / "model.bin").write_bytes(b"x" * 100_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    def no_space(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for make in (fill, no_space):
        with pytest.raises(CacheFailure, match="no space left") as failure:
            cache.entry("k", make)
        assert failure.value.kind == "error"
        assert names(tmp_path) == set()


def test_a_build_that_leaves_nothing_is_no_entry(cache, tmp_path):
    with pytest.raises(CacheFailure, match="no file"):
        cache.entry("k", lambda folder: None)
    assert names(tmp_path) == set()


def start_builder(tmp_path: Path, seconds: float) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", BUILDER, str(tmp_path / "builds"), str(tmp_path / "log"), str(seconds)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def test_of_two_processes_one_builds_and_the_other_waits_for_it(tmp_path):
    builders = [start_builder(tmp_path, 0.5) for _ in range(3)]
    answers = [builder.communicate(timeout=600)[0].split("\n") for builder in builders]
    assert (tmp_path / "log").read_text() == "built\n"
    assert sorted(answer[-2] for answer in answers) == ["False 1000", "True 1000", "True 1000"]


def test_what_a_killed_builder_left_is_removed_by_the_next(tmp_path):
    builder = start_builder(tmp_path, 60)
    assert builder.stdout is not None
    assert builder.stdout.readline() == "making\n"
    with pytest.raises(CacheFailure, match="too long") as failure:
        BuildCache(tmp_path / "builds").entry("k", Maker(), patience_s=0.1)
    assert failure.value.kind == "timed_out"
    builder.send_signal(signal.SIGKILL)
    builder.communicate()
    assert any(".making-" in name for name in names(tmp_path))
    entry = BuildCache(tmp_path / "builds").entry("k", Maker())
    assert not entry.cached
    assert names(tmp_path) == {"k"}


def test_one_that_was_killed_between_two_renames_loses_nothing(cache, tmp_path):
    cache.entry("k", Maker("old")).release()
    os.rename(tmp_path / "builds" / "k", tmp_path / "builds" / "k.making-older")
    assert cache.entry("k", Maker("new")).cached
    assert names(tmp_path) == {"k"}


def test_nobody_replaces_an_entry_in_use(cache, tmp_path):
    entry = cache.entry("k", Maker("old"))
    with pytest.raises(CacheFailure, match="too long"):
        cache.entry("k", Maker("new"), rebuild="always", patience_s=0.1)
    assert (entry.folder / "sub" / "model.bin").read_text() == "old" * 100
    entry.release()
    assert not cache.entry("k", Maker("new"), rebuild="always", patience_s=5).cached


def test_the_manifest_has_a_format_and_what_the_key_was_made_of(cache):
    began = time.time()
    entry = cache.entry("k", Maker(), parts={"torch": "2.13"})
    manifest = json.loads((entry.folder / "manifest.json").read_text())
    assert manifest["format"] == 1
    assert manifest["parts"] == {"torch": "2.13"}
    assert manifest["made_at"] >= began - 1
    assert set(manifest["files"]) == {"about.json", "sub/model.bin"}


def test_a_build_that_is_dropped_leaves_what_is_known_about_it(cache, tmp_path):
    make = Maker()
    cache.drop(cache.entry("k", make))
    kept = json.loads((tmp_path / "builds" / "k.dropped.json").read_text())
    assert kept["manifest.json"]["steps"] == [{"step": "export", "seconds": 0.5}]
    assert kept["about.json"] == {}
    assert not (tmp_path / "builds" / "k").exists()
    assert not cache.entry("k", make).cached
    assert make.times == 2


def test_a_build_that_another_process_uses_is_not_dropped(cache, tmp_path):
    make = Maker()
    used, dropped = cache.entry("k", make), cache.entry("k", make)
    cache.drop(dropped)
    assert (used.folder / "sub" / "model.bin").exists()
    assert cache.entry("k", make).cached
