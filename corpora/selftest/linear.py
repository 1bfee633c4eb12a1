# labels: name::linear author::selftest task::test test_group::selftest,daily license::MIT
"""One linear layer, the smallest model there is: to see that everything works.

Source: made for this corpus.
"""

import torch

from benchprobe import parse

torch.manual_seed(0)
batch_size, in_channels, out_channels = parse(["batch_size", "in_channels", "out_channels"])


class LinearModel(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


model = LinearModel(in_channels, out_channels)
model(torch.rand(batch_size, in_channels))
