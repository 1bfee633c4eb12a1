"""System files become a System and the runs of a multirun."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.core.errors import InvalidInput
from benchwright.core.system import Multirun, MultirunEntry, Node, System
from benchwright.kinds.suite.system_file import read_system
from benchwright.kinds.yaml.value_types import parse_capacity

WHOLE = """
system:
  arch: rocm
  sshkey: ~/.ssh/id_lab
  gpu: {capacity: 80 GiB, count: 4}
  docker:
    executable: podman
    image: example/bench:${system.arch}-nightly
    base: /scratch/${system.arch}
    args: [-it, --gpus=all, -v, "${system.docker.base}/data:/data", --shm-size, 8]
  nodes:
    - {name: one, ip: 10.0.0.1, main: true, user: ada, port: 2222}
    - {name: two, ip: 10.0.0.2, hostname: two.lab, sshport: 23}
    - {name: 3, ip: three.lab}
  dirs: {data: /fast/data}
  options:
    cpu: {auto: true, max: 12}
    dirs: {cache: /fast/cache}
multirun:
  runs:
    - name: "c{sizer.capacity}.{time}"
      matrix: {sizer.auto: 1, sizer.capacity: [64Go, All]}
"""


def read(folder: Path, text: str) -> tuple[System, Multirun]:
    path = folder / "system.yaml"
    path.write_text(text)
    return read_system(str(path))


def test_everything_that_is_written_is_read(tmp_path: Path) -> None:
    system, multirun = read(tmp_path, WHOLE)
    assert system.arch == "rocm"
    assert system.sshkey == os.path.expanduser("~/.ssh/id_lab")
    assert (system.gpu_count, system.gpu_capacity_bytes) == (4, 80 << 30)
    assert system.container is not None
    assert system.container.image == "example/bench:rocm-nightly"
    assert system.container.args == ("-it", "--gpus=all", "-v", "/scratch/rocm/data:/data", "--shm-size", "8")
    assert system.nodes == (
        Node(name="one", ip="10.0.0.1", main=True, user="ada", port=2222),
        Node(name="two", ip="10.0.0.2", hostname="two.lab", port=23),
        Node(name="3", ip="three.lab"),
    )
    assert system.main_node == system.nodes[0]
    assert system.dirs == {"data": "/fast/data", "cache": "/fast/cache"}
    assert system.options == {"cpu": {"auto": True, "max": 12}}
    matrix = {"sizer.auto": 1, "sizer.capacity": ["64Go", "All"]}
    assert multirun.runs == (MultirunEntry(name="c{sizer.capacity}.{time}", matrix=matrix),)


def test_the_root_may_be_left_out(tmp_path: Path) -> None:
    body = yaml.safe_load(WHOLE)
    flat = {**body["system"], "multirun": body["multirun"]}
    assert read(tmp_path, yaml.safe_dump(flat)) == read(tmp_path, WHOLE)


def test_an_empty_file_is_a_system_that_knows_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "# nothing yet\n") == (System(), Multirun())


def test_an_arch_is_read_in_any_case_and_may_be_one_we_do_not_know(tmp_path: Path) -> None:
    assert [read(tmp_path, f"arch: {word}")[0].arch for word in ("CUDA", "npu", "newchip")] == [
        "cuda",
        "npu",
        "newchip",
    ]


def test_the_arch_of_the_machine_is_filled_in_later(tmp_path: Path) -> None:
    system, _ = read(tmp_path, "docker: {image: 'a:${system.arch}'}")
    assert system.container is not None
    assert (system.container.image, system.container.executable) == ("a:${system.arch}", "docker")


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("12Go", 12 * 10**9),
        ("80 GiB", 80 << 30),
        ("81920 MiB", 81920 << 20),
        ("4108.75 MiB", int(4108.75 * (1 << 20))),
        ("2Gio", 2 << 30),
        ("16 Mo", 16 * 10**6),
        ("9kB", 9000),
        (1 << 30, 1 << 30),
        ("All", None),
        ("all", None),
    ],
)
def test_capacities_are_read_as_they_are_written(written: object, count: int | None) -> None:
    assert parse_capacity(written) == count


@pytest.mark.parametrize("written", ["much", "", "-3GiB", "12 Goo", True, None, [1], "9" * 400, float("inf")])
def test_what_is_no_capacity_is_refused(written: object) -> None:
    with pytest.raises(InvalidInput, match="not an amount of memory"):
        parse_capacity(written)


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("arhc: cuda", 1, 1, "did you mean 'arch'?"),
        ("system:\n  arch: cuda\nsytem: 1", 3, 1, "did you mean 'system'?"),
        ("- a", 1, 1, "the system is a list, not a map"),
        ("arch: [cuda]", 1, 7, "arch is a list, not text"),
        ("arch: cudaa", 1, 7, "'cudaa' is not an arch; did you mean 'cuda'?"),
        ("gpu: {arch: gpu}", 1, 13, "'gpu' is not an arch; write one of cpu, cuda"),
        ("nodes: {name: a}", 1, 8, "nodes is a map, not a list"),
        ("nodes:\n  - {ip: 1.2.3.4}", 2, 5, "the node's name is missing"),
        ("nodes:\n  - {name: a}", 2, 5, "the node's ip is missing"),
        ("nodes:\n  - {name: a, ip: b, prot: 3}", 2, 22, "did you mean 'port'?"),
        ("nodes:\n  - {name: a, ip: b, port: 99999}", 2, 28, "from 1 to 65535"),
        ("nodes:\n  - {name: a, ip: b, main: maybe}", 2, 28, "main is 'maybe', not true or false"),
        ("nodes:\n  - {name: a, ip: b}\n  - {name: a, ip: c}", 3, 12, "two nodes are called 'a'"),
        ("nodes:\n  - {name: a, ip: b, main: yes}\n  - {name: c, ip: d, main: yes}", 3, 28, "both the main node"),
        ("nodes: [~]", 1, 9, "this node is empty"),
        ("gpu: {capacity: lots}", 1, 17, "not an amount of memory"),
        ("gpu: {capacity: 80}", 1, 17, "give the unit"),
        ("gpu: {count: -1}", 1, 14, "not a whole number"),
        ("gpu: {count: true}", 1, 14, "not a whole number"),
        ("gpu: {count: '${system.arch}'}", 1, 14, "not a whole number"),
        ("nodes: {append: [{name: a, ip: b}]}", 1, 8, "nodes is a map, not a list"),
        ("gpu: {count: 99999999}", 1, 14, "from 0 to 10000"),
        ("docker: {executable: podman}", 1, 1, "image is missing"),
        ("docker: {image: '${system.docker.bas}', base: /x}", 1, 17, "did you mean 'system.docker.base'?"),
        ("docker: {image: '${system.docker.image}'}", 1, 17, "refers to itself"),
        ("options: {cpu: {n_worker: 3}}", 1, 17, "did you mean 'n_workers'?"),
        ("options: {cpus: {}}", 1, 11, "did you mean 'cpu'?"),
        ("dirs: {base: /x}", 1, 8, "is not a key of dirs"),
        ("multirun: {runs: [{matrix: {}}]}", 1, 19, "the run's name is missing"),
        ("multirun: {runs: [{name: a, matrix: {sizer.captain: 1}}]}", 1, 38, "did you mean 'sizer.capacity'?"),
        ("multirun: {runs: [{name: a, matrix: {sizer.auto: {a: 1}}}]}", 1, 50, "a value or a list of values"),
        ("gpu: {count: 1", 2, 1, "not YAML"),
    ],
)
def test_what_is_wrong_is_pointed_at(tmp_path: Path, text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)
    assert (caught.value.where, caught.value.line) == (str(tmp_path / "system.yaml"), line)
    assert caught.value.column == column


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"gone\.yaml.*No such file"):
        read_system(str(tmp_path / "gone.yaml"))


keys = st.sampled_from(
    "system arch nodes gpu docker dirs options multirun runs name ip main port capacity count image args cpu matrix".split()
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just("${system.arch}")
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(keys, values, max_size=5))
def test_any_file_is_read_or_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    with suppress(InvalidInput):
        assert isinstance(read(tmp_path, yaml.safe_dump(body))[0], System)


def test_a_node_is_reached_by_words_of_its_own(tmp_path):
    file = tmp_path / "system.yaml"
    file.write_text("nodes:\n  - {name: a, via: [kubectl, exec, -i, '${system.arch}-0', --]}\narch: cpu\n")
    assert read_system(str(file))[0].nodes == (Node(name="a", ip="a", via=("kubectl", "exec", "-i", "cpu-0", "--")),)
    file.write_text("nodes:\n  - {name: a, via: kubectl exec}\n")
    with pytest.raises(InvalidInput, match="via"):
        read_system(str(file))
