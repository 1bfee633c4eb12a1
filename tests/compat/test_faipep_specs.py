"""Real specifications of FAI-PEP load and plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import MACHINE
from specifications import spec_of

from benchwright.kinds.registry import kind_for, kind_of
from benchwright.kinds.spec.options import SpecOptions
from benchwright.kinds.spec.read.specification import read_specification
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan

REAL = Path(__file__).parents[3] / "shared" / "compat" / "faipep"
FILES = sorted(str(path.relative_to(REAL)) for path in REAL.rglob("*.json"))

pytestmark = pytest.mark.skipif(not FILES, reason="the real specifications are not beside this checkout")


@pytest.mark.parametrize("name", FILES)
def test_a_real_specification_loads_and_plans(name: str, tmp_path: Path) -> None:
    path = str(REAL / name)
    kind = kind_for(path)
    assert kind is not None
    assert kind.name == "spec"
    options = SpecOptions(programs={"program": "/bin/echo"}, model_cache=str(tmp_path))
    found = read_specification(path, options)
    assert found
    assert not [note for b in found for note in b.notes]
    plan = make_plan(found, MACHINE, Options(), kind_of, folder="/run", probe_path=None, usable_cores=[0, 1])
    for (job,) in plan.launches:
        words = " ".join((*job.argv, *job.files.values()))
        assert "/bin/echo --" in words
        assert "{" not in words.replace("{files.", "").replace("{input_files.", "")


def test_a_list_adds_its_arguments_to_every_command(tmp_path: Path) -> None:
    path = REAL / "benchmarks" / "caffe2" / "cnn-mkl.json"
    found = read_specification(str(path), SpecOptions())
    assert len(found) == 7
    assert {b.labels["group"] for b in found} == {"CNN-MKL"}
    assert [spec_of(b).arguments for b in found] == [("--backend mkl",)] * len(found)


def test_program_twice_is_program_once() -> None:
    path = REAL / "models" / "caffe2" / "resnet50_quant_arm_neon" / "resnet50_quant_taskset_c.json"
    (found,) = read_specification(str(path), SpecOptions())
    test = spec_of(found)
    assert test.commands[0].count("{program}") == 1
    assert test.core_mask == "c"
