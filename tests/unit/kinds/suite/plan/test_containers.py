"""The command line of a container engine."""

from __future__ import annotations

import msgspec
import pytest
from suites import PATHS, entry, jobs_of, planned

from benchwright.core.errors import InvalidInput
from benchwright.core.system import Container, System
from benchwright.kinds.suite.plan.planner import outermost

PODMAN = Container(executable="podman", image="bench:${system.arch}", args=("-it", "--rm", "--gpus=all"))


def test_the_command_runs_inside_with_its_folders_and_variables() -> None:
    (job,) = jobs_of(entry("b", "--x", env={"HF_TOKEN": "secret"}), gpus=1, system=System(container=PODMAN))
    argv = job.argv
    assert argv[:5] == ("podman", "run", "-i", "--rm", "--gpus=all")
    assert argv[5:9] == ("-v", "/base:/base", "-v", "/suite/bench:/suite/bench")
    assert argv[-6:] == (
        "-w",
        "/suite/bench",
        "bench:cuda",
        "/base/venv/torch/bin/python",
        "/suite/bench/main.py",
        "--x",
    )
    passed = {argv[i + 1] for i, word in enumerate(argv) if word == "-e"}
    assert {"HF_TOKEN", "BENCHWRIGHT_BASE", "BENCHPROBE_CONFIG", "PYTHONPATH", "CUDA_VISIBLE_DEVICES"} <= passed
    assert not any("secret" in word for word in argv)
    assert job.env["HF_TOKEN"] == "secret"


def test_what_is_removed_is_not_passed_on_and_rm_is_added_once() -> None:
    container = msgspec.structs.replace(PODMAN, args=())
    (job,) = jobs_of(entry("b", env={"A": None}), gpus=1, system=System(container=container))
    assert "A" not in job.argv
    assert job.argv.count("--rm") == 1


def test_folders_outside_of_the_base_are_there_too() -> None:
    paths = msgspec.structs.replace(PATHS, data="/fast/data", system=System(container=PODMAN))
    (job,) = jobs_of(entry("b"), gpus=1, paths=paths)
    assert "/fast/data:/fast/data" in job.argv


def test_the_current_environment_of_a_container_is_the_images_own() -> None:
    paths = msgspec.structs.replace(PATHS, python="/usr/bin/python3", system=System(container=PODMAN))
    (job,) = jobs_of(entry("b"), gpus=1, paths=paths)
    assert job.argv[-2:] == ("python", "/suite/bench/main.py")


def test_a_placeholder_of_the_image_that_is_not_known_is_an_error() -> None:
    container = msgspec.structs.replace(PODMAN, image="bench:${system.arhc}")
    with pytest.raises(InvalidInput, match=r"system\.docker: .*did you mean '\{system\.arch\}'"):
        jobs_of(entry("b"), system=System(container=container))


def test_an_entry_may_name_the_image_of_its_container() -> None:
    own = entry("own", folder={"config": {"docker_image": "${system.docker.base}/own:{arch}"}})
    system = System(container=msgspec.structs.replace(PODMAN, base="reg.example"))
    images = [job.argv[job.argv.index("-w") + 2] for (job,) in planned(own, entry("b"), gpus=1, system=system).launches]
    assert images == ["reg.example/own:cuda", "bench:cuda"]


def test_an_image_is_nothing_where_no_engine_runs() -> None:
    (job,) = jobs_of(entry("b", folder={"config": {"docker_image": "own:${system.docker.base}"}}), gpus=1)
    assert job.argv == ("/base/venv/torch/bin/python", "/suite/bench/main.py")


def test_a_placeholder_of_an_entrys_image_is_told_as_the_entrys() -> None:
    wrong = entry("b", folder={"config": {"docker_image": "own:{arhc}"}})
    with pytest.raises(InvalidInput, match=r"suite\.yaml \[b\]: b: .*did you mean '\{arch\}'"):
        jobs_of(wrong, system=System(container=PODMAN))


def test_a_folder_inside_another_is_mounted_with_it() -> None:
    assert outermost(["/a/b", "/a", "/a-b", "/c/", "/c/d/../e"]) == ["/a", "/a-b", "/c"]
    assert outermost(["/", "/x"]) == ["/"]
