"""The language models are the public ones, cost what the formulas say, and compute what such models compute."""

from __future__ import annotations

import pytest
from shipped_benchmarks import load

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
load("causal_lm")

from workload import tokens  # noqa: E402
from workload.claims import counted_flops, parameter_count  # noqa: E402
from workload.models.language import arithmetic, shapes  # noqa: E402
from workload.models.language.attention import attend, build, counting, use_kernel  # noqa: E402
from workload.models.language.decoder import Decoder, rotate  # noqa: E402
from workload.models.language.encoder import Encoder, MaskedLanguageModel  # noqa: E402

CPU, META = torch.device("cpu"), torch.device("meta")
SIZES = ["tiny", "small", "full"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("model", shapes.DECODERS)
def test_decoders_have_the_parameters_of_the_public_models(model, size):
    shape = shapes.shape_of(model, size)
    found = parameter_count(build(lambda: Decoder(shape), META))
    assert found == shapes.decoder_parameters(shape)
    assert shapes.published(model, size) == (found if size == "full" else None)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("model", ["bert-base", "bert-large"])
def test_masked_language_models_have_the_parameters_of_the_public_ones(model, size):
    shape = shapes.shape_of(model, size)
    found = parameter_count(build(lambda: MaskedLanguageModel(shape), META))
    assert found == shapes.encoder_parameters(shape, masked_head=True)
    assert shapes.published(model, size) == (found if size == "full" else None)


def test_the_encoder_of_sentences_has_the_parameters_of_the_public_one():
    shape = shapes.shape_of("minilm-l6", "full")
    found = parameter_count(build(lambda: Encoder(shape, pooler=True), META))
    assert found == shapes.encoder_parameters(shape, pooler=True) == shapes.PARAMETERS["minilm-l6"] == 22_713_216


def test_the_best_known_counts():
    known = {"bert-base": 109_514_298, "gpt2": 124_439_808, "llama-1b": 1_235_814_400, "llama-8b": 8_030_261_248}
    assert known.items() <= shapes.PARAMETERS.items()


@pytest.mark.parametrize(
    "model", ["gpt2", *(pytest.param(name, marks=pytest.mark.long) for name in ("llama-1b", "llama-8b"))]
)
def test_the_arithmetic_of_training_a_public_decoder_is_as_claimed(model):
    shape, length = shapes.PUBLIC[model], 1024
    made = build(lambda: Decoder(shape), META)
    text = torch.zeros(1, length, dtype=torch.long, device=META)
    with counting():
        counted = counted_flops(lambda: made(text).sum().backward())
    assert counted == length * arithmetic.decoder_training(shape, length)


@pytest.mark.parametrize("predictions", [pytest.param(512, marks=pytest.mark.long), 77])
def test_the_arithmetic_of_training_bert_is_as_claimed(predictions):
    shape, length = shapes.PUBLIC["bert-base"], 512
    made = build(lambda: MaskedLanguageModel(shape), META)
    text = torch.zeros(1, length, dtype=torch.long, device=META)
    places = None if predictions == length else torch.zeros(1, predictions, dtype=torch.long, device=META)
    with counting():
        counted = counted_flops(lambda: made(text, places).sum().backward())
    assert counted == arithmetic.masked_training(shape, length, predictions)


@pytest.mark.parametrize("model", ["gpt2", "llama-1b", "llama-8b"])
def test_no_token_sees_those_behind_it(model):
    shape = shapes.shape_of(model, "tiny")
    torch.manual_seed(0)
    made = build(lambda: Decoder(shape), CPU).eval()
    text = torch.randint(shape.vocabulary, (2, 20))
    changed = text.clone()
    changed[:, 12] = (changed[:, 12] + 1) % shape.vocabulary
    with torch.no_grad():
        before, after = made(text), made(changed)
        last = made(text, only_last=True)
    assert torch.allclose(before[:, :12], after[:, :12], atol=1e-6)
    assert not torch.allclose(before[:, 12:], after[:, 12:], atol=1e-3)
    assert torch.allclose(last, before[:, -1], atol=1e-6)


def test_every_token_of_an_encoder_sees_all_that_are_not_masked():
    shape = shapes.shape_of("minilm-l6", "tiny")
    torch.manual_seed(0)
    made = build(lambda: Encoder(shape), CPU).eval()
    text = torch.randint(shape.vocabulary, (1, 10))
    changed = text.clone()
    changed[:, 7] = (changed[:, 7] + 1) % shape.vocabulary
    mask = torch.arange(10).lt(7)[None, None, None]
    with torch.no_grad():
        assert not torch.allclose(made(text)[:, 0], made(changed)[:, 0], atol=1e-5)
        assert torch.allclose(made(text, mask)[:, :7], made(changed, mask)[:, :7], atol=1e-6)


@pytest.mark.parametrize("model", ["gpt2", "llama-1b"])
def test_checkpointing_changes_no_gradient(model):
    shape = shapes.shape_of(model, "tiny")
    text = torch.arange(40).view(2, 20)
    gradients = []
    for checkpointing in (False, True):
        torch.manual_seed(0)
        made = Decoder(shape, checkpointing).train()
        made(text).logsumexp(-1).sum().backward()
        gradients.append([p.grad for p in made.parameters()])
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*gradients, strict=True))


@pytest.mark.parametrize("length", [1, 5])
def test_queries_that_share_a_key_compute_what_repeated_keys_do(length):
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 6, length, 8), torch.randn(2, 3, 9, 8), torch.randn(2, 3, 9, 8)
    mask = torch.rand(2, 1, 1, 9) < 0.7
    mask[..., 0] = True
    found = attend(query, key, value, mask)
    scores = (query @ key.repeat_interleave(2, 1).transpose(2, 3)) / 8**0.5
    expected = scores.masked_fill(~mask, -torch.inf).softmax(-1) @ value.repeat_interleave(2, 1)
    assert torch.allclose(found, expected, atol=1e-5)


def test_rotary_positions_tell_distances_alone():
    shape = shapes.shape_of("llama-1b", "tiny")
    made = build(lambda: Decoder(shape), CPU)
    query, key = torch.randn(2, 1, 1, 1, shape.head_width)

    def score(here, there):
        turned = [rotate(x, made._angles(torch.tensor([p]), torch.float32)) for x, p in ((query, here), (key, there))]
        return float((turned[0] * turned[1]).sum())

    assert score(7, 3) == pytest.approx(score(104, 100), abs=1e-4)
    assert score(7, 3) != pytest.approx(score(7, 4), abs=1e-3)
    assert score(0, 0) == pytest.approx(float((query * key).sum()), abs=1e-5)


def test_models_are_built_in_the_type_wanted():
    shape = shapes.shape_of("llama-1b", "tiny")
    made = build(lambda: Decoder(shape), CPU, torch.bfloat16)
    assert {p.dtype for p in made.parameters()} == {torch.bfloat16}
    assert torch.get_default_dtype() == torch.float32
    assert made(torch.zeros(1, 3, dtype=torch.long)).dtype == torch.bfloat16


def test_tokens_are_the_same_every_time_and_few_can_follow_each():
    text = tokens.make(20_000, 256)
    assert np.array_equal(text, tokens.make(20_000, 256))
    assert not np.array_equal(text, tokens.make(20_000, 256, seed=1))
    assert text.max() < 256
    assert len(text) >= 20_000
    length = int(20_000**0.5)
    rows = text.reshape(-1, length)
    pairs = set(zip(rows[:, :-1].flat, rows[:, 1:].flat, strict=True))
    assert len(pairs) <= 256 * len(tokens.FOLLOWERS)
    assert np.bincount(text).max() > 5 * len(text) / 256  # some are far more frequent


def test_tokens_must_fit_into_sixteen_bits():
    with pytest.raises(ValueError, match="do not fit"):
        tokens.make(100, 70_000)


def test_sequences_go_on_from_the_start_and_ranks_have_their_own(tmp_path):
    folder = tokens.prepare(tmp_path / "text", "tiny")
    count, symbols = tokens.SIZES["tiny"]
    assert (folder / tokens.FILE).stat().st_size >= 2 * count
    first = tokens.sequences(folder, 3, 50)
    assert first.shape == (3, 50)
    assert int(first.max()) < symbols
    size = (folder / tokens.FILE).stat().st_size // 2
    around = tokens.sequences(folder, 2, 50, skip=size // 50)
    assert torch.equal(around.flatten()[size % 50 :][:50], first[0])
    mine, other = (tokens.batches(folder, 2, 3, 50, CPU, rank) for rank in (0, 1))
    assert torch.equal(mine[0], first)
    assert not any(torch.equal(a, b) for a in mine for b in other)


def test_a_kernel_that_is_not_there_is_an_error_and_not_another_kernel():
    query = torch.randn(1, 2, 8, 16)
    try:
        use_kernel("efficient")
        with pytest.raises(RuntimeError, match=r"No (viable|available)"):
            attend(query, query, query)
        use_kernel("math")
        plain = attend(query, query, query, causal=True)
    finally:
        use_kernel("sdpa")
    assert torch.allclose(attend(query, query, query, causal=True), plain, atol=1e-6)
