"""Runs on two nodes of a cluster: refused, unless it is known how much nodes of their make differ."""

from __future__ import annotations

from pathlib import Path

import builders
import pytest
from builders import run
from comparable_runs import benchmark, result
from msgspec.structs import replace

from benchwright.core.comparison import Verdict
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Run
from benchwright.options.table import Options
from benchwright.results.compare import compare_runs
from benchwright.results.node_spreads import FILE, NodeSpread, keep_spreads, read_spreads
from benchwright.runs.run_folder import RunFolder
from benchwright.runs.stored_plan import StoredPlan


def measured(base: Path, name: str, host: str, factor: float, on: str | None = "slurm:gpu") -> Run:
    folder = RunFolder.create(base / "runs", name)
    folder.write_plan(
        StoredPlan(uid="", name=name, started="2026-11-18T08:00:00+00:00", benchmarks=(), options=Options(on=on))
    )
    values = [factor * value for value in (1.0, 1.001, 1.002, 0.999, 0.998, 1.0, 1.001, 0.999, 1.0, 1.0)]
    machine = builders.machine(hostname=host)
    return replace(run(result(benchmark(), values), id=folder.id, machine=machine), folder=str(folder.path))


def verdict(control: Run, treatment: Run, *, anyway: bool = False) -> Verdict:
    [found] = compare_runs([control, treatment], between=None, margin=None, metrics=(), all_metrics=True, anyway=anyway)
    return found.effects[0].verdict


def test_two_nodes_are_compared_only_if_their_spread_is_known(tmp_path: Path):
    control, treatment = measured(tmp_path, "a", "n1", 1.0), measured(tmp_path, "b", "n2", 1.1)
    with pytest.raises(InvalidInput, match=r"ran on two nodes \(n1 and n2\).*doctor --on"):
        verdict(control, treatment)
    assert verdict(control, treatment, anyway=True) is Verdict.REGRESSED
    make = control.machine.fingerprint
    keep_spreads(tmp_path, {make: NodeSpread(spread=0.01, nodes=8, measured="2026-11-18")})
    assert verdict(control, treatment) is Verdict.REGRESSED
    keep_spreads(tmp_path, {make: NodeSpread(spread=0.05, nodes=8, measured="2026-11-19")})
    assert verdict(control, treatment) is Verdict.INCONCLUSIVE  # two such nodes may differ by 14 %


def test_one_node_and_machines_of_no_cluster_are_compared_as_before(tmp_path: Path):
    assert verdict(measured(tmp_path, "a", "n1", 1.0), measured(tmp_path, "b", "n1", 1.1)) is Verdict.REGRESSED
    here = [measured(tmp_path, name, name, factor, on=None) for name, factor in (("c", 1.0), ("d", 1.1))]
    assert verdict(*here) is Verdict.REGRESSED


def test_a_damaged_file_tells_nothing(tmp_path: Path):
    (tmp_path / FILE).write_text("{")
    assert read_spreads(tmp_path) == {}
