"""The shapes of public language models, their parameters, and smaller ones that are built alike."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Shape:
    """What there is to know to build one. `kv_heads` fewer than `heads`: several queries share one key."""

    family: str  # bert, gpt2 or llama
    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head_width: int
    hidden: int  # inside the feed-forward part
    positions: int  # the longest sequence
    tied: bool = True  # the matrix of the embeddings is that of the last layer, too

    @property
    def attention_weights(self) -> int:
        """Of the matrices for queries, keys, values and the output, in one layer."""
        return self.width * self.head_width * (2 * self.heads + 2 * self.kv_heads)

    @property
    def feed_forward_weights(self) -> int:
        return (3 if self.family == "llama" else 2) * self.width * self.hidden

    @property
    def layer_weights(self) -> int:
        return self.attention_weights + self.feed_forward_weights


def _bert(width: int, layers: int, heads: int) -> Shape:
    return Shape("bert", 30_522, width, layers, heads, heads, width // heads, 4 * width, 512)


def _gpt2(width: int, layers: int, heads: int) -> Shape:
    return Shape("gpt2", 50_257, width, layers, heads, heads, width // heads, 4 * width, 1024)


def _llama(width: int, layers: int, heads: int, head_width: int, hidden: int, tied: bool) -> Shape:
    return Shape("llama", 128_256, width, layers, heads, 8, head_width, hidden, 131_072, tied)


PUBLIC = {
    "bert-base": _bert(768, 12, 12),
    "bert-large": _bert(1024, 24, 16),
    "minilm-l6": _bert(384, 6, 12),
    "gpt2": _gpt2(768, 12, 12),
    "gpt2-medium": _gpt2(1024, 24, 16),
    "gpt2-large": _gpt2(1280, 36, 20),
    "gpt2-xl": _gpt2(1600, 48, 25),
    "llama-1b": _llama(2048, 16, 32, 64, 8192, tied=True),  # Llama 3.2
    "llama-3b": _llama(3072, 28, 24, 128, 8192, tied=True),  # Llama 3.2
    "llama-8b": _llama(4096, 32, 32, 128, 14_336, tied=False),  # Llama 3.1
}
# As published: of the BERTs as masked language models, of MiniLM as an encoder with its pooler.
PARAMETERS = {
    "bert-base": 109_514_298,
    "bert-large": 335_174_458,
    "minilm-l6": 22_713_216,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-1b": 1_235_814_400,
    "llama-3b": 3_212_749_824,
    "llama-8b": 8_030_261_248,
}
DECODERS = tuple(name for name, shape in PUBLIC.items() if shape.family != "bert")
LLAMAS = tuple(name for name, shape in PUBLIC.items() if shape.family == "llama")
# (vocabulary, width, layers, heads, longest sequence)
_SMALLER = {"tiny": (512, 64, 2, 4, 256), "small": (8192, 256, 4, 8, 1024)}


def shape_of(model: str, size: str) -> Shape:
    """The public shape at size `full`; at others a small one of the same family."""
    public = PUBLIC[model]
    if size == "full":
        return public
    vocabulary, width, layers, heads, positions = _SMALLER[size]
    return replace(
        public,
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        heads=heads,
        kv_heads=heads if public.kv_heads == public.heads else heads // 2,
        head_width=width // heads,
        hidden=4 * width,
        positions=positions,
    )


def published(model: str, size: str) -> int | None:
    """How many parameters the public model has, where this is the public one."""
    return PARAMETERS[model] if size == "full" else None


def decoder_parameters(shape: Shape) -> int:
    """By the shape alone, without building it."""
    width, embeddings = shape.width, shape.vocabulary * shape.width
    if shape.family == "llama":  # no biases, and norms without a shift
        total = embeddings + shape.layers * (shape.layer_weights + 2 * width) + width
        return total if shape.tied else total + embeddings
    biases = 4 * width + shape.hidden + width  # queries, keys, values and output; feed-forward
    layer = shape.layer_weights + biases + 4 * width
    return embeddings + shape.positions * width + shape.layers * layer + 2 * width


def encoder_parameters(shape: Shape, *, pooler: bool = False, masked_head: bool = False) -> int:
    """By the shape alone: embeddings of tokens, positions and two kinds of sentence; layers; what comes on top."""
    width = shape.width
    square = width * width + width
    total = (shape.vocabulary + shape.positions + 2) * width + 2 * width
    total += shape.layers * (shape.layer_weights + 4 * width + shape.hidden + width + 4 * width)
    total += square if pooler else 0
    return total + (square + 2 * width + shape.vocabulary if masked_head else 0)
