"""The contract of a zoo: which models it has, and how one of them is built with inputs to call it.

Nothing is downloaded: weights are random, inputs are made. Listing a zoo does not import torch. `docs/extend/zoo.md` shows how
to add one.
"""

from __future__ import annotations

import re
from importlib import metadata
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple, runtime_checkable

from benchmodels.types import Module, Value

SPREAD = 0.02  # of random weights
TINY, SMALL, FULL = "tiny", "small", "full"
SCALES = (TINY, SMALL, FULL)
# What a model takes, in one word.
TASKS = (
    *("text", "vision", "audio", "multimodal", "graph", "diffusion", "detection", "segmentation", "video"),
    *("time-series", "other"),
)
# Why an entry is not measured, in words that group the reasons.
NEEDS_PACKAGE = "needs a package"
NEEDS_NETWORK = "needs the network"
NEEDS_DEVICE = "needs a device"
NO_FORWARD = "no standalone forward"
NO_CALL = "no call is known"  # to us
NOT_POSSIBLE = "not possible as asked"  # such as a scale or a size that it does not have
FAULT = "fault of the library"


class ZooEntry(NamedTuple):
    """One model of a zoo. `same_as`: the `zoo:name` of the same model in another zoo, which is measured once.

    `sizes_from`: what its sizes were taken from, if that may differ between machines; it is then part of its identity.
    """

    zoo: str
    name: str
    task: str
    labels: Mapping[str, str] = {}
    same_as: str = ""
    sizes_from: str = ""


class ZooRequest(NamedTuple):
    """Which model to build, and how. `parameters`: sizes that the user gave, such as batch_size or height."""

    name: str
    scale: str = TINY
    parameters: Mapping[str, str] = {}
    seed: int = 0

    def size(self, name: str, usual: int) -> int:
        """A parameter as a whole number, or the usual one if it was not given."""
        text = str(self.parameters.get(name, usual)).strip()
        if not re.fullmatch(r"[1-9]\d{0,8}", text):
            raise NotInZoo(f"--param {name}={text}: write a whole number, 1 or more", NOT_POSSIBLE)
        return int(text)


class ZooModel(NamedTuple):
    """A model in eval mode on the CPU, and a call of it: `module(*args, **kwargs)`. `items`: in one call, if known."""

    module: Module
    args: Tuple[Value, ...] = ()
    kwargs: Dict[str, Value] = {}
    items: Optional[int] = None
    items_from: str = ""
    notes: Tuple[str, ...] = ()


class NotInZoo(Exception):
    """A model that cannot be built or called here: a result, not a crash. `text` is the true reason, for a user.

    `cause` is one of the constants above. `kind` is that of the `failure` event: "unavailable" skips the model, "unsupported"
    and "error" fail it.
    """

    def __init__(self, text: str, cause: str = NOT_POSSIBLE, stage: str = "load", kind: str = "unavailable") -> None:
        super().__init__(text)
        self.text = f"{cause}: {text}"
        self.cause = cause
        self.stage = stage
        self.kind = kind
        self.operator: Optional[str] = None


@runtime_checkable
class Zoo(Protocol):
    """A library with many models. Its class takes no arguments, and its module imports neither torch nor the library."""

    name: str  # as in NAME:model
    packages: Sequence[
        str
    ]  # what `install --zoo NAME` installs, as pip writes them; torch comes with benchwright[torch]

    def version(self) -> str:
        """Of the installed library; empty if it is not installed."""

    def entries(self) -> Iterable[ZooEntry]:
        """Every model, from the library's own registry. Called only if it is installed."""

    def build(self, request: ZooRequest) -> ZooModel:
        """The model and its call; NotInZoo if there is none. Random numbers are seeded with `request.seed` before."""


def version_of(package: str) -> str:
    """Of an installed package; empty if it is not installed. Does not import it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def fill_zeros(torch: Any, model: Any) -> None:
    """Weights that libraries start with as zero, such as those of a last layer or a router, get random numbers: outputs that
    are zero everywhere are right on any runtime, and experts that are as good as each other are chosen by rounding."""
    for weight in model.parameters():
        if weight.ndim > 1 and weight.is_floating_point() and not weight.any():
            torch.nn.init.normal_(weight, std=SPREAD)
