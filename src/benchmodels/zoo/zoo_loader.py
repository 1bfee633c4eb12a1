"""A model of a zoo, built in this process as its settings say, with what is reported about it."""

from __future__ import annotations

import os
import random
from importlib import import_module
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Set

from benchmodels.failures import failure_of
from benchmodels.identity.signatures import positional_names, signature_of
from benchmodels.measure.batch import Batch
from benchmodels.pytorch.models import facts_of
from benchmodels.runtimes.base import Captured
from benchmodels.settings import ModelSettings
from benchmodels.types import Details
from benchmodels.zoo.base import FAULT, NEEDS_PACKAGE, NOT_POSSIBLE, SCALES, NotInZoo, ZooModel, ZooRequest
from benchmodels.zoo.downscale import TooLarge, refuse_large, too_large
from benchmodels.zoo.registry import UnknownZoo, zoo_named

MOST_INPUTS = 64
# Libraries that would ask the network for files that they do not have; a zoo that needs it says so itself.
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}


class OpenedModel(NamedTuple):
    """A zoo's model as if a script had called it. `description`: the keys of its `model` event."""

    captured: Captured
    batch: Optional[Batch]
    description: Details
    notes: Sequence[str]


def open_zoo_model(settings: ModelSettings) -> OpenedModel:
    """Builds it with seeded random numbers; NotInZoo if it cannot be built or called here, with the reason."""
    zoo_name, _, name = (settings.zoo or "").partition(":")
    try:
        zoo = zoo_named(zoo_name)
    except UnknownZoo as error:
        raise NotInZoo(str(error), NEEDS_PACKAGE) from None
    if not zoo.version():
        raise NotInZoo(
            f"{zoo_name} is not installed; install it with 'benchwright install --zoo {zoo_name}'", NEEDS_PACKAGE
        )
    if settings.scale not in SCALES:
        raise NotInZoo(f"unknown scale '{settings.scale}'; use one of {', '.join(SCALES)}", NOT_POSSIBLE)
    for variable, value in OFFLINE.items():
        os.environ.setdefault(variable, value)
    _seed(settings.seed or 0)
    parameters = _Parameters(settings.zoo_parameters)
    request = ZooRequest(name, settings.scale, parameters, settings.seed or 0)
    try:
        made = zoo.build(request)
        refuse_large(request, made.module)
    except (NotInZoo, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except TooLarge as error:
        raise too_large([error.parameters]) from None
    except ImportError as error:
        raise NotInZoo(str(error), NEEDS_PACKAGE) from error
    except Exception as error:
        raise NotInZoo(failure_of(error).text, FAULT, kind=failure_of(error).kind) from error
    if unknown := [name for name in parameters if name not in parameters.asked]:
        takes = f"it takes {', '.join(sorted(parameters.asked))}" if parameters.asked else "it takes none"
        raise NotInZoo(f"it takes no parameter '{unknown[0]}'; {takes}", NOT_POSSIBLE)
    return opened(made, settings.identity)


class _Parameters(Dict[str, str]):
    """`asked`: the names that a zoo looked for, given or not. What it never looked for had no effect."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.asked: Set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)


def opened(made: ZooModel, identity: str) -> OpenedModel:
    module, args, kwargs = made.module, made.args, made.kwargs
    names = positional_names(module.forward, len(args))
    signature = signature_of(module.forward, args, kwargs)
    batch = None if made.items is None else Batch(made.items, made.items_from or "as the zoo says")
    inputs = [leaf.as_dict() for leaf in signature.leaves][:MOST_INPUTS]
    description: Details = {"identity": identity, **facts_of(module), "inputs": inputs, "mode": "inference"}
    return OpenedModel(Captured(module, args, kwargs, names, identity, None, signature), batch, description, made.notes)


def _seed(seed: int) -> None:
    torch: Any = import_module("torch")
    random.seed(seed)
    torch.manual_seed(seed)
    try:
        import numpy
    except ImportError:  # no zoo that needs it gets this far
        return
    numpy.random.seed(seed % 2**32)
