"""milabench's dialect of suites: scripts that voir runs, and what they find around them."""

from __future__ import annotations

import json

import pytest
from suites import FOLDER, ONE_JOB, PER_GPU, entry, jobs_of, planned

from benchwright.core.benchmark import Launcher, Runner
from benchwright.core.system import Container, Node, System
from benchwright.options.table import Options

PYTHON = "/base/venv/torch/bin/python"
PODMAN = Container(executable="podman", image="bench:${system.arch}", args=("-it", "--rm", "--gpus=all"))
VOIR = Runner(name="voir", dialect="milabench", settings={"options": {"stop": 3}})


def test_a_voir_script_gets_its_configuration_and_a_stream() -> None:
    (job,) = jobs_of(entry("b", "--x", folder={"runner": VOIR}), gpus=1)
    config = f"{FOLDER}/b.D0.voir.json"
    assert job.argv == (PYTHON, "-m", "voir", "--config", config, "/suite/bench/main.py", "--x")
    assert {path: json.loads(text) for path, text in job.files.items()} == {config: {"options": {"stop": 3}}}
    assert (job.data_file, job.env["DATA_FD"], job.dialect) == (f"{FOLDER}/b.D0.voir", "3", "voir")
    assert "VOIRFILE" not in job.env


def test_voir_below_a_launcher_writes_to_the_output() -> None:
    folder = {"launcher": Launcher(name="torchrun", processes=2, args=("--tee={gpu_count}",)), "runner": VOIR}
    (job,) = jobs_of(entry("b", folder=folder, placement=ONE_JOB), gpus=1)
    config = f"{FOLDER}/b.0.voir.json"
    assert job.argv[5:] == ("--nproc-per-node=2", "--tee=1", "-m", "voir", "--config", config, "/suite/bench/main.py")
    assert (job.env["DATA_FD"], job.data_file, job.dialect) == ("1", None, "voir")
    assert job.env["VOIRFILE"] in job.files, "perhaps it has several ranks"


def test_voir_is_given_our_file_where_a_script_has_company(monkeypatch: pytest.MonkeyPatch) -> None:
    for job in jobs_of(entry("b", folder={"runner": VOIR}, placement=PER_GPU), gpus=2):
        assert job.env["VOIRFILE"] == f"{FOLDER}/benchwright_voirfile.py"
        assert "early_stop" in job.files[f"{FOLDER}/benchwright_voirfile.py"]
    own = entry("b", folder={"runner": VOIR}, placement=PER_GPU, env={"VOIRFILE": "own.py"})
    assert jobs_of(own, gpus=2)[0].env["VOIRFILE"] == "own.py"
    monkeypatch.setenv("VOIRFILE", "own.py")
    assert "VOIRFILE" not in jobs_of(entry("b", folder={"runner": VOIR}, placement=PER_GPU), gpus=2)[0].env


def test_voir_inside_a_container_writes_to_the_output() -> None:
    (job,) = jobs_of(entry("b", folder={"runner": VOIR}), gpus=1, system=System(container=PODMAN))
    assert (job.env["DATA_FD"], job.data_file) == ("1", None)
    assert f"{FOLDER}/b.D0.voir.json" in job.argv


def test_a_script_finds_its_folders_and_configuration() -> None:
    folder = {"config": {"name": "b", "argv": {"--x": 1}, "env": {"HF_TOKEN": "secret", "A": "1"}, "tag": ["old"]}}
    env = jobs_of(entry("b", folder=folder, env={"A": "{milabench_data}/a", "HF_HOME": "/mine", "B": None}), gpus=2)[
        1
    ].env
    assert {k: v for k, v in env.items() if k.startswith("MILABENCH_DIR_")} == {
        "MILABENCH_DIR_BASE": "/base",
        "MILABENCH_DIR_VENV": "/base/venv/torch",
        "MILABENCH_DIR_DATA": "/base/data",
        "MILABENCH_DIR_RUNS": "/base/runs",
        "MILABENCH_DIR_EXTRA": "/base/extra/grp",
        "MILABENCH_DIR_CACHE": "/base/cache",
        "MILABENCH_DIR_CODE": "/suite/bench",
    }
    assert env["MILABENCH_BASE"] == env["BENCHWRIGHT_BASE"] == "/base"
    assert env["MILABENCH_DATA_DIR"] == env["BENCHWRIGHT_DATA_DIR"] == "/base/data"
    assert env["XDG_CACHE_HOME"] == "/base/cache"
    assert env["TORCH_HOME"] == "/base/cache"
    assert env["HF_HOME"] == "/mine"
    assert env["VIRTUAL_ENV"] == "/base/venv/torch"
    assert (env["A"], env["B"]) == ("/base/data/a", None)
    assert "OMP_NUM_THREADS" not in env
    assert jobs_of(entry("b"), gpus=1)[0].unrecorded == ("MILABENCH_CONFIG",), "its start is written down without it"
    config = json.loads(env["MILABENCH_CONFIG"] or "")
    assert config["argv"] == {"--x": 1}
    assert config["dirs"]["data"] == "/base/data"
    assert (config["tag"], config["device"], config["devices"]) == (["b", "D1"], 1, [1])
    assert config["env"] == {"HF_TOKEN": "(redacted)", "A": "1"}


def test_a_script_finds_the_system_in_its_configuration_as_milabench_describes_it() -> None:
    kept = {
        "install_variant": "${system.arch}",
        "x-where": ["${system.dirs.data}/of/${system.run_name}", "${system.no}"],
    }
    system = System(nodes=(Node(name="n0", ip="10.0.0.1", main=True, local=True),))
    job = jobs_of(entry("b", folder={"config": kept}), gpus=2, system=system)[0]
    config = json.loads(job.env["MILABENCH_CONFIG"] or "")
    assert job.env["HF_HOME"] == "/base/data"
    assert config["install_variant"] == "cuda"
    assert config["x-where"] == ["/base/data/of/RUN", "${system.no}"]
    assert (config["run_name"], config["capabilities"]) == ("RUN", {"nodes": 1})
    found = config["system"]
    assert (found["arch"], found["gpu"]["count"], found["gpu"]["capacity"]) == ("cuda", 2, "81920 MiB")
    assert (found["base"], found["run_name"], found["sshkey"]) == ("/base", "RUN", None)
    assert found["dirs"] == {name: f"/base/{name}" for name in ("data", "runs", "cache", "venv", "extra")}
    assert (found["self"]["name"], [node["name"] for node in found["nodes"]]) == ("n0", ["n0"])


def test_per_gpu_repeats_carry_their_number() -> None:
    plan = planned(entry("b", placement=PER_GPU), gpus=2, options=Options(repeat=2))
    assert [[job.id for job in jobs] for jobs in plan.launches] == [["b.R0.D0", "b.R0.D1"], ["b.R1.D0", "b.R1.D1"]]
    configs = [json.loads(job.env["MILABENCH_CONFIG"] or "") for jobs in plan.launches for job in jobs]
    assert [c["tag"] for c in configs] == [["b", r, d] for r in ("R0", "R1") for d in ("D0", "D1")]
