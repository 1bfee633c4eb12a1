"""Suites of milabench: its real files where they are at hand, and our own samples of the same ground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from literal_resolution import literal_resolution

from benchwright.core.benchmark import Script
from benchwright.core.stop_rule import StopRule, Warmup
from benchwright.kinds.registry import kind_for
from benchwright.kinds.suite.kind import SuiteKind
from benchwright.kinds.suite.read.suite import read_suite, suite_file
from benchwright.options.table import Options

ROOT = Path(__file__).parents[2]
REAL = ROOT.parent / "shared" / "compat" / "milabench" / "config"
OURS = Path(__file__).parent / "suites"
NAMES = ("all", "ci", "standard", "training", "inference", "synthetic", "examples/benchio")
COMPARED = ("argv", "plan", "tags", "weight", "enabled")

needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="milabench's own files are not beside this checkout")


def compared(entries: dict[str, Any]) -> dict[str, Any]:
    return {name: {key: entry.get(key) for key in COMPARED} for name, entry in entries.items()}


def line_of(file: str, line: str) -> int:
    return (REAL / file).read_text().splitlines().index(line) + 1


@needs_real
@pytest.mark.parametrize("name", NAMES)
def test_real_files_resolve_as_milabench_does_entry_by_entry(name: str) -> None:
    path = REAL / f"{name}.yaml"
    theirs = literal_resolution(path)
    ours = read_suite(str(path)).entries
    assert list(ours) == list(theirs)
    assert compared(ours) == compared(theirs)
    for key in ("voir", "max_duration", "requires_capabilities", "num_machines", "client", "server", "validation"):
        assert {n: e.get(key) for n, e in ours.items()} == {n: e.get(key) for n, e in theirs.items()}


@pytest.mark.parametrize("name", ["nightly", "sweep", "tweaks"])
def test_our_samples_resolve_as_milabench_does(name: str) -> None:
    path = OURS / f"{name}.yaml"
    assert compared(read_suite(str(path)).entries) == compared(literal_resolution(path))


@needs_real
def test_the_whole_of_all_yaml_becomes_benchmarks() -> None:
    path = str(REAL / "all.yaml")
    source = kind_for(path)
    assert source is not None
    assert source.name == "suite"
    benchmarks = {b.name: b for b in source.read(path, Options())}
    suite = read_suite(path)
    assert list(benchmarks) == list(suite.selected)
    assert len(suite.entries) == 54
    assert {n for n in suite.entries if n not in suite.selected} == {"dinov2-giant-nodes", "cleanrljax", "llava-gpus"}
    resnet = benchmarks["resnet50"]
    assert resnet.placement.per_device
    assert resnet.stop == StopRule(observations=60, interval_s=1.0)
    assert resnet.folder is not None
    assert resnet.environment is not None
    assert (resnet.folder.group, resnet.environment.name, resnet.environment.variant) == ("torchvision", "torch", None)
    assert resnet.folder.path == str((REAL / "../benchmarks/torchvision").resolve())
    assert isinstance(resnet.workload, Script)
    assert resnet.workload.args[-6:] == (
        "--model",
        "resnet50",
        "--batch-size",
        "auto_batch(256)",
        "--optim",
        "channel_last",
    )
    nodes = benchmarks["llm-lora-ddp-nodes"]
    assert nodes.placement.machines == 2
    assert nodes.requires == ("len(nodes) >= 2",)
    assert nodes.placement.numbered
    served = benchmarks["vllm-dense-physics-gpus"]
    assert served.folder is not None
    assert served.folder.serving is not None
    assert '{"image":10}' in served.folder.serving.args
    assert "--max-concurrency" in served.workload.args if isinstance(served.workload, Script) else False


@needs_real
def test_ci_changes_what_all_says() -> None:
    suite = read_suite(str(REAL / "ci.yaml"))
    assert suite.entries["resnet50"]["voir"]["options"]["stop"] == 5
    assert suite.entries["resnet50"]["argv"]["--epochs"] == 2
    assert suite.entries["dinov2-giant-single"]["argv"][0] == "--output-dir"
    found = {b.name: b for b in SuiteKind().read(str(REAL / "ci.yaml"), Options())}
    assert found["resnet50"].warmup == Warmup(seconds=1.0)
    assert found["resnet50"].source == f"{REAL / 'ci.yaml'}:{line_of('ci.yaml', 'resnet50:')} [resnet50]"
    assert found["t5"].source == f"{REAL / 'ci.yaml'} ({REAL / 'all.yaml'}:{line_of('all.yaml', 't5:')}) [t5]"
    assert {suite_file(b) for b in found.values()} == {str(REAL / "ci.yaml")}


@needs_real
@pytest.mark.parametrize(
    "name", ["scaling/default", "scaling/L40S", "examples/system", "examples/system-ci", "examples/scaling"]
)
def test_system_and_scaling_files_are_not_taken_for_suites(name: str) -> None:
    assert not SuiteKind().recognises(str(REAL / f"{name}.yaml"))


def test_samples_hold_what_real_files_hold() -> None:
    """So that a change that breaks real files fails here too, where they are not at hand."""
    text = "\n".join(path.read_text() for path in OURS.glob("*.yaml"))
    for used in ("include:", "inherits:", "auto_batch(", "auto({n_worker}", "${..num_machines}", "client:", "server:",
                 "gpu['count']", "njobs", "per_gpu", "matrix:", "!delete", "!expand-dot", "append:", "'*':", "--: ["):  # fmt: skip
        assert used in text, used
    assert yaml.safe_load((OURS / "base.yaml").read_text())["_defaults"]["enabled"] is False
