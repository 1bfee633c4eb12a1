"""torch with images in the order that many kernels prefer: `--runtime torch-channels-last`."""

from __future__ import annotations

from importlib import import_module

from benchmodels.runtimes.base import ArtifactFolder, Captured, RuntimeOptions, Session
from benchmodels.runtimes.torch_eager import TorchEager, module_of


class ChannelsLast(TorchEager):
    """As torch-eager, with the weights of convolutions in channels-last order."""

    name = "torch-channels-last"
    aliases = ("nhwc",)

    def load(self, what: Captured | ArtifactFolder, options: RuntimeOptions) -> Session:
        torch = import_module("torch")  # here: most processes that list runtimes do not need it
        module_of(what).to(memory_format=torch.channels_last)
        return super().load(what, options)
