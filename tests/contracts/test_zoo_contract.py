"""What every zoo must do: list its models without torch, build the same one twice, and say why it cannot."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any

import pytest
from plugin_package import ADDED

from benchmodels.settings import ModelSettings
from benchmodels.zoo.base import SCALES, TASKS, NotInZoo, Zoo, ZooModel, ZooRequest
from benchmodels.zoo.registry import BUILT_IN, GROUP, zoo_named
from benchmodels.zoo.zoo_loader import open_zoo_model

torch = pytest.importorskip("torch")

FIRST = {"transformers": "bert", "timm": "resnet18", "torchvision": "resnet18", "pyg": "GCN", "example": "mlp"}
OF_A_HUB = ("hf", "torch-hub")  # what they list may not be on this machine
LISTING_S = 5.0


@pytest.fixture(params=[*BUILT_IN, ADDED[GROUP]])
def zoo(request: pytest.FixtureRequest, plugins: None) -> Zoo:
    found = zoo_named(request.param)
    if not found.version():
        pytest.skip(f"{request.param} is not installed")
    return found


def built(zoo: Zoo, **parameters: str) -> ZooModel:
    torch.manual_seed(7)
    return zoo.build(ZooRequest(FIRST[zoo.name], "tiny", parameters, 7))


def test_its_models_have_names_and_known_tasks(zoo: Zoo) -> None:
    entries = list(zoo.entries())
    assert entries
    assert len({entry.name for entry in entries}) == len(entries)
    assert {entry.zoo for entry in entries} == {zoo.name}
    assert {entry.task for entry in entries} <= set(TASKS)
    assert all(type(value) is str for entry in entries for value in entry.labels.values())
    json.dumps([entry._asdict() for entry in entries])


def test_a_model_is_ready_to_be_called_and_the_same_each_time(zoo: Zoo) -> None:
    if zoo.name not in FIRST:
        pytest.skip("its models are large, or on a hub")
    first, second = built(zoo), built(zoo)
    assert not any(part.training for part in first.module.modules())
    with torch.no_grad():
        first.module(*first.args, **first.kwargs)
    weights = zip(first.module.parameters(), second.module.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)


def test_an_unknown_model_is_an_error_that_names_it(zoo: Zoo) -> None:
    if zoo.name == ADDED[GROUP]:
        pytest.skip("any name is a model of it")
    with pytest.raises(Exception, match=r"no-such-model"):
        zoo.build(ZooRequest("no-such-model"))


def test_what_a_zoo_cannot_build_is_a_reason_and_no_crash(plugins: None) -> None:
    with pytest.raises(NotInZoo, match="unheard-of") as found:
        open_zoo_model(ModelSettings(mode="measure", zoo="example:needy"))
    assert (found.value.kind, found.value.stage) == ("unavailable", "load")
    with pytest.raises(NotInZoo, match="did you mean 'example'"):
        open_zoo_model(ModelSettings(mode="measure", zoo="exampel:mlp"))
    with pytest.raises(NotInZoo, match="write a whole number"):
        open_zoo_model(ModelSettings(mode="measure", zoo="example:mlp", zoo_parameters={"batch_size": "many"}))
    with pytest.raises(NotInZoo, match="takes no parameter 'batchsize'; it takes batch_size"):
        open_zoo_model(ModelSettings(mode="measure", zoo="example:mlp", zoo_parameters={"batchsize": "3"}))


def test_the_seed_and_the_parameters_count(plugins: None) -> None:
    def weights(**more: Any) -> Any:
        return next(
            iter(open_zoo_model(ModelSettings(mode="measure", zoo="example:mlp", **more)).captured.module.parameters())
        )

    assert torch.equal(weights(seed=1), weights(seed=1))
    assert not torch.equal(weights(seed=1), weights(seed=2))
    assert weights(scale=SCALES[1]).numel() > weights().numel()
    opened = open_zoo_model(ModelSettings(mode="measure", zoo="example:mlp", zoo_parameters={"batch_size": "4"}))
    assert opened.captured.args[0].shape[0] == 4
    assert opened.batch is not None
    assert opened.batch.items == 4
    assert opened.description["inputs"][0]["shape"] == [4, 8]


def test_all_zoos_are_listed_quickly_and_without_torch() -> None:
    program = "import sys; from benchmodels.zoo.__main__ import main; main(['list']); sys.exit('torch' in sys.modules)"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    zoos = [line for line in map(json.loads, done.stdout.splitlines()) if "version" in line]
    assert [zoo["zoo"] for zoo in zoos][: len(BUILT_IN)] == list(BUILT_IN)
    assert [zoo["problem"] for zoo in zoos if zoo["problem"]] == []
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 4 * LISTING_S
