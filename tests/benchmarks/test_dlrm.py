"""Training a recommender, alone and with its tables spread over processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from shipped_benchmarks import BENCHMARKS, ROOT, checked_lines, load

torch = pytest.importorskip("torch")
dlrm = load("dlrm")
model = load("dlrm", "dlrm_model")
sharded = load("dlrm", "sharded_tables")

from workload.claims import counted_flops, parameter_count  # noqa: E402
from workload.several import torchrun  # noqa: E402


def test_it_computes_what_it_claims(tmp_path):
    assert len(checked_lines("dlrm", data=tmp_path)) == 3


def test_fused_tables_compute_what_they_claim(capsys):
    options = dlrm.options(["--check", "--device", "cpu", "--threads", "1", "--fused", "--lookups", "3"])
    assert dlrm.run(options, dlrm.build) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", list(model.PUBLIC_PARAMETERS))
def test_the_models_are_the_public_ones(name):
    config = model.CONFIGS[name]
    assert len(config.rows) == 26
    with torch.device("meta"):
        made = model.DLRM(config)
        found = parameter_count(made)
        dense, indices = torch.empty(4, 13), torch.zeros(26, 4, 1, dtype=torch.long)
        counted = counted_flops(lambda: made(dense, indices).sum().backward())
    assert found == config.parameters == model.PUBLIC_PARAMETERS[name]
    assert counted / 4 == config.training_flops


def test_rows_are_those_of_the_public_datasets():
    rows = {name: sum(config.rows) for name, config in model.CONFIGS.items()}
    assert (rows["kaggle"], rows["mlperf"]) == (33_762_577, 187_767_399)
    assert max(model.CONFIGS["terabyte"].rows) < 10_000_000
    assert max(model.CONFIGS["kaggle"].limited(100).rows) == 100


def test_tables_in_one_are_the_tables_apart():
    config = model.CONFIGS["nano"]
    torch.manual_seed(0)
    apart = model.DLRM(config)
    torch.manual_seed(0)
    fused = model.DLRM(config, fused=True)
    ((dense, indices, _),) = dlrm.clicks(config, 16, 2, 1, 0, torch.device("cpu"))
    assert torch.allclose(apart(dense, indices), fused(dense, indices), atol=1e-6)


def test_what_is_taken_of_the_dot_products_is_each_pair_once():
    config = model.CONFIGS["nano"]
    pairs = model.DLRM(config).pairs
    vectors = len(config.rows) + 1
    assert len(pairs) == config.interactions
    assert {(int(p) // vectors, int(p) % vectors) for p in pairs} == {(i, j) for i in range(vectors) for j in range(i)}


def test_lookups_are_within_the_tables_and_skewed():
    config = model.CONFIGS["nano"]
    ((_, indices, clicked),) = dlrm.clicks(config, 5000, 1, 1, 0, torch.device("cpu"))
    for table, rows in enumerate(config.rows):
        assert 0 <= int(indices[table].min()) <= int(indices[table].max()) < rows
    assert float((indices[0] < 31).float().mean()) == pytest.approx(0.5, abs=0.05)  # half of them in 31 of 1000 rows
    assert 0.2 < float(clicked.mean()) < 0.8


def test_tables_are_spread_evenly_and_each_is_somewhere():
    rows = model.CONFIGS["terabyte"].rows
    placed = [sharded.place(rows, 4, rank) for rank in range(4)]
    assert sorted(number for placement in placed for number in placement.here) == list(range(26))
    assert max(sum(rows[n] for n in placement.here) for placement in placed) < 1.7 * sum(rows) / 4
    with pytest.raises(SystemExit, match="26 tables for 27 processes"):
        sharded.place(rows, 27, 0)


@pytest.mark.long
def test_two_processes_learn_what_one_does():
    program = Path(__file__).parents[1] / "programs" / "sharded_dlrm.py"
    paths = os.pathsep.join(str(p) for p in (ROOT / "src", BENCHMARKS / "dlrm", BENCHMARKS / "_shared"))
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(torchrun(2, [str(program)]), env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the same") == 2
