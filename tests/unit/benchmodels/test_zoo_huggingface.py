"""The zoo `hf`: hundreds of known models, built without a hub from the sizes that are written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmodels.zoo import huggingface
from benchmodels.zoo.base import NEEDS_NETWORK, NotInZoo, ZooRequest
from benchmodels.zoo.huggingface import HuggingFaceZoo
from benchmodels.zoo.popular import popular_models

pytestmark = [pytest.mark.xdist_group("transformers"), pytest.mark.timeout(600)]
# Models of each kind of size, and their parameters in millions, as published.
PUBLISHED = {
    "google-bert/bert-base-uncased": 110,
    "FacebookAI/xlm-roberta-large": 560,
    "microsoft/deberta-v3-base": 184,
    "openai-community/gpt2-medium": 355,
    "EleutherAI/pythia-410m": 405,
    "Qwen/Qwen2.5-0.5B": 494,
    "Qwen/Qwen3-0.6B": 596,
    "meta-llama/Llama-3.2-1B": 1236,
    "google-t5/t5-base": 223,
    "facebook/bart-base": 139,
    "microsoft/resnet-50": 25.6,
    "microsoft/swin-base-patch4-window7-224": 87.8,
    "openai/clip-vit-large-patch14": 428,
    "openai/whisper-small": 242,
    "facebook/wav2vec2-large-960h": 315,
}


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HuggingFaceZoo:
    pytest.importorskip("transformers")
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv(huggingface.LIST, raising=False)
    return HuggingFaceZoo()


def test_hundreds_are_listed_with_task_author_and_architecture(zoo: HuggingFaceZoo) -> None:
    entries = {entry.name: entry for entry in zoo.entries()}
    assert len(entries) > 500
    assert len(entries) == len(list(popular_models()))
    gpt2, wav2vec2 = entries["openai-community/gpt2"], entries["facebook/wav2vec2-base"]
    assert (gpt2.task, wav2vec2.task) == ("text", "audio")
    assert gpt2.labels == {
        "author": "openai-community",
        "pipeline": "text-generation",
        "architecture": "GPT2LMHeadModel",
    }
    assert all(entry.sizes_from for entry in entries.values())


def test_every_class_is_one_of_the_library(zoo: HuggingFaceZoo) -> None:
    import transformers

    assert not [model.kind for model in popular_models() if not hasattr(transformers, model.kind)]


@pytest.mark.parametrize(("name", "millions"), PUBLISHED.items())
def test_written_sizes_give_the_published_number_of_parameters(zoo: HuggingFaceZoo, name: str, millions: float) -> None:
    import torch
    import transformers

    from benchmodels.zoo.transformers.build import config_of

    model = next(model for model in popular_models() if model.id == name)
    kind: Any = getattr(transformers, model.kind)
    with torch.device("meta"):
        made = kind(config_of(kind, model.sizes))
    assert sum(weight.numel() for weight in made.parameters()) / 1e6 == pytest.approx(millions, rel=0.01)


@pytest.mark.parametrize(
    "name",
    ["google-bert/bert-large-cased", "facebook/convnext-tiny-224", "openai/whisper-tiny", "facebook/bart-large-mnli"],
)
def test_a_listed_model_is_built_and_called_without_a_hub(zoo: HuggingFaceZoo, name: str) -> None:
    import torch

    made = zoo.build(ZooRequest(name))
    with torch.no_grad():
        assert made.module(*made.args, **made.kwargs) is not None


def test_a_cached_config_is_used_instead_of_the_list(zoo: HuggingFaceZoo, tmp_path: Path) -> None:
    commit = "0" * 40
    folder = tmp_path / "hub" / "models--openai-community--gpt2"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit)
    (folder / "snapshots" / commit).mkdir(parents=True)
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 1, "n_embd": 64, "n_head": 2}
    (folder / "snapshots" / commit / "config.json").write_text(json.dumps(config))
    entries = {entry.name: entry.sizes_from for entry in zoo.entries()}
    assert entries["openai-community/gpt2"] == ""
    assert entries["openai-community/gpt2-medium"] != ""


def test_a_model_that_is_not_listed_needs_its_config(zoo: HuggingFaceZoo) -> None:
    with pytest.raises(NotInZoo) as caught:
        zoo.build(ZooRequest("nobody/nothing"))
    assert caught.value.cause == NEEDS_NETWORK


def test_a_newer_list_is_in_its_order(zoo: HuggingFaceZoo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = [{"id": "new/one", "task": "object-detection"}, {"id": "openai-community/gpt2", "task": "text-generation"}]
    (tmp_path / "list.json").write_text(json.dumps({"models": models}))
    monkeypatch.setenv(huggingface.LIST, str(tmp_path / "list.json"))
    first, second = zoo.entries()
    assert (first.name, first.task, first.labels["rank"], first.sizes_from) == ("new/one", "detection", "1", "")
    assert (second.labels["rank"], bool(second.sizes_from)) == ("2", True)
