"""Decoders as GPT-2 (learned positions, LayerNorm, GELU) and as Llama (rotary positions, RMSNorm, SwiGLU, shared keys)."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from workload.models.language.attention import attend, initialise
from workload.models.language.shapes import Shape

ROTARY_BASE = 500_000.0  # of Llama 3
Angles = tuple[Tensor, Tensor]


class Memory(Protocol):
    """Keys and values of tokens that were seen before; it is told the new ones, and attends to all."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor: ...


class Decoder(nn.Module):
    """Scores of the next token for each token. `checkpointing`: layers are computed again in the backward pass."""

    def __init__(self, shape: Shape, checkpointing: bool = False) -> None:
        super().__init__()
        self.shape = shape
        self.checkpointing = checkpointing
        self.rotary = shape.family == "llama"
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.places = None if self.rotary else nn.Embedding(shape.positions, shape.width)
        self.blocks = nn.ModuleList(Block(shape, layer) for layer in range(shape.layers))
        self.norm = norm(shape)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        initialise(self)
        for block in self.blocks:  # the sum over layers stays as large as one of them
            for last in (block.attention.output, block.feed_forward.down):
                nn.init.normal_(last.weight, std=0.02 / (2 * shape.layers) ** 0.5)
        if shape.tied:
            self.head.weight = self.tokens.weight

    def forward(
        self,
        tokens: Tensor,
        places: Tensor | None = None,
        memory: Memory | None = None,
        only_last: bool | Tensor = False,
    ) -> Tensor:
        """`tokens` (batch, length); `places` of them, (length) or (batch, length), without it from 0 on; `only_last`: scores
        of the last token only, or of the one at that position (1)."""
        if places is None:
            places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens)
        angles = self._angles(places, x.dtype) if self.places is None else None
        if self.places is not None:
            x = x + self.places(places)
        for block in self.blocks:
            if self.checkpointing and self.training:
                x = checkpoint(block, x, angles, memory, use_reentrant=False)
            else:
                x = block(x, angles, memory)
        x = self.norm(x)
        if isinstance(only_last, Tensor):
            x = x.index_select(1, only_last)[:, 0]
        elif only_last:
            x = x[:, -1]
        scores: Tensor = self.head(x)
        return scores

    def _angles(self, places: Tensor, dtype: torch.dtype) -> Angles:
        """Cosine and sine for each place, in a shape that fits (batch, heads, length, width)."""
        width = self.shape.head_width
        each = torch.arange(0, width, 2, device=places.device, dtype=torch.float32) / width
        turned = places.to(torch.float32)[..., None] * ROTARY_BASE**-each
        turned = torch.cat((turned, turned), -1)
        if places.dim() == 2:
            turned = turned[:, None]
        return turned.cos().to(dtype), turned.sin().to(dtype)


class Block(nn.Module):
    """One layer: attention and a feed-forward part, each with a norm before it and added to what came in."""

    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        self.first_norm = norm(shape)
        self.attention = SelfAttention(shape, layer)
        self.second_norm = norm(shape)
        self.feed_forward = Gated(shape) if shape.family == "llama" else FeedForward(shape)
        self.compiled: tuple[Any, Any] | None = None

    def forward(self, x: Tensor, angles: Angles | None, memory: Memory | None) -> Tensor:
        ask, answer = (self.ask, self.answer) if x.shape[1] > 1 else self.for_one_token
        query, key, value = ask(x, angles)
        if memory is None:
            found = attend(query, key, value, causal=True)
        else:
            found = memory.attend(self.attention.layer, query, key, value)
        return answer(x, found)

    def ask(self, x: Tensor, angles: Angles | None) -> tuple[Tensor, Tensor, Tensor]:
        """What comes before attention: each (batch, heads, length, width)."""
        return self.attention.ask(self.first_norm(x), angles)

    def answer(self, x: Tensor, found: Tensor) -> Tensor:
        """What comes after it."""
        x = x + self.attention.answer(found)
        added: Tensor = x + self.feed_forward(self.second_norm(x))
        return added

    @property
    def for_one_token(self) -> tuple[Any, Any]:
        return self.compiled or (self.ask, self.answer)

    def prepare_for_one_token(self) -> None:
        """Few kernels instead of many small ones. Attention stays as it is: with it, the cache would be copied."""
        self.attention.merge()
        if isinstance(self.feed_forward, Gated):
            self.feed_forward.merge()
        self.compiled = torch.compile(self.ask), torch.compile(self.answer)


class SelfAttention(nn.Module):
    """Each token with itself and those before it."""

    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.head_width = shape.head_width
        queries, keys = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
        self.widths = (queries, keys, keys)
        self.inputs: nn.Linear | None = None
        if shape.family == "gpt2":  # one matrix for the three
            self.inputs = nn.Linear(shape.width, queries + 2 * keys)
        else:
            self.query = nn.Linear(shape.width, queries, bias=False)
            self.key = nn.Linear(shape.width, keys, bias=False)
            self.value = nn.Linear(shape.width, keys, bias=False)
        self.output = nn.Linear(queries, shape.width, bias=self.inputs is not None)

    def ask(self, x: Tensor, angles: Angles | None) -> tuple[Tensor, Tensor, Tensor]:
        batch, length, _ = x.shape
        if self.inputs is not None:
            parts = self.inputs(x).split(self.widths, -1)
        else:
            parts = (self.query(x), self.key(x), self.value(x))
        query, key, value = (p.view(batch, length, -1, self.head_width).transpose(1, 2) for p in parts)
        if angles is not None:
            query, key = rotate(query, angles), rotate(key, angles)
        return query, key, value

    def merge(self) -> None:
        """One matrix for queries, keys and values, as inference engines have it."""
        if self.inputs is None:
            self.inputs = merged(self.query, self.key, self.value)
            del self.query, self.key, self.value

    def answer(self, found: Tensor) -> Tensor:
        batch, _, length, _ = found.shape
        result: Tensor = self.output(found.transpose(1, 2).reshape(batch, length, -1))
        return result


class FeedForward(nn.Module):
    """As in GPT-2."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.up = nn.Linear(shape.width, shape.hidden)
        self.down = nn.Linear(shape.hidden, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down(functional.gelu(self.up(x), approximate="tanh"))
        return result


class Gated(nn.Module):
    """SwiGLU, as in Llama."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)
        self.inputs: nn.Linear | None = None

    def forward(self, x: Tensor) -> Tensor:
        gate, up = (self.gate(x), self.up(x)) if self.inputs is None else self.inputs(x).chunk(2, -1)
        result: Tensor = self.down(functional.silu(gate) * up)
        return result

    def merge(self) -> None:
        """One matrix for the gate and what it gates."""
        if self.inputs is None:
            self.inputs = merged(self.gate, self.up)
            del self.gate, self.up


def merged(*parts: nn.Linear) -> nn.Linear:
    """One layer without a bias that gives the outputs of all, side by side."""
    weight = torch.cat([part.weight for part in parts])
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(weight.detach())
    return layer


def norm(shape: Shape) -> nn.Module:
    return nn.RMSNorm(shape.width, eps=1e-5) if shape.family == "llama" else nn.LayerNorm(shape.width, eps=1e-5)


def rotate(x: Tensor, angles: Angles) -> Tensor:
    """Each pair of numbers, half a width apart, turned by its angle."""
    cosine, sine = (a.to(x.dtype) for a in angles)
    left, right = x.chunk(2, -1)
    return x * cosine + torch.cat((-right, left), -1) * sine
