"""milabench's own suite, planned for a machine with eight GPUs, where its files are at hand."""

from __future__ import annotations

import re
import time
from pathlib import Path

import msgspec
import pytest
from processes import quickest
from suites import PATHS, machine_with, planned

from benchwright.core.benchmark import Benchmark
from benchwright.core.status import Reason
from benchwright.core.system import Sizing, System
from benchwright.kinds.suite.batch_sizes import read_scaling
from benchwright.kinds.suite.kind import SuiteKind
from benchwright.kinds.suite.system_file import read_system
from benchwright.options.table import Options

CONFIG = Path(__file__).parents[3] / "shared" / "compat" / "milabench" / "config"
PLACEHOLDER = re.compile(r"(?<!\{)\{[A-Za-z_][\w.]*\}|(?<!\w)(auto|auto_batch|expr)\(")

pytestmark = pytest.mark.skipif(not CONFIG.is_dir(), reason="milabench's own suite is not beside this checkout")


@pytest.fixture(scope="module")
def benchmarks() -> list[Benchmark]:
    return SuiteKind().read(str(CONFIG / "all.yaml"), Options())


def words(benchmarks: list[Benchmark], name: str, **how: object) -> tuple[str, ...]:
    """Of the main script."""
    [jobs] = planned(*[b for b in benchmarks if b.name == name], **how).launches  # type: ignore[arg-type]
    return jobs[0].argv[2:]


def test_every_entry_is_planned_without_a_placeholder_left(benchmarks: list[Benchmark]) -> None:
    plan = planned(*benchmarks, gpus=8)
    left = [(job.id, word) for jobs in plan.launches for job in jobs for word in job.argv if PLACEHOLDER.search(word)]
    assert left == []
    assert set(plan.skipped) == {"diffusion-nodes", "llm-lora-ddp-nodes", "llm-full-mp-nodes"}
    assert {reason for reason, _ in plan.skipped.values()} == {Reason.LACKS_CAPABILITY}
    assert len(plan.launches) == len(benchmarks) - 3


def test_the_words_are_those_milabench_gives(benchmarks: list[Benchmark]) -> None:
    assert words(benchmarks, "resnet50", gpus=8) == tuple(
        "--precision tf32-fp16 --lr 0.01 --no-stdout --epochs 50 --num-workers 8 --loader pytorch "
        "--data /base/data/FakeImageNet --model resnet50 --batch-size 256 --optim channel_last".split()
    )
    focalnet = words(benchmarks, "focalnet", gpus=8)
    assert focalnet[focalnet.index("--val-split") + 1] == ""
    assert focalnet[focalnet.index("--device") + 1] == "cuda"
    assert "train.batch_size_per_gpu=32" in words(benchmarks, "dinov2-giant-single", gpus=8)
    assert words(benchmarks, "llama", gpus=8) == ("--pretrained",)


def test_json_in_a_word_is_left_alone(benchmarks: list[Benchmark]) -> None:
    served = words(benchmarks, "vllm-dense-physics-gpus", gpus=8)
    assert served[served.index("--limit-mm-per-prompt") + 1] == '{"image":10}'
    assert served[served.index("--tensor-parallel-size") + 1] == "8"


def test_workers_are_those_of_the_machine_when_asked_for(benchmarks: list[Benchmark]) -> None:
    system = System(options={"cpu": {"auto": 1}})
    found = words(benchmarks, "resnet50", system=system, machine=machine_with(8, cores=96))
    assert found[found.index("--num-workers") + 1] == "12"


def test_on_two_nodes_the_rest_is_planned_too(benchmarks: list[Benchmark]) -> None:
    system, _ = read_system(str(CONFIG / "examples" / "system-ci.yaml"))
    plan = planned(*benchmarks, gpus=8, system=system)
    assert plan.skipped == {}
    [jobs] = [jobs for jobs in plan.launches if jobs[0].benchmark == "diffusion-nodes"]
    assert [(job.id, job.node) for job in jobs] == [
        ("diffusion-nodes.0.node1", "node1"),
        ("diffusion-nodes.0.node2", "node2"),
    ]


def test_the_example_container_runs_every_entry(benchmarks: list[Benchmark]) -> None:
    system, _ = read_system(str(CONFIG / "examples" / "system.yaml"))
    plan = planned(*benchmarks, gpus=1, system=system)
    assert all(job.argv[:3] == ("podman", "run", "-i") for jobs in plan.launches for job in jobs)
    assert all("ghcr.io/mila-iqia/milabench:cuda-nightly" in job.argv for jobs in plan.launches for job in jobs)


def test_batch_sizes_follow_the_scaling_file_of_the_device(benchmarks: list[Benchmark]) -> None:
    sizing = Sizing(auto=True, scaling=read_scaling(str(CONFIG / "scaling" / "L40S.yaml")))
    paths = msgspec.structs.replace(PATHS, sizing=sizing)
    seen = sizing.scaling["bert-fp16"].observations[-1]
    machine = machine_with(1, gpu_bytes=seen.memory_bytes or 0)
    found = words(benchmarks, "bert-fp16", paths=paths, machine=machine)
    assert int(found[found.index("--batch-size") + 1]) == seen.batch_size


def test_a_thousand_entries_are_planned_quickly(benchmarks: list[Benchmark]) -> None:
    count = len(benchmarks)
    many = [msgspec.structs.replace(benchmarks[i % count], name=f"bench{i}") for i in range(1000)]

    def planning_s() -> float:
        began = time.process_time()
        plan = planned(*many, gpus=1)
        assert len(plan.launches) + len(plan.skipped) == 1000
        return time.process_time() - began

    assert quickest(planning_s, 1.0) < 1.0  # a tenth of that on an idle machine, half of it beside other tests
