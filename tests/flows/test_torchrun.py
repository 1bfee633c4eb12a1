"""Entries that torchrun starts: the ranks of one process tree, told apart and added up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from benchwright.analysis.summary import launch_value
from benchwright.kinds.registry import kind_of
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

pytestmark = pytest.mark.xdist_group("torchrun")  # one worker: the suite is run once
OBSERVATIONS = 6
SUITE = """
_two:
  inherits: _defaults
  plan: {method: njobs, n: 1}
  launcher: {name: torchrun, processes: 2}
  voir: {options: {stop: STOP, interval: "0.1s", skip: 1}}
  max_duration: 600
""".replace("STOP", str(OBSERVATIONS))
# Without torch, which takes each rank seconds to import.
LIGHT = """
import time
from benchprobe import iterate
for _ in iterate("train", range(100_000), batch_size=16):
    time.sleep(0.008)
"""
MAIN = """
import os, time
import torch, torch.distributed as dist
from {module} import iterate
dist.init_process_group("gloo")
one = torch.ones(1)
for _ in iterate("train", range(100_000), {options}batch_size=16):
    time.sleep(0.004 * (1 + dist.get_rank()))
    dist.all_reduce(one)
dist.barrier()
dist.destroy_process_group()
"""
VOIRFILE = """
import os
from dataclasses import dataclass
from voir import configurable
from voir.instruments import early_stop, log, rate

@dataclass
class Config:
    interval: str = "1s"
    skip: int = 5
    stop: int = 20

@configurable
def instrument_main(ov, options: Config):
    yield ov.phases.init
    if SPEAKS:
        ov.require(
            log("rate", "units", "progress", context="task"),
            rate(interval=options.interval, skip=options.skip),
            early_stop(n=options.stop, key="rate", task="train"),
        )
"""


def run(folder: Path, *names: str) -> dict[str, Any]:
    """The results of a suite of these folders, by benchmark; no rank makes 16 items in less than 8 ms."""
    entries = "".join(f"{name}: {{inherits: _two, definition: {name}}}\n" for name in names)
    (folder / "suite.yaml").write_text(SUITE + entries)
    bw = CommandLine(folder / "base", folder)
    bw("run", "suite.yaml", "--use-current-env")
    kept = read_run(RunFolder(Path(bw.last_run())), kind_of)
    return {result.benchmark.name: result for result in kept.results}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of ranks that torch connects: the slower one holds up the other."""
    pytest.importorskip("torch")
    pytest.importorskip("voir")
    folder = tmp_path_factory.mktemp("torchrun")
    for name, module, options in (("probe", "benchprobe", ""), ("voir", "voir", "report_batch=True, ")):
        (folder / name).mkdir()
        (folder / name / "main.py").write_text(MAIN.format(module=module, options=options))
    (folder / "voir" / "voirfile.py").write_text(VOIRFILE.replace("SPEAKS", "True"))
    (folder / "one_speaks").mkdir()
    (folder / "one_speaks" / "main.py").write_text((folder / "voir" / "main.py").read_text())
    (folder / "one_speaks" / "voirfile.py").write_text(VOIRFILE.replace("SPEAKS", 'os.environ["RANK"] == "0"'))
    return run(folder, "probe", "voir", "one_speaks")


@pytest.mark.compat
def test_two_ranks_are_told_apart_and_added_up(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "light").mkdir()
    (tmp_path / "light" / "main.py").write_text(LIGHT)
    assert set(checked_rates(run(tmp_path, "light")["light"])) == {"0", "1", None}


@pytest.mark.long
@pytest.mark.parametrize("name", ["probe", "voir"])
def test_every_rank_has_its_observations_and_the_launch_is_their_sum(results: dict[str, Any], name: str) -> None:
    assert set(checked_rates(results[name])) == {"0", "1", None}


def checked_rates(result: Any) -> dict[str | None, Any]:
    """By rank; None: of the launch."""
    (launch,) = result.launches
    rates = {m.labels.get("rank"): m for m in launch.measurements if m.metric == "rate"}
    assert [len(rates[rank].samples) for rank in ("0", "1")] == [OBSERVATIONS] * 2
    delivered = [launch_value(rates[rank]) for rank in ("0", "1")]
    assert rates[None].samples == (pytest.approx(sum(delivered)),)
    assert all(rate < 16 / 0.008 for rate in delivered)
    assert launch.measurement("rate") == rates[None]  # what `show` prints of the launch
    return rates


@pytest.mark.long
def test_a_rank_that_speaks_for_all_is_measured_and_the_program_ended(results: dict[str, Any]) -> None:
    """It cannot leave by itself: the others would wait for it."""
    (launch,) = results["one_speaks"].launches
    assert (launch.status.value, launch.detail) == ("ok", None)
    (rate,) = (m for m in launch.measurements if m.metric == "rate")
    assert (len(rate.samples), rate.labels) == (OBSERVATIONS, {"loop": "train"})
