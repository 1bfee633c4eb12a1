"""torch without compilation: calls the module."""

from __future__ import annotations

from importlib import import_module
from typing import Optional, Tuple, Union

from benchmodels.runtimes.base import (
    BF16,
    FP8_WEIGHTS,
    FP16,
    FP32,
    INT4_WEIGHTS,
    INT8_DYNAMIC,
    INT8_WEIGHTS,
    MODULE,
    ArtifactFolder,
    Autocast,
    Captured,
    RuntimeBase,
    RuntimeOptions,
    Session,
)
from benchmodels.runtimes.parts import torch_modules, weight_only
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.runtimes.parts.torch_session import session_on
from benchmodels.types import Module


class TorchEager(RuntimeBase):
    """The reference for all others."""

    name = "torch-eager"
    aliases: Tuple[str, ...] = ("torch", "eager")
    kind = MODULE
    accepts = (".pt2",)
    precisions: Tuple[str, ...] = (FP32, BF16, FP16, INT8_DYNAMIC, INT8_WEIGHTS, INT4_WEIGHTS, FP8_WEIGHTS)
    packages = ("torch",)
    forks = True
    applies_autocast = True
    calls_methods = True

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        if options.precision == INT8_DYNAMIC and options.device_type != "cpu":
            return "torch supports dynamic quantisation on the CPU only"
        return torch_modules.unavailable(options) or weight_only.unavailable(options)

    def load(self, what: Union[Captured, ArtifactFolder], options: RuntimeOptions) -> Session:
        module = module_of(what)
        details = torch_modules.set_threads(options)
        torch_modules.forbid_compiling()
        with explaining("load"):
            fit = torch_modules.with_autocast(torch_modules.fitted(module, options), autocast_of(what), options)
        details.update({**torch_modules.device_details(options), **fit.details})
        call = torch_modules.under_autocast(fit.module, autocast_of(what), options)
        return session_on(options)(call, options, fit.precision, details)


def autocast_of(what: Union[Captured, ArtifactFolder]) -> Optional[Autocast]:
    return what.autocast if isinstance(what, Captured) else None


def module_of(what: Union[Captured, ArtifactFolder]) -> Module:
    """The captured module, or the one in a .pt2 file."""
    if isinstance(what, Captured):
        return what.module
    with explaining("load"):
        return import_module("torch.export").load(what.file).module()
