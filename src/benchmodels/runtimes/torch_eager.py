"""torch as it is written: the module is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from benchmodels.runtimes import torch_modules
from benchmodels.runtimes.base import (
    BF16,
    FP16,
    FP32,
    INT8_DYNAMIC,
    MODULE,
    ArtifactFolder,
    Captured,
    Options,
    Session,
    Steps,
    Unsupported,
    module_versions,
)
from benchmodels.runtimes.problems import explaining
from benchmodels.runtimes.torch_session import session_on


class TorchEager:
    """The reference of all others."""

    name = "torch-eager"
    kind = MODULE
    accepts: Tuple[str, ...] = (".pt2",)
    precisions: Tuple[str, ...] = (FP32, BF16, FP16, INT8_DYNAMIC)

    def unavailable(self, options: Options) -> Optional[str]:
        if options.precision == INT8_DYNAMIC and options.device_type != "cpu":
            return "torch's dynamic quantisation is for the CPU only"
        return torch_modules.unavailable(options)

    def version(self) -> str:
        return self.versions().get("torch", "unknown")

    def versions(self) -> Dict[str, str]:
        return module_versions(["torch"])

    def depends_on(self, options: Options) -> Dict[str, Any]:
        return {}

    def build(self, captured: Captured, folder: str, options: Options, steps: Steps) -> None:
        raise Unsupported("load", f"{self.name} is given the module itself and builds nothing")

    def build_file(
        self, path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        raise Unsupported("load", f"{self.name} is given the module itself and builds nothing")

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        module = module_of(what)
        details = torch_modules.set_threads(options)
        torch_modules.forbid_compiling()
        with explaining("load"):
            fit = torch_modules.fitted(module, options)
        details.update({**torch_modules.device_details(options), **fit.details})
        session: Session = session_on(options)(fit.module, options, fit.precision, details)
        return session


def module_of(what: Union[Captured, ArtifactFolder]) -> Any:
    """The module that was captured, or that a .pt2 file holds."""
    if isinstance(what, Captured):
        return what.module
    export: Any = import_module("torch.export")
    with explaining("load"):
        return export.load(what.file).module()
