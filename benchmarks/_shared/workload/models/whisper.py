"""Whisper (Radford et al. 2022): log-mel spectrogram in, text out. Laid out as OpenAI's own code, whose parameters it counts.

Hugging Face and Keras count the encoder's sinusoids too, which are not learned: 1500 × state more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FRAMES_PER_SECOND = 100  # of the spectrogram; the encoder's second convolution halves them
PROMPT = 4  # start of transcript, language, task, no timestamps
Cache = tuple[Tensor, Tensor]  # keys and values: (batch, heads, positions, head size)


@dataclass(frozen=True)
class Shape:
    """The sizes of one model, with what follows from them by formula."""

    state: int
    heads: int
    audio_layers: int
    text_layers: int
    vocabulary: int = 51865
    mels: int = 80
    audio_context: int = 1500
    text_context: int = 448

    @property
    def parameters(self) -> int:
        d = self.state
        convolutions = 3 * self.mels * d + d + 3 * d * d + d
        attention, mlp, norm = 4 * d * d + 3 * d, 8 * d * d + 5 * d, 2 * d  # the keys have no bias
        encoder = convolutions + self.audio_layers * (attention + mlp + 2 * norm) + norm
        embeddings = (self.vocabulary + self.text_context) * d  # the output projection is the embedding of the tokens
        return encoder + embeddings + self.text_layers * (2 * attention + mlp + 3 * norm) + norm

    def training_flops(self, seconds: int, tokens: int) -> float:
        """Forward and backward for one window. The gradients of a product are two more of its size, except for the first
        convolution, whose input needs none. What fused attention computes twice is counted once, what a causal mask hides is
        counted.
        """
        first, linear, attention = self._encoder_flops(seconds)
        d, positions = self.state, seconds * FRAMES_PER_SECOND // 2
        linear += self.text_layers * 2 * (2 * positions + 14 * tokens) * d * d + 2 * tokens * self.vocabulary * d
        attention += self.text_layers * 4 * tokens * (tokens + positions) * d
        return 2 * first + 3 * (linear + attention)

    def transcription_flops(self, seconds: int, tokens: int) -> float:
        """The encoder once, then the prompt and all but the last of `tokens` through the decoder with a cache."""
        d, positions = self.state, seconds * FRAMES_PER_SECOND // 2
        steps = tokens - 1
        looked_at = PROMPT * PROMPT + steps * PROMPT + steps * (steps + 1) // 2  # by the decoder, of its own positions
        seen = PROMPT + steps
        linear = self.text_layers * 2 * (2 * positions + 14 * seen) * d * d + 2 * tokens * self.vocabulary * d
        attention = self.text_layers * 4 * (looked_at + seen * positions) * d
        return sum(self._encoder_flops(seconds)) + linear + attention

    def _encoder_flops(self, seconds: int) -> tuple[float, float, float]:
        """Forward for one window: the first convolution; the second and all linear layers; attention."""
        d, frames = self.state, seconds * FRAMES_PER_SECOND
        positions = frames // 2
        linear = 2 * positions * (3 * d * d + self.audio_layers * 12 * d * d)
        return 2 * frames * 3 * self.mels * d, linear, self.audio_layers * 4 * positions * positions * d


SHAPES = {
    "nano": Shape(64, 2, 2, 2, vocabulary=512, mels=40, text_context=64),  # ours, for trying out
    "tiny": Shape(384, 6, 4, 4),
    "base": Shape(512, 8, 6, 6),
    "small": Shape(768, 12, 12, 12),
    "medium": Shape(1024, 16, 24, 24),
    "large-v3": Shape(1280, 20, 32, 32, vocabulary=51866, mels=128),
    "large-v3-turbo": Shape(1280, 20, 32, 4, vocabulary=51866, mels=128),
}
# As counted from OpenAI's modules: Hugging Face's figure less the sinusoids.
PUBLIC_PARAMETERS = {
    "tiny": 37_184_640,
    "base": 71_825_920,
    "small": 240_582_912,
    "medium": 762_321_920,
    "large-v3": 1_541_570_560,
    "large-v3-turbo": 806_958_080,
}


class Attention(nn.Module):
    def __init__(self, state: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(state, state)
        self.key = nn.Linear(state, state, bias=False)
        self.value = nn.Linear(state, state)
        self.out = nn.Linear(state, state)

    def keys_and_values(self, x: Tensor) -> Cache:
        return self._split(self.key(x)), self._split(self.value(x))

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, causal: bool = False) -> Tensor:
        found = F.scaled_dot_product_attention(self._split(self.query(x)), keys, values, is_causal=causal)
        return self.out(found.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Block(nn.Module):
    """A layer of the encoder, or with `cross` of the decoder."""

    def __init__(self, state: int, heads: int, cross: bool) -> None:
        super().__init__()
        self.attention, self.attention_norm = Attention(state, heads), nn.LayerNorm(state)
        self.cross = Attention(state, heads) if cross else None
        self.cross_norm = nn.LayerNorm(state) if cross else None
        self.mlp = nn.Sequential(nn.Linear(state, 4 * state), nn.GELU(), nn.Linear(4 * state, state))
        self.mlp_norm = nn.LayerNorm(state)

    def forward(self, x: Tensor, heard: Cache | None = None, cache: Cache | None = None, position: int = 0) -> Tensor:
        """`heard`: keys and values of the audio. `cache`: those of the text before `position`, to which these are added."""
        inner = self.attention_norm(x)
        keys, values = self.attention.keys_and_values(inner)
        if cache is not None:
            end = position + x.shape[1]
            cache[0][:, :, position:end], cache[1][:, :, position:end] = keys, values
            keys, values = cache[0][:, :, :end], cache[1][:, :, :end]
        x = x + self.attention(inner, keys, values, causal=self.cross is not None and x.shape[1] > 1)
        if self.cross is not None and self.cross_norm is not None and heard is not None:
            x = x + self.cross(self.cross_norm(x), *heard)
        return x + self.mlp(self.mlp_norm(x))


class Encoder(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.first = nn.Conv1d(shape.mels, shape.state, 3, padding=1)
        self.second = nn.Conv1d(shape.state, shape.state, 3, stride=2, padding=1)
        self.positions: Tensor
        self.register_buffer("positions", sinusoids(shape.audio_context, shape.state))
        self.blocks = nn.ModuleList(Block(shape.state, shape.heads, False) for _ in range(shape.audio_layers))
        self.norm = nn.LayerNorm(shape.state)

    def forward(self, mel: Tensor) -> Tensor:
        x = F.gelu(self.second(F.gelu(self.first(mel)))).transpose(1, 2)
        x = (x + self.positions[: x.shape[1]]).to(x.dtype)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class Decoder(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.state)
        self.positions = nn.Parameter(torch.empty(shape.text_context, shape.state))
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions, std=0.01)
        self.blocks = nn.ModuleList(Block(shape.state, shape.heads, True) for _ in range(shape.text_layers))
        self.norm = nn.LayerNorm(shape.state)

    def hear(self, audio: Tensor) -> list[Cache]:
        """The keys and values of the encoded audio, for each layer: the same for every token."""
        return [block.cross.keys_and_values(audio) for block in self.blocks]

    def empty_cache(self, batch: int, length: int) -> list[Cache]:
        weights = self.tokens.weight
        heads = self.blocks[0].attention.heads
        size = (batch, heads, length, weights.shape[1] // heads)
        return [(weights.new_zeros(size), weights.new_zeros(size)) for _ in self.blocks]

    def forward(
        self,
        tokens: Tensor,
        heard: list[Cache],
        cache: list[Cache] | None = None,
        position: int = 0,
        last: bool = False,
    ) -> Tensor:
        """The logits of what follows each token, or with `last` the last one only. More than one token begin at 0."""
        x = self.tokens(tokens) + self.positions[position : position + tokens.shape[1]]
        for number, block in enumerate(self.blocks):
            x = block(x, heard[number], None if cache is None else cache[number], position)
        x = self.norm(x[:, -1:] if last else x)
        return F.linear(x, self.tokens.weight.to(x.dtype))


class Whisper(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.encoder, self.decoder = Encoder(shape), Decoder(shape)

    def forward(self, mel: Tensor, tokens: Tensor) -> Tensor:
        return self.decoder(tokens, self.decoder.hear(self.encoder(mel)))


def sinusoids(length: int, channels: int) -> Tensor:
    """Positions as sines and cosines of falling frequency, from 1 to 1/10000."""
    frequencies = torch.exp(-math.log(10000) / (channels // 2 - 1) * torch.arange(channels // 2))
    angles = torch.arange(length)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)
