"""A suite that measures the machine's peak, and one that is compared with it later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from benchwright.record import samples

# Sleeps, so that how fast it is does not depend on what else runs here: a peak of moving bytes may wait, one of arithmetic not.
LOOP = """
import sys, time
from benchprobe import give, iterate

give(**{sys.argv[1]: float(sys.argv[2])})
for batch in iterate("train", range(300), batch_size=10):
    time.sleep(0.005)
"""
SUITE = """
_any: {definition: loop, plan: {method: njobs, n: 1}}
stream: {inherits: _any, tags: [peak], argv: [bytes_per_item, 1e9]}
model: {inherits: _any, argv: [bytes_per_item, 1e8]}
matmul: {inherits: _any, tags: [peak], argv: [flops_per_item.fp32, 1e9]}
boasting: {inherits: _any, argv: [flops_per_item.fp32, 1e11]}
"""


pytestmark = pytest.mark.xdist_group("efficiency")  # one worker: the suite is run once


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """No launch is said to have been disturbed: how busy the machine is that runs the tests does not matter here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "BUSY_SHARE", 0.0)
        yield


@pytest.fixture(scope="module")
def bw(quiet: None, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    folder: Path = tmp_path_factory.mktemp("suite")
    (folder / "loop").mkdir()
    (folder / "loop" / "main.py").write_text(LOOP)
    (folder / "suite.yaml").write_text(SUITE)
    bw = CommandLine(folder / "base", folder)
    bw("run", "suite.yaml", "--use-current-env")
    bw("run", "suite.yaml", "--use-current-env", "--select", "model")
    return bw


def results_of_first(bw: CommandLine) -> dict[str, Any]:
    runs = sorted((bw.base / "runs").iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
    body = json.loads((runs[0] / "run.json").read_text())
    return {result["benchmark"]: result for result in body["results"]}


def test_a_share_is_of_what_another_benchmark_of_the_run_sustained(bw: CommandLine) -> None:
    found = results_of_first(bw)["model"]["efficiency"][0]
    assert 0.01 < found["share"] < 1
    assert found["peak_benchmark"] == "stream"


def test_a_peak_of_arithmetic_that_hardly_used_the_processor_gives_no_share_and_fails_nobody(bw: CommandLine) -> None:
    results = results_of_first(bw)
    boasting = results["boasting"]
    assert boasting["status"] == "ok"
    [check] = [c for c in boasting["checks"] if c["layer"] == "plausibility"]
    assert check["status"] == "warned"
    for name in ("matmul", "boasting"):
        found = results[name]["efficiency"][0]
        assert found["share"] is None
        assert found["why_no_share"].startswith("matmul hardly used the processor")


def test_a_later_run_is_held_against_the_peak_of_an_earlier_one(bw: CommandLine) -> None:
    found = bw.json("show", "last")["results"][0]["efficiency"][0]
    assert found["peak_run"].startswith("suite.")
    assert 0.01 < found["share"] < 1
    shown = bw("show", "last").stdout
    assert "of peak" in shown
    assert "that stream sustained here" in " ".join(shown.split())
