"""Locations that fsspec opens, tried with its file system in memory; s3fs, gcsfs and huggingface_hub are an extra."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from fetching import QUICK, Heard, model

from benchwright.artifacts.cache import ArtifactCache
from benchwright.artifacts.sources.cloud import CloudSource
from benchwright.artifacts.sources.download import Download, NotModified, TemporaryTrouble
from benchwright.core.errors import CannotFetch

fsspec = pytest.importorskip("fsspec")
CONTENT = random.Random(4).randbytes(100_000)
URL = "memory://bucket/model.onnx"


@pytest.fixture
def memory() -> object:
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pipe("/bucket/model.onnx", CONTENT)
    return files


def download(folder: Path, url: str = URL) -> Download:
    return Download(folder / "a.part", CloudSource(url, "model.onnx"), QUICK, Heard(), "model.onnx", has_sum=True)


@pytest.mark.parametrize("left", [b"", CONTENT[:1000], CONTENT, CONTENT + b"too much"])
def test_a_file_is_fetched_and_continued(memory: object, tmp_path: Path, left: bytes) -> None:
    fetching = download(tmp_path)
    fetching.part.write_bytes(left)
    fetching.run()
    assert fetching.part.read_bytes() == CONTENT


def test_a_file_that_is_not_there_is_final(memory: object, tmp_path: Path) -> None:
    with pytest.raises(CannotFetch, match="memory://bucket/none: there is no such file; check the location"):
        download(tmp_path, "memory://bucket/none").run()


def test_a_folder_is_no_file(memory: object, tmp_path: Path) -> None:
    with pytest.raises(CannotFetch, match="is a folder"):
        download(tmp_path, "memory://bucket").run()


def test_trouble_of_any_library_is_tried_again(memory: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: str) -> None:
        raise RuntimeError("connection lost\nand much more")

    monkeypatch.setattr(type(memory), "info", lambda self, path: broken(path))
    with pytest.raises(TemporaryTrouble, match=r"^connection lost$"):
        CloudSource(URL, "model.onnx").open(0, None, None)


def test_the_same_version_is_not_fetched_again(memory: object, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"type": "file", "size": len(CONTENT), "ETag": '"one"'}
    monkeypatch.setattr(type(memory), "info", lambda self, path: about)
    with pytest.raises(NotModified):
        CloudSource(URL, "model.onnx").open(0, None, '"one"')
    assert CloudSource(URL, "model.onnx").open(500, '"one"', None).start == 500
    assert CloudSource(URL, "model.onnx").open(500, '"old"', None).start == 0


@pytest.mark.parametrize(("scheme", "package"), [("s3", "s3fs"), ("gs", "gcsfs"), ("hf", "huggingface_hub")])
def test_a_missing_package_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(CannotFetch, match=rf"needs {package}, .*pip install 'benchwright\[cloud\]'"):
        ArtifactCache(tmp_path).fetch(model(f"{scheme}://bucket/model.onnx", CONTENT), near=None)
