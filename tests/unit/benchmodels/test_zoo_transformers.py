"""The zoo `transformers`: its list, smaller configurations that stay consistent, valid inputs, true reasons."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmodels.zoo.base import FAULT, NEEDS_PACKAGE, NO_FORWARD, SPREAD, NotInZoo, ZooRequest
from benchmodels.zoo.transformers import build, catalogue, outputs, sizes
from benchmodels.zoo.transformers.zoo import TransformersZoo

# One process imports the library for all; a loaded machine imports slowly.
pytestmark = [pytest.mark.xdist_group("transformers"), pytest.mark.timeout(600)]

AUTO = """
from collections import OrderedDict
CONFIG_MAPPING_NAMES = OrderedDict([("bert", "BertConfig"), ("bert-again", "BertConfig"), ("part", "PartConfig"), ("seer", "SeerConfig")])
"""
MODELS = """
MODEL_MAPPING_NAMES = OrderedDict([("bert", "BertModel"), ("bert-again", "BertModel"), ("unknown", "NoModel")])
MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict([("bert", "BertLMHeadModel"), *others.items()])
MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES = OrderedDict([("seer", ("SeerForDetection", "SeerToo"))])
"""
SEER = """
class SeerPreTrainedModel(PreTrainedModel):
    input_modalities = ("image",)

class SeerForDetection(SeerPreTrainedModel):
    pass
"""


@pytest.fixture(scope="module")
def zoo() -> TransformersZoo:
    pytest.importorskip("transformers")
    return TransformersZoo()


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / "models" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_architectures_are_read_from_the_sources(tmp_path: Path) -> None:
    files = {"auto/auto_mappings.py": AUTO, "auto/modeling_auto.py": MODELS, "seer/modeling_seer.py": SEER}
    configuration = (
        '@auto_docstring(checkpoint="acme/seer-1")\n@strict\nclass SeerConfig(PreTrainedConfig):\n    pass\n'
    )
    files["seer/configuration_seer.py"] = configuration
    found = catalogue.architectures(str(written(tmp_path, files)))
    assert list(found) == ["bert", "seer"]  # two types of the same classes are one; a part has no class
    assert found["bert"].classes == {"base": "BertModel", "causal-lm": "BertLMHeadModel"}
    assert (found["bert"].head, found["bert"].task) == ("base", "text")
    seer = found["seer"]
    assert (seer.head, seer.classes[seer.head], seer.task) == ("object-detection", "SeerForDetection", "detection")
    assert (seer.takes, seer.family, seer.author) == (("image",), "seer", "acme")


def test_the_installed_library_is_listed_without_importing_it(zoo: TransformersZoo) -> None:
    entries = {entry.name: entry for entry in zoo.entries()}
    assert len(entries) > 400
    tasks = {name: entries[name].task for name in ("bert", "vit", "whisper", "clip", "detr", "patchtst")}
    assert tasks == {
        **{"bert": "text", "vit": "vision", "whisper": "audio", "clip": "multimodal"},
        **{"detr": "segmentation", "patchtst": "time-series"},
    }
    assert entries["llama"].labels["author"] == "meta-llama"
    assert "masked-lm" in entries["bert"].labels["heads"].split("+")


@pytest.mark.parametrize(
    ("value", "divisor", "expected"),
    [(768, 8, 96), (12, 8, 6), (4, 8, 4), (4544, 16, 284), (1407, 16, 88), (65, 1, 65)],
)
def test_a_width_is_divided_as_far_as_it_goes(value: int, divisor: int, expected: int) -> None:
    assert sizes.width(value, divisor) == expected


def test_special_tokens_stay_different_and_within_the_vocabulary() -> None:
    tokens = sizes.Tokens(sizes.TINY)
    small = tokens.size(151936)
    old = [151655, 151656, 151643, 151935, 151936, 2]
    new = [tokens.token(each, [151936]) for each in old]
    assert len(set(new)) == len(old)
    assert max(new) < small
    assert new[-1] == 2
    assert tokens.token(151655, [151936]) == new[0]


def test_as_many_layers_as_there_are_kinds_of_them() -> None:
    assert sizes.layers_for(["linear", "linear", "linear", "full"] * 8, 2) == 4
    assert sizes.layers_for(["full"] * 32, 2) == 2


def test_a_field_that_is_stored_under_another_name_gets_smaller_too() -> None:
    """Else a tiny model would have the 512 experts of the large one."""
    library = pytest.importorskip("transformers")
    if not hasattr(library, "BailingHybridConfig"):
        pytest.skip("a version without this architecture")
    configs = pytest.importorskip("benchmodels.zoo.transformers.configs")
    usual = library.BailingHybridConfig()
    made = configs.smaller(usual, sizes.TINY)
    assert (usual.num_experts, usual.num_local_experts) == (512, 512)
    assert (made.num_experts, made.num_local_experts, made.n_group) == (4, 4, 1)


def built(zoo: TransformersZoo, name: str, **parameters: str) -> Any:
    return zoo.build(ZooRequest(name, "tiny", parameters))


def test_models_of_each_kind_are_built_and_can_be_called(zoo: TransformersZoo) -> None:
    """A text model, an encoder with a decoder, experts, an image, a sound, boxes, a series."""
    torch = pytest.importorskip("torch")
    names = ["bert", "t5", "qwen3_moe", "vit", "wav2vec2", "layoutlm", "patchtst", "align", "perceiver"]
    for name in names:
        model = built(zoo, name)
        with torch.no_grad():
            first = model.module(*model.args, **model.kwargs)[0]
        assert torch.isfinite(first).all(), name
        assert not model.module.training, name
        assert sum(part.numel() for part in model.module.parameters()) < 20e6, name


def test_as_many_words_stand_for_an_image_as_it_has_features(zoo: TransformersZoo) -> None:
    model = built(zoo, "llava", batch_size="2", max_seq_length="5")
    tokens = (model.kwargs["input_ids"] == model.module.config.image_token_id).sum(dim=1)
    assert model.kwargs["input_ids"].shape == (2, int(tokens[0]) + 5)
    assert model.items == 2


def test_the_same_request_gives_the_same_weights_and_inputs(zoo: TransformersZoo) -> None:
    torch = pytest.importorskip("torch")
    one, two = built(zoo, "bert"), built(zoo, "bert")
    assert torch.equal(one.kwargs["input_ids"], two.kwargs["input_ids"])
    assert all(torch.equal(a, b) for a, b in zip(one.module.parameters(), two.module.parameters(), strict=True))


def test_a_head_is_built_if_it_is_named(zoo: TransformersZoo) -> None:
    assert type(built(zoo, "bert/masked-lm").module).__name__ == "BertForMaskedLM"
    with pytest.raises(NotInZoo, match="has no head 'depth-estimation'; it has base, "):
        built(zoo, "bert/depth-estimation")


def test_a_package_that_a_model_lacks_is_no_fault_of_the_library() -> None:
    for error in (ImportError("could not import"), ModuleNotFoundError("No module named 'scipy.special'")):
        error.__cause__ = ModuleNotFoundError("No module named 'scipy'") if type(error) is ImportError else None
        reason = build._missing(error)
        assert (reason.cause, reason.args[0]) == (NEEDS_PACKAGE, "it needs scipy")
    assert build._missing(ModuleNotFoundError("No module named 'transformers.x'")).cause == FAULT


def test_reasons_are_true(zoo: TransformersZoo) -> None:
    with pytest.raises(NotInZoo, match="did you mean 'bert'") as unknown:
        built(zoo, "bertt")
    assert unknown.value.kind == "unavailable"
    with pytest.raises(NotInZoo, match="has no forward") as bark:
        built(zoo, "bark")
    assert bark.value.cause == NO_FORWARD
    try:
        import timm  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        with pytest.raises(NotInZoo, match="needs timm") as wrapper:
            built(zoo, "timm_wrapper")
        assert wrapper.value.cause == NEEDS_PACKAGE


def test_a_class_gets_the_configuration_that_it_takes(zoo: TransformersZoo) -> None:
    """The registry names MusicgenModel, the decoder, with the configuration of the whole."""
    model = built(zoo, "musicgen", batch_size="2")
    assert model.module.config.model_type == "musicgen_decoder"
    assert model.kwargs["input_ids"].shape[0] == 2 * model.module.config.num_codebooks


def test_an_assistant_gets_keys_and_values_of_the_model_it_drafts_for(zoo: TransformersZoo) -> None:
    model = built(zoo, "gemma4_assistant", max_seq_length="5")
    shared = model.kwargs["shared_kv_states"]
    assert {kind: keys.shape[2] for kind, (keys, _) in shared.items()} == {"sliding_attention": 5, "full_attention": 5}


class Attending:
    """Stands for a model whose plain attention returns NaN."""

    _supports_sdpa = True

    def __init__(self, torch: Any, works: bool) -> None:
        self.torch, self.works = torch, works
        self.config = type("Config", (), {"_attn_implementation": "eager"})()

    def set_attn_implementation(self, name: str) -> None:
        self.config._attn_implementation = name

    def __call__(self) -> Any:
        usual = self.works and self.config._attn_implementation == "sdpa"
        return self.torch.tensor([1.0 if usual else float("nan")])


@pytest.mark.parametrize(("works", "expected"), [(True, "sdpa"), (False, "eager")])
def test_attention_that_returns_nan_is_replaced_if_that_helps(works: bool, expected: str) -> None:
    torch = pytest.importorskip("torch")
    model = Attending(torch, works)
    outputs.repaired(torch, model, {})
    assert model.config._attn_implementation == expected


def layers(torch: Any, weight: float) -> Any:
    """A chain of convolutions and batch norms that makes values smaller by about this factor each."""
    parts = [part for _ in range(12) for part in (torch.nn.Conv2d(1, 1, 1, bias=False), torch.nn.BatchNorm2d(1))]
    for part in parts[::2]:
        torch.nn.init.constant_(part.weight, weight)
    return torch.nn.Sequential(*parts, torch.nn.Dropout(0.5)).eval()


def test_outputs_that_vanish_get_a_usual_size_and_others_stay() -> None:
    torch = pytest.importorskip("torch")
    call = {"input": torch.arange(16.0).reshape(1, 1, 4, 4)}
    tiny, usual = layers(torch, 0.1), layers(torch, 0.9)
    with torch.no_grad():
        assert tiny(**call).abs().max() < outputs.VANISHED
        before = usual(**call)
        outputs.repaired(torch, tiny, call)
        outputs.repaired(torch, usual, call)
        assert 0.1 < tiny(**call).abs().max() < 10
        assert torch.equal(tiny(**call), tiny(**call))  # the dropout stays off
        assert torch.equal(usual(**call), before)


def test_norms_of_the_library_itself_are_repaired_too_and_do_not_make_rounding_errors_large() -> None:
    """pp_doclayout has a class of frozen ones; a second channel that hardly varies must not count as much as the first."""
    torch = pytest.importorskip("torch")

    class Frozen(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("running_mean", torch.zeros(2))
            self.register_buffer("running_var", torch.ones(2))

        def forward(self, input: Any) -> Any:
            mean, variance = (each.reshape(1, 2, 1, 1) for each in (self.running_mean, self.running_var))
            return (input - mean) * (variance + 1e-24).rsqrt()

    given = torch.stack([torch.arange(16.0), torch.full((16,), 3.0)]).reshape(1, 2, 4, 4) * 1e-9
    model = Frozen().eval()
    outputs.repaired(torch, model, {"input": given})
    made, moved = model(given), model(given * (1 + 1e-6 * torch.arange(16.0).reshape(4, 4)))
    assert 0.1 < made.abs().max() < 10
    assert (moved - made).norm() < 1e-4 * made.norm()


def test_numbers_that_are_rounded_away_get_a_usual_size() -> None:
    """As the codes of neucodec: what is decoded from zeros is nothing but rounding errors."""
    torch = pytest.importorskip("torch")

    class Codec(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 8, bias=False)
            for weight in self.parameters():
                torch.nn.init.normal_(weight, std=SPREAD)

        def forward(self, input: Any) -> Any:
            return self.decoder(self.encoder(input).round())

    torch.manual_seed(0)
    model, call = Codec().eval(), {"input": torch.randn(4, 8)}
    with torch.no_grad():
        assert not model(**call).any()
        outputs.repaired(torch, model, call)
        assert model(**call).abs().max() > 0.01


@pytest.mark.parametrize(
    ("numbers", "count", "tied"),
    [([3.0, 2.0, 1.0], 2, False), ([3.0, 2.0, 2.0], 2, True), ([2.0, 2.0, 1.0], 2, False), ([2.0, 2.0], 2, False)],
)
def test_a_choice_is_a_tie_if_the_next_number_is_as_large(numbers: list[float], count: int, tied: bool) -> None:
    torch = pytest.importorskip("torch")

    class Chooser(torch.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, scores: Any) -> Any:
            return scores.topk(count, dim=0).values

    assert outputs._called(torch, Chooser(), {"scores": torch.tensor(numbers)}).tied is tied


def test_routers_that_find_all_experts_equal_get_random_weights(zoo: TransformersZoo) -> None:
    """transformers starts those of afmoe as zeros: which experts are chosen would depend on the runtime."""
    model = built(zoo, "afmoe")
    routers = [weight for name, weight in model.module.named_parameters() if name.endswith("router.gate.weight")]
    assert routers
    assert all(weight.any() for weight in routers)


def test_a_build_of_a_zoo_is_another_one_once_models_are_made_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmodels.measure import jobs

    copy = tmp_path / "zoo"
    shutil.copytree(Path(jobs.zoo.__file__).parent, copy)
    monkeypatch.setattr(jobs.zoo, "__file__", str(copy / "__init__.py"))
    found = []
    for text in ("", "# the same\n", "SIZE = 3\n"):
        (copy / "transformers" / "new.py").write_text(text)
        jobs._makers_digest.cache_clear()
        found.append(jobs._makers_digest())
    jobs._makers_digest.cache_clear()
    assert len(set(found)) == 3
