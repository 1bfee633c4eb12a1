"""What `plan` prints of suites."""

from __future__ import annotations

import msgspec
import pytest
from suites import ONE_JOB, PATHS, entry, planned

from benchwright.cli.plan import plan_body, plan_text
from benchwright.core.benchmark import Launcher, Placement
from benchwright.core.system import Container, Node, Sizing, System


def test_an_entry_shows_command_environment_and_devices_but_not_every_variable() -> None:
    text = plan_text(planned(entry("b", "--lr", "{gpu_count}", env={"A": "{arch}"}, notes=("a remark",)), gpus=3))
    assert text.splitlines() == [
        "b  (suite.yaml [b])",
        "  /base/venv/torch/bin/python /suite/bench/main.py --lr 3",
        "  in /suite/bench",
        "  environment /base/venv/torch",
        "  with A=cuda",
        "  3 jobs together, one on each of the devices 0-2",
        "  note: a remark",
        "1 launch: [b.D0, b.D1, b.D2]",
    ]


def test_what_planning_chose_is_noted() -> None:
    paths = msgspec.structs.replace(PATHS, sizing=Sizing(batch_size=64))
    plan = planned(entry("b", "auto_batch(4)"), paths=paths)
    assert "  note: batch size 64, the same for all" in plan_text(plan)
    assert plan_body(plan)["benchmarks"][0]["notes"] == ["batch size 64, the same for all"]


def test_what_is_skipped_says_why() -> None:
    text = plan_text(planned(entry("b", requires=("gpu['count'] > 9",))))
    assert text == "b  (suite.yaml [b])\n  skipped: needs gpu['count'] > 9, which does not hold here\n"


def test_each_node_has_its_command() -> None:
    nodes = (Node(name="head", ip="10.0.0.1", main=True), Node(name="worker", ip="10.0.0.2"))
    bench = entry("b", folder={"launcher": Launcher(name="torchrun")}, placement=Placement(numbered=True, machines=2))
    lines = plan_text(planned(bench, gpus=2, system=System(nodes=nodes))).splitlines()
    assert lines[1].startswith("  head: /base/venv/torch/bin/python -m torch.distributed.run --nnodes=2 --node-rank=0")
    assert lines[2].startswith("  worker: ")
    assert "--node-rank=1" in lines[2]
    assert "  1 job on devices 0-1, on each of 2 nodes" in lines


def test_a_container_is_shown_as_it_would_be_run() -> None:
    system = System(container=Container(executable="podman", image="img"))
    lines = plan_text(planned(entry("b", env={"HF_TOKEN": "hush"}), gpus=0, system=system)).splitlines()
    assert lines[1].startswith("  podman run --rm -v /base:/base -v /suite/bench:/suite/bench -e ")
    assert lines[1].endswith("-w /suite/bench img /base/venv/torch/bin/python /suite/bench/main.py")
    assert "  with HF_TOKEN=(redacted)" in lines
    assert "  1 job on the CPU" in lines


@pytest.mark.parametrize(
    ("gpus", "node", "said"),
    [(1, (), "1 job on device 0"), (2, (Node(name="far", ip="10.0.0.9"),), "1 job on devices 0-1 of far")],
)
def test_jobs_say_where_they_go(gpus: int, node: tuple[Node, ...], said: str) -> None:
    text = plan_text(planned(entry("b", placement=ONE_JOB), gpus=gpus, system=System(nodes=node)))
    assert f"  {said}\n" in text


@pytest.mark.compat
def test_json_holds_the_whole_environment_without_secrets() -> None:
    system = System(arch="rocm", gpu_count=2)
    body = plan_body(planned(entry("b", env={"HF_TOKEN": "hush", "GONE": None}), gpus=0, system=system))
    [shown] = body["benchmarks"]
    assert shown["environment"] == "torch"
    first, second = shown["jobs"]
    assert (first["node"], first["devices"], second["devices"]) == ("localhost", [0], [1])
    assert first["env"]["MILABENCH_DATA_DIR"] == "/base/data"
    assert (first["env"]["HF_TOKEN"], first["env"]["GONE"]) == ("(redacted)", None)
    assert second["env"]["ROCR_VISIBLE_DEVICES"] == "1"
    assert body["order"] == ["b.D0", "b.D1"]
