"""Whisper: training, and transcribing."""

from __future__ import annotations

import pytest
from shipped_benchmarks import checked_lines, load

torch = pytest.importorskip("torch")
training = load("whisper")
inference = load("whisper_inference")

from workload.claims import counted_flops, parameter_count  # noqa: E402
from workload.models.language.attention import counting  # noqa: E402
from workload.models.whisper import (  # noqa: E402
    FRAMES_PER_SECOND,
    PROMPT,
    PUBLIC_PARAMETERS,
    SHAPES,
    Whisper,
    sinusoids,
)
from workload.speech import utterances  # noqa: E402

HUGGING_FACE = {"tiny": 37_760_640, "large-v3": 1_543_490_560, "large-v3-turbo": 808_878_080}


def test_training_computes_what_it_claims(tmp_path):
    assert len(checked_lines("whisper", data=tmp_path)) == 3


def test_transcribing_computes_what_it_claims(tmp_path):
    assert len(checked_lines("whisper_inference", data=tmp_path)) == 4


@pytest.mark.parametrize("model", list(PUBLIC_PARAMETERS))
def test_the_models_are_the_public_ones(model):
    with torch.device("meta"):
        found = parameter_count(Whisper(SHAPES[model]))
    assert found == SHAPES[model].parameters == PUBLIC_PARAMETERS[model]


def test_hugging_face_counts_the_sinusoids_too():
    for model, count in HUGGING_FACE.items():
        shape = SHAPES[model]
        assert count == PUBLIC_PARAMETERS[model] + shape.audio_context * shape.state


@pytest.mark.parametrize(
    "model", ["tiny", *(pytest.param(name, marks=pytest.mark.long) for name in ("small", "large-v3"))]
)
def test_the_arithmetic_of_public_models_is_as_claimed(model):
    shape, seconds, tokens = SHAPES[model], 30, 128
    with torch.device("meta"):
        whisper = Whisper(shape)
        mel = torch.empty(1, shape.mels, seconds * FRAMES_PER_SECOND)
        words = torch.zeros(1, tokens, dtype=torch.long)
    with counting():
        counted = counted_flops(lambda: whisper(mel, words).sum().backward())
    assert counted == pytest.approx(shape.training_flops(seconds, tokens), rel=1e-6)


def test_the_positions_of_the_encoder_are_fixed_waves():
    waves = sinusoids(1500, 384)
    assert waves[0, :192].eq(0).all()
    assert waves[0, 192:].eq(1).all()
    assert float(waves[1, 0]) == pytest.approx(0.841471, abs=1e-6)  # the first frequency is 1
    assert float(waves[1000, 191]) == pytest.approx(0.0998334, abs=1e-6)  # the last 1/10000


def test_a_token_sees_no_later_one():
    torch.manual_seed(0)
    shape = SHAPES["nano"]
    whisper = Whisper(shape).eval()
    mel = torch.randn(1, shape.mels, 100)
    words = torch.randint(shape.vocabulary, (1, 8))
    other = words.clone()
    other[:, 5:] = 1
    with torch.no_grad():
        assert torch.allclose(whisper(mel, words)[:, :5], whisper(mel, other)[:, :5], atol=1e-6)
        assert not torch.allclose(whisper(mel, words)[:, 5:], whisper(mel, other)[:, 5:], atol=1e-3)


def test_a_cache_that_is_filled_wrongly_is_noticed(monkeypatch):
    torch.manual_seed(0)
    shape = SHAPES["nano"]
    whisper = Whisper(shape).eval()
    mel = torch.randn(2, shape.mels, 100)
    decode = type(whisper.decoder).forward

    def late(self, tokens, heard, cache=None, position=0, last=False):
        return decode(self, tokens, heard, cache, position + 1 if position > PROMPT else position, last)

    with torch.no_grad():
        assert inference.same_without_cache(whisper, mel, 6)
        monkeypatch.setattr(type(whisper.decoder), "forward", late)
        assert not inference.same_without_cache(whisper, mel, 6)


def test_speech_is_made_alike_from_the_same_seed():
    shape = SHAPES["nano"]
    one, again, other = (utterances(shape, 2, 1, 4, 1, seed)[0] for seed in (3, 3, 4))
    assert torch.equal(one[0], again[0])
    assert torch.equal(one[1], again[1])
    assert not torch.equal(one[1], other[1])
    assert one[0].shape == (2, shape.mels, FRAMES_PER_SECOND)
    assert one[1].shape == (2, 4)


@pytest.mark.parametrize("argv", [["--seconds", "31"], ["--seconds", "0"], ["--tokens", "65"]])
def test_windows_that_the_model_cannot_take_are_refused(argv, capsys):
    for program in (training, inference):
        with pytest.raises(SystemExit):
            program.options(argv)
        assert "--seconds is 1 to 30" in capsys.readouterr().err
