"""Specifications whose files are fetched, from the command line."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pytest
from bad_server import BadServer, cut, honest, status, whole
from command_line import CommandLine

CONTENT = random.Random(5).randbytes(200_000)
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
PROGRAM = """#!/bin/sh
test "$(basename "$1")" = net.pb && test "$(wc -c < "$1")" -eq 200000 || exit 7
echo 'PyTorchObserver {"type": "NET", "metric": "latency", "unit": "us", "value": "12.5"}'
"""


@pytest.fixture
def bw(tmp_path: Path) -> CommandLine:
    (tmp_path / "program").write_text(PROGRAM)
    (tmp_path / "program").chmod(0o755)
    return CommandLine(tmp_path / "base", tmp_path)


def specification(folder: Path, **file: str) -> Path:
    test = {"metric": "delay", "identifier": "one", "iter": 1, "warmup": 0, "command": "{program} {files.net}"}
    model = {"category": "CNN", "name": "net", "format": "caffe2", "files": {"net": {"filename": "net.pb", **file}}}
    path = folder / "spec.json"
    path.write_text(json.dumps({"model": model, "tests": [test]}))
    return path


RUN = ("run", "spec.json", "--program", "./program", "--no-store")


def test_a_file_is_fetched_once_then_offline_will_do(bw: CommandLine, tmp_path: Path) -> None:
    with BadServer() as server:
        specification(tmp_path, location=server.serve("/n", cut(CONTENT, 70_000), honest(CONTENT)), md5=MD5)
        assert "12.5" in bw(*RUN).stdout
        assert server.seen[-1].range == "bytes=70000-"
        server.serve("/n", status(404))
        asked = len(server.seen)
        bw(*RUN)
        bw(*RUN, "--offline")
        assert len(server.seen) == asked
    assert json.loads(bw("cache", "list", "--json").stdout)[0]["name"] == "net.pb"


def test_a_wrong_file_is_never_measured_and_the_specification_never_written(bw: CommandLine, tmp_path: Path) -> None:
    wrong = CONTENT[::-1]
    with BadServer() as server:
        path = specification(tmp_path, location=server.serve("/n", whole(wrong)), md5=MD5)
        before = path.read_bytes()
        done = bw(*RUN, code=3)
        assert len(server.seen) == 2
    assert MD5 in done.stderr
    assert hashlib.md5(wrong, usedforsecurity=False).hexdigest() in done.stderr
    assert path.read_bytes() == before


def test_a_file_that_is_missing_offline_says_so(bw: CommandLine, tmp_path: Path) -> None:
    with BadServer() as server:
        specification(tmp_path, location=server.serve("/n", honest(CONTENT)), md5=MD5)
        assert "--offline forbids fetching" in bw(*RUN, "--offline", code=3).stderr
        assert server.seen == []


@pytest.mark.parametrize(
    "file",
    [
        {"filename": "../../etc/passwd", "location": "net.pb"},
        {"location": "../../../../../../etc/passwd"},
        {"location": "//../../../etc/passwd"},
    ],
)
def test_a_specification_cannot_reach_elsewhere(bw: CommandLine, tmp_path: Path, file: dict[str, str]) -> None:
    (tmp_path / "net.pb").write_bytes(CONTENT)
    (tmp_path / "models").mkdir()
    path = specification(tmp_path, **file)
    done = bw(*RUN, "--root-model-dir", "models", code=None)
    assert done.returncode in (2, 3)
    assert path.name in done.stderr
    assert "root:" not in done.stdout + done.stderr
