"""Encoders as BERT: every token sees all of its sequence."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from workload.models.language.attention import attend, initialise
from workload.models.language.shapes import Shape

EPSILON = 1e-12


class Encoder(nn.Module):
    """What BERT makes of each token. The pooler is there where the public model has one; nothing here asks it."""

    def __init__(self, shape: Shape, dropout: float = 0.0, pooler: bool = False) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.places = nn.Embedding(shape.positions, shape.width)
        self.kinds = nn.Embedding(2, shape.width)  # of the first and the second sentence
        self.norm = nn.LayerNorm(shape.width, eps=EPSILON)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.layers))
        self.pooler = nn.Linear(shape.width, shape.width) if pooler else None
        initialise(self)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """`tokens` (batch, length), all of the first kind; `mask` (batch, 1, 1, length) is true for those to be looked at."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.places(places) + self.kinds(torch.zeros_like(tokens))
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Layer(nn.Module):
    """Attention and a feed-forward part, each added to what came in, with a norm after it."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.heads = shape.heads
        self.rate = dropout
        self.query = nn.Linear(shape.width, shape.width)
        self.key = nn.Linear(shape.width, shape.width)
        self.value = nn.Linear(shape.width, shape.width)
        self.output = nn.Linear(shape.width, shape.width)
        self.first_norm = nn.LayerNorm(shape.width, eps=EPSILON)
        self.up = nn.Linear(shape.width, shape.hidden)
        self.down = nn.Linear(shape.hidden, shape.width)
        self.second_norm = nn.LayerNorm(shape.width, eps=EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, width = x.shape
        parts = (self.query(x), self.key(x), self.value(x))
        query, key, value = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        found = attend(query, key, value, mask, dropout=self.rate if self.training else 0.0)
        x = self.first_norm(x + self.dropout(self.output(found.transpose(1, 2).reshape(batch, length, width))))
        result: Tensor = self.second_norm(x + self.dropout(self.down(functional.gelu(self.up(x)))))
        return result


class MaskedLanguageModel(nn.Module):
    """BERT with the head that says which token stood where one was hidden; the last matrix is that of the embeddings."""

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder = Encoder(shape, dropout)
        self.dense = nn.Linear(shape.width, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=EPSILON)
        self.scores = nn.Linear(shape.width, shape.vocabulary)
        initialise(self)
        self.scores.weight = self.encoder.tokens.weight

    def forward(self, tokens: Tensor, places: Tensor | None = None) -> Tensor:
        """Scores at all places; or at `places` (batch, several) alone."""
        x = self.encoder(tokens)
        if places is not None:
            x = x.gather(1, places[..., None].expand(-1, -1, x.shape[-1]))
        result: Tensor = self.scores(self.norm(functional.gelu(self.dense(x))))
        return result
