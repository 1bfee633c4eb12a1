"""How much arithmetic a transformer takes, by formula, and what it must read. A multiply-add is two operations; only matrix
products count.

Attention is taken as the plain one: every query meets every key (the masked half of a causal one is not taken off, as is
usual), and nothing is computed a second time. A kernel that skips or repeats some of it, or checkpointing, does not change
what the result needs, so figures of several ways to compute the same can be compared.
"""

from __future__ import annotations

from workload.models.language.shapes import Shape, decoder_parameters


def layers(shape: Shape, keys: float) -> float:
    """One token through all layers, each query of it with `keys` keys."""
    return shape.layers * (2 * shape.layer_weights + attention(shape, keys))


def attention(shape: Shape, keys: float) -> float:
    """One token in one layer: scores with all keys, and the values weighted by them."""
    return 4 * keys * shape.heads * shape.head_width


def vocabulary(shape: Shape) -> int:
    """One token into a score for each token of the vocabulary."""
    return 2 * shape.width * shape.vocabulary


def decoder_training(shape: Shape, length: int) -> float:
    """Per token, forward and backward. The embeddings learn, so each product has a gradient for both of its sides."""
    return 3 * (layers(shape, length) + vocabulary(shape))


def masked_training(shape: Shape, length: int, predictions: int) -> float:
    """Per sequence, forward and backward, with `predictions` places put through the head."""
    head = 2 * shape.width * shape.width + vocabulary(shape)
    return 3 * (length * layers(shape, length) + predictions * head)


def prefill(shape: Shape, length: int) -> float:
    """Per prompt of `length` tokens: of the last one alone the scores are taken."""
    return length * layers(shape, length) + vocabulary(shape)


def decode(shape: Shape, keys: float) -> float:
    """Per token that is generated with `keys` keys, its own included."""
    return layers(shape, keys) + vocabulary(shape)


def weights_read(shape: Shape, rows: int) -> int:
    """Numbers that a decoder reads in a pass over `rows` tokens: of tables that are only looked up, at most a row for each."""
    table = shape.vocabulary * shape.width
    places = 0 if shape.family == "llama" else shape.positions * shape.width
    looked_up = shape.width * (min(rows, shape.vocabulary) + (min(rows, shape.positions) if places else 0))
    return decoder_parameters(shape) - places - (0 if shape.tied else table) + looked_up


def kept(shape: Shape, tokens: int) -> int:
    """Numbers that the cache holds of so many tokens: their keys and values in every layer."""
    return 2 * shape.layers * shape.kv_heads * shape.head_width * tokens
