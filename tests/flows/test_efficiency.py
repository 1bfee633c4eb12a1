"""A suite that measures the machine's peak, and one that is held against it later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine

LOOP = """
import sys, time
from benchprobe import give, iterate

give(**{"flops_per_item.fp32": float(sys.argv[1])})
for batch in iterate("train", range(300), batch_size=10):
    time.sleep(0.005)
"""
SUITE = """
_any: {definition: loop, plan: {method: njobs, n: 1}}
matmul: {inherits: _any, tags: [peak], argv: [1e9]}
model: {inherits: _any, argv: [1e8]}
boasting: {inherits: _any, argv: [1e11]}
"""


pytestmark = pytest.mark.xdist_group("efficiency")  # one worker: the suite is run once


@pytest.fixture(scope="module")
def bw(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    folder: Path = tmp_path_factory.mktemp("suite")
    (folder / "loop").mkdir()
    (folder / "loop" / "main.py").write_text(LOOP)
    (folder / "suite.yaml").write_text(SUITE)
    bw = CommandLine(folder / "base", folder)
    bw("run", "suite.yaml", "--use-current-env", code=1)
    bw("run", "suite.yaml", "--use-current-env", "--select", "model")
    return bw


def test_what_claims_more_than_the_peak_is_invalid_and_the_others_have_a_share(bw: CommandLine) -> None:
    runs = sorted((bw.base / "runs").iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
    body = json.loads((runs[0] / "run.json").read_text())
    matmul, model, boasting = body["results"]
    assert (matmul["status"], model["status"]) == ("ok", "ok")
    assert (boasting["status"], boasting["reason"]) == ("failed", "invalid")
    assert "that matmul reached: its arithmetic" in boasting["detail"]
    assert 0.05 < model["efficiency"][0]["share"] < 0.2
    assert model["efficiency"][0]["peak_benchmark"] == "matmul"


def test_a_later_run_is_held_against_the_peak_of_an_earlier_one(bw: CommandLine) -> None:
    found = bw.json("show", "last")["results"][0]["efficiency"][0]
    assert found["peak_run"].startswith("suite.")
    assert 0.05 < found["share"] < 0.2
    shown = bw("show", "last").stdout
    assert "of peak" in shown
    assert "GFLOP/s in fp32" in shown
