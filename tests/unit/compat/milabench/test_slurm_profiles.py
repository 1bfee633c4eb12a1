"""milabench's profiles of sbatch's options, and what of them benchwright asks Slurm for."""

from __future__ import annotations

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.slurm_profiles import slurm_profile
from benchwright.runner.requests import options_of

# As in milabench's config/slurm.yaml.
TEXT = """\
multi-node-full:
  # DGX run: 2 nodes x 8 A100
  - --partition=staff-idt
  - -w cn-d[003-004]
  - --ntasks=2
  - --gpus-per-task=a100l:8
  - --exclusive
  - --nodes=2
  - --cpus-per-task=128
  - --time=2:00:00
  - --ntasks-per-node=1
  - --mem=0
small:
  - --time=1:30:00
"""
FULL = (
    "--partition=staff-idt",
    "-w",
    "cn-d[003-004]",
    "--gpus-per-node=a100l:8",
    "--cpus-per-task=128",
    "--time=2:00:00",
)


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "slurm.yaml").write_text(TEXT)
    (tmp_path / "config" / "standard.yaml").write_text("{}\n")
    return tmp_path


def test_what_the_holder_of_whole_nodes_decides_itself_is_left_out(checkout):
    found = slurm_profile("multi-node-full", [str(checkout)])
    assert (found.options, found.nodes) == (FULL, 2)


def test_it_is_found_beside_the_suite_and_options_that_are_given_hold(checkout):
    values = {"on": "slurm", "slurm_profile": "multi-node-full", "slurm": "--time=10"}
    options = options_of(values, targets=[str(checkout / "config" / "standard.yaml")])
    assert options.slurm == (*FULL, "--time=10")
    assert options.nodes == 2
    options = options_of(values | {"nodes": 4, "slurm_profile": "small"}, targets=[str(checkout / "x.yaml")])
    assert (options.slurm, options.nodes) == (("--time=1:30:00", "--time=10"), 4)


def test_one_that_is_not_there(checkout, tmp_path_factory):
    with pytest.raises(InvalidInput, match=r"'large' is not in .*slurm\.yaml; choose one of multi-node-full, small"):
        slurm_profile("large", [str(checkout)])
    with pytest.raises(InvalidInput, match=r"no file of profiles in .*; write sbatch's options themselves"):
        slurm_profile("small", [str(tmp_path_factory.mktemp("empty"))])


@pytest.mark.parametrize("text", ["a: [", "- a\n", "a: 3\n", "a: [3]\n", "\xff"])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / "slurm.yaml").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"slurm\.yaml: .*; write NAME: \[--partition"):
        slurm_profile("a", [str(tmp_path)])
