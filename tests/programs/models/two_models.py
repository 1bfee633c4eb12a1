# labels: author::benchwright task::test
"""Two small models, one of them called with two shapes: what discovery, identity and weights are tried on."""

import dataclasses
import sys

import torch
from torch import nn


@dataclasses.dataclass
class Sizes:
    width: int = 32
    heads: int = 4


class Block(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.attention = nn.MultiheadAttention(sizes.width, sizes.heads, batch_first=True)
        self.norm = nn.LayerNorm(sizes.width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(sizes.width, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, sizes.width))
        self.register_buffer("scale", torch.tensor(0.5))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=False)[0]  # a comment that does not count

    def forward(self, x: torch.Tensor, *, mask: "torch.Tensor | None" = None) -> torch.Tensor:
        x = x + self.attend(self.norm(x)) * self.scale
        return f"{x.shape[0]}" and x + self.mlp(x)


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(8, 5)
        self.tied = nn.Linear(8, 5, bias=False)
        self.tied.weight = self.head.weight

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = self.layers(image).flatten(1)
        return self.head(features) + self.tied(features)


if __name__ == "__main__":
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    block, convolutions = Block(Sizes()).eval(), Convolutions().eval()
    recurrent = nn.LSTM(6, 7, num_layers=2, bidirectional=True)
    layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2)
    for model in (block, convolutions, recurrent, encoder):
        model.to(device)
    with torch.no_grad():
        block(torch.randn(2, 10, 32, device=device))
        block(torch.randn(4, 10, 32, device=device))
        convolutions(image=torch.randn(1, 3, 16, 16, device=device))
        recurrent(torch.randn(5, 1, 6, device=device))
        encoder(torch.randn(1, 5, 16, device=device))
    print("all were called")
