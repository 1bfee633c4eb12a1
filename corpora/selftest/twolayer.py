# labels: name::twolayer author::selftest task::test test_group::selftest,daily license::MIT
"""Two linear layers with a ReLU between them.

Source: made for this corpus.
"""

import torch

from benchprobe import parse

torch.manual_seed(0)
batch_size, in_channels, out_channels = parse(["batch_size", "in_channels", "out_channels"])


class TwoLayerModel(torch.nn.Module):
    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.fc1 = torch.nn.Linear(inputs, hidden)
        self.relu = torch.nn.ReLU()
        self.fc2 = torch.nn.Linear(hidden, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.relu(self.fc1(x)))


model = TwoLayerModel(in_channels, 64, out_channels)
model(torch.rand(batch_size, in_channels))
