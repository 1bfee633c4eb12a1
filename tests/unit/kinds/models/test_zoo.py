"""Targets of zoos: which models they mean, what they are called, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.model import Model
from benchwright.kinds.models.zoo.catalogue import ListedModel, forget_listings
from benchwright.kinds.models.zoo.targets import is_zoo_target
from benchwright.runner.requests import options_of
from benchwright.runner.resolve import resolve
from benchwright.runner.run import RunOrder, plan
from benchwright.runs.base_folder import BaseFolder


@pytest.fixture(scope="module", autouse=True)
def example(plugin_folder: Path) -> Iterator[None]:
    """tests/plugins is installed for this process, whose zoos are listed once: to ask for versions takes half a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(plugin_folder))
        forget_listings()
        yield
    forget_listings()


def read(tmp_path: Any, *targets: str, **values: Any) -> tuple[Benchmark, ...]:
    request = options_of({"python": sys.executable, "base": str(tmp_path), **values}, targets=targets)
    return resolve(request).benchmarks


def names(tmp_path: Any, *targets: str, **values: Any) -> list[str]:
    return [benchmark.name for benchmark in read(tmp_path, *targets, **values)]


def model(benchmark: Benchmark) -> Model:
    assert isinstance(benchmark.workload, Model)
    return benchmark.workload


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        *((each, True) for each in ("timm:resnet18", "timm:*", "hf:org/name", "torch-hub:a/b/c", "a1:x,y,b2:z")),
        *((each, False) for each in ("script.py::Net", "s3://bucket/x", "C:\\x", "name", "a b:c", ":x", "x:", "")),
    ],
)
def test_a_target_is_a_zoo_and_a_name(text: str, is_one: bool) -> None:
    assert is_zoo_target(text) == is_one


def test_names_patterns_and_lists(tmp_path: Any) -> None:
    assert names(tmp_path, "example:mlp") == ["example:mlp@torch-eager"]
    assert names(tmp_path, "example:m*,conv") == ["example:mlp@torch-eager", "example:conv@torch-eager"]
    assert names(tmp_path, "example:mlp", "example:m*") == ["example:mlp@torch-eager"]
    both = names(tmp_path, "example:mlp", runtimes=("eager,onnxruntime",), precisions=("bf16",))
    assert both == ["example:mlp@torch-eager,bf16", "example:mlp@onnxruntime,bf16"]


def test_the_same_model_of_two_names_is_measured_once(tmp_path: Any) -> None:
    assert names(tmp_path, "example:*conv*") == ["example:conv@torch-eager"]
    assert names(tmp_path, "example:vision/conv", "example:conv") == ["example:vision/conv@torch-eager"]
    (one,), (other,) = read(tmp_path, "example:conv"), read(tmp_path, "example:vision/conv")
    assert model(one).identity == model(other).identity
    assert one.notes == ()
    (both,) = read(tmp_path, "example:conv", "example:vision/conv")
    assert both.notes == ("measured once: example:vision/conv is the same model",)


def test_the_scale_and_parameters_are_in_the_name_and_make_another_model(tmp_path: Any) -> None:
    swept = read(tmp_path, "example:mlp", params=("batch_size=1,8",), scale="small")
    assert [b.name for b in swept] == [
        "example:mlp[scale=small,batch_size=1]@torch-eager",
        "example:mlp[scale=small,batch_size=8]@torch-eager",
    ]
    assert [model(b).zoo_parameters for b in swept] == [{"batch_size": "1"}, {"batch_size": "8"}]
    identities = {model(b).identity for b in (*swept, *read(tmp_path, "example:mlp"))}
    assert len(identities) == 3
    (given,) = read(tmp_path, "example:mlp", script_args="--batch_size 8,--height=4")
    assert model(given).zoo_parameters == {"batch_size": "8", "height": "4"}
    scales = read(tmp_path, "example:mlp", params=("scale=tiny,full",))
    assert [model(b).scale for b in scales] == ["tiny", "full"]


def test_tasks_and_labels_choose(tmp_path: Any) -> None:
    assert names(tmp_path, "example:*", tasks=("vision",)) == ["example:conv@torch-eager"]
    assert names(tmp_path, "example:*", select=("author=us",), exclude=("family=conv",)) == ["example:mlp@torch-eager"]
    assert names(tmp_path, "example:*", select=("m*",)) == ["example:mlp@torch-eager"]
    assert read(tmp_path, "example:mlp")[0].labels["author"] == "us"


def test_a_run_takes_names_and_patterns_of_a_zoo_in_select(tmp_path: Any) -> None:
    values = {"python": sys.executable, "select": ("m*",), "base": str(tmp_path)}
    options = options_of(values, targets=("example:*",))
    found = plan(RunOrder(options=options, base=BaseFolder(tmp_path), given=frozenset({"select"})))
    assert [benchmark.name for benchmark in found.benchmarks] == ["example:mlp@torch-eager"]


def test_where_sizes_come_from_is_part_of_the_identity_and_noted(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (usual,) = read(tmp_path, "example:mlp")
    meant = [ListedModel(zoo="example", name="mlp", task="other", sizes_from="a list")]
    monkeypatch.setattr("benchwright.kinds.models.zoo.kind.models_meant", lambda target, python: meant)
    (listed,), (full,) = read(tmp_path, "example:mlp"), read(tmp_path, "example:mlp", scale="full")
    assert model(listed).identity != model(usual).identity
    assert model(listed).content != model(usual).content
    assert (listed.notes, full.notes) == ((), ("sizes from a list",))


def test_shards_and_shuffles_share_models_out(tmp_path: Any) -> None:
    everything = names(tmp_path, "example:*")
    parts = [names(tmp_path, "example:*", shard=f"{number}/2", shuffle=True, seed=3) for number in (1, 2)]
    assert sorted(name for part in parts for name in part) == sorted(everything)
    assert all(parts)


@pytest.mark.parametrize(
    ("target", "values", "said"),
    [
        ("exampel:mlp", {}, "unknown zoo 'exampel'; did you mean 'example'?"),
        ("example:mpl", {}, "has no model 'mpl'; did you mean 'mlp'?"),
        ("example:zz*", {}, "no model of 'example' matches 'zz*'"),
        ("example:*", {"tasks": ("vison",)}, "did you mean 'vision'?"),
        ("example:*", {"select": ("author=nobody",)}, "no model is left"),
        ("example:mlp", {"params": ("scale=huge",)}, "unknown scale 'huge'"),
        ("example:mlp", {"script_args": "batch"}, "is not a list of parameters"),
        ("example:mlp", {"shapes": ("x=1",)}, None),
    ],
)
def test_what_is_wrong_is_refused_with_a_remedy(tmp_path: Any, target: str, values: dict[str, Any], said: str) -> None:
    if said is None:
        from benchwright.options.table import refuse_unrelated

        with pytest.raises(InvalidInput, match="applies to model files"):
            refuse_unrelated(["shapes"], ["zoo"])
        return
    with pytest.raises(InvalidInput) as found:
        read(tmp_path, target, **values)
    assert said in str(found.value)


@pytest.fixture
def listed_anew() -> Iterator[None]:
    forget_listings()
    yield
    forget_listings()


@pytest.mark.usefixtures("listed_anew")
def test_a_zoo_that_is_not_installed_says_how_to_install_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmodels.zoo.timm import TimmZoo

    monkeypatch.setattr(TimmZoo, "version", lambda self: "")
    with pytest.raises(InvalidInput, match="benchwright install --zoo timm"):
        read(tmp_path, "timm:resnet18")
