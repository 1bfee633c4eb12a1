"""A model of transformers at a scale: the smallest sizes at which it can be built and called."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from importlib import import_module
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from benchmodels.zoo.base import (
    FAULT,
    FULL,
    NEEDS_PACKAGE,
    NO_FORWARD,
    NOT_POSSIBLE,
    SMALL,
    TINY,
    NotInZoo,
    ZooModel,
    ZooRequest,
)
from benchmodels.zoo.transformers import sizes
from benchmodels.zoo.transformers.catalogue import Architecture
from benchmodels.zoo.transformers.configs import complete, configs_in, smaller, widest
from benchmodels.zoo.transformers.inputs import ModelArguments, arguments
from benchmodels.zoo.transformers.multimodal import with_placeholders
from benchmodels.zoo.transformers.outputs import repaired
from benchmodels.zoo.transformers.sizes import SizeTarget
from benchmodels.zoo.transformers.tables import NEEDED

NOT_OF_SIZE = (TypeError, AttributeError, NotImplementedError, NameError)  # other sizes would not help
WIDEST = {TINY: 1280, SMALL: 4096}  # wider ones are not tried again
WIDE = 2048  # models from this width on are divided by twice as much
NO_CALL = "no sizes and inputs found with which it can be called"
ATTENTION = "eager"  # of tiny models, for exporters that do not know the mask of the usual one
EXPERTS = "batched_mm"  # a product that exporters know; the usual one takes only some sizes


def targets(config: Any, scale: str) -> List[SizeTarget]:
    """The sizes to try, in this order, until the model can be built and called."""
    if scale == SMALL:
        return [sizes.SMALL._replace(divisor=divisor) for divisor in (4, 2, 1)]
    divisor = 16 if widest(config) >= WIDE else 8
    tries = ((divisor, 4), (divisor // 2, 4), (divisor, 8), (divisor // 2, None), (divisor // 4, 8), (1, None))
    return [sizes.TINY._replace(divisor=each, grid=grid) for each, grid in tries]


def build(architecture: Architecture, head: str, request: ZooRequest) -> ZooModel:
    """The model and its call; NotInZoo with the reason if there is none."""
    return from_config(*_classes(architecture, head), request)


def config_of(kind: Any, sizes: Mapping[str, Any]) -> Any:
    """The configuration of a class, with these sizes instead of its defaults."""
    made = kind.config_class
    return complete(made(**{**NEEDED.get(made.model_type, {}), **sizes}))


def from_config(kind: Any, config: Any, request: ZooRequest) -> ZooModel:
    """A model of that class, as its configuration says at full scale."""
    _check_forward(kind)
    if request.scale == FULL:
        return _attempt(kind, config, request, False, False)
    try:
        return _first_that_works(kind, config, request)
    except NotInZoo:
        raise
    except Exception as error:
        raise _reason(kind, config, error) from error


def _check_forward(kind: Any) -> None:
    """NotInZoo if it cannot be called with tensors."""
    if "forward" not in {
        name for part in kind.__mro__ if part.__module__.startswith("transformers") for name in vars(part)
    }:
        raise NotInZoo(
            f"{kind.__name__} has no forward; it is used through other methods, such as generate()", NO_FORWARD
        )
    if "inference_session" in arguments(kind.forward):
        raise NotInZoo(f"{kind.__name__} takes a session of a video that is being tracked, no tensors", NO_FORWARD)


def _reason(kind: Any, config: Any, error: Exception) -> NotInZoo:
    """Why no call works: the library cannot build it from its own defaults, or no valid call of it is known here."""
    torch: Any = import_module("torch")
    try:
        with _quiet(), torch.device("meta"):
            kind(config)
    except ImportError as missing:
        return _missing(missing)
    except Exception as fault:  # with the sizes that the library chose
        return NotInZoo(
            f"{kind.__name__} cannot be built from the defaults of its configuration: {_text(fault)}", FAULT
        )
    return NotInZoo(f"{kind.__name__}: {_text(error)}", NO_CALL, kind="error")


def _first_that_works(kind: Any, config: Any, request: ZooRequest) -> ZooModel:
    """With the first sizes at which it can be built and called, else with text alone; else the first error with all inputs."""
    failed: List[Exception] = []
    for is_text in (False, True):
        for place, target in enumerate(targets(config, request.scale)):
            try:
                made = smaller(config, target)
                if place and widest(made) > WIDEST[request.scale]:
                    continue
                return _attempt(kind, made, request, True, is_text)
            except NotInZoo:
                raise
            except Exception as error:  # then with other sizes
                failed.append(error)
                if isinstance(error, NOT_OF_SIZE):
                    break
        if not _takes_text_and_more(kind):
            break
    raise failed[0]


def _takes_text_and_more(kind: Any) -> bool:
    kinds = getattr(kind, "input_modalities", "text")
    return not isinstance(kinds, str) and "text" in kinds and len(kinds) > 1


def _classes(architecture: Architecture, head: str) -> Tuple[Any, Any]:
    """The class of the model, and the configuration that its class has by default."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    library: Any = import_module("transformers")
    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    name = architecture.classes[head]
    try:
        kind = getattr(library, name)
    except ImportError as error:
        raise _missing(error) from error
    except AttributeError as error:
        raise NotInZoo(f"its registry names {name}, which it does not have", FAULT) from error
    try:
        config = getattr(library, architecture.config)(**NEEDED.get(architecture.model_type, {}))
    except ImportError as error:
        raise _missing(error) from error
    except Exception as error:  # a configuration without defaults of its own
        raise NotInZoo(f"{architecture.config} cannot be made without values: {_text(error)}", NOT_POSSIBLE) from error
    if type(kind).__name__ == "DummyObject":
        needed = ", ".join(getattr(kind, "_backends", ()))
        raise NotInZoo(f"{name} needs {needed}", NEEDS_PACKAGE)
    return kind, complete(_of_class(kind, config))


def _of_class(kind: Any, config: Any) -> Any:
    """The configuration, or the one inside it that the class takes: the library's registry names some with that of a whole model."""
    taken = getattr(kind, "config_class", None)
    inside = [each for each in configs_in(config) if taken is not None and isinstance(each, taken)]
    return inside[0] if inside else config


def _missing(error: ImportError) -> NotInZoo:
    """A package that is not installed, or else a fault of the library, which reports each problem of an import as this one."""
    cause = error.__cause__
    absent = re.search(r"No module named '(\w+)", str(cause or error))
    if absent and not absent.group(1).startswith("transformers"):
        return NotInZoo(f"it needs {absent.group(1)}", NEEDS_PACKAGE)
    needed = re.match(r"\s*(\w+) requires the (\w+) library", str(error))
    if needed:
        return NotInZoo(f"{needed.group(1)} needs {needed.group(2)}", NEEDS_PACKAGE)
    return NotInZoo(_text(cause or error), FAULT)


def _attempt(kind: Any, config: Any, request: ZooRequest, is_tried: bool, is_text: bool) -> ZooModel:
    """`is_tried`: whether it is called once. `is_text`: with text alone."""
    torch: Any = import_module("torch")
    torch.manual_seed(request.seed)
    with _quiet(), torch.no_grad():
        try:
            if is_tried:
                config._experts_implementation = EXPERTS
            if request.scale == TINY:
                config._attn_implementation = ATTENTION
            model = kind(config).eval().float()
        except ImportError as error:
            raise _missing(error) from error
        torch.manual_seed(request.seed)
        inputs = ModelArguments(torch, model, request)
        call = (
            _call(inputs, inputs.without_media())
            if is_text
            else with_placeholders(inputs, _call(inputs, inputs.names()))
        )
        if is_tried:
            repaired(torch, model, call)
    notes = ("called with text alone",) if is_text else ()
    return ZooModel(model, (), call, inputs.sizes.batch, "the batch size", notes)


def _call(inputs: ModelArguments, names: List[str]) -> Dict[str, Any]:
    call: Dict[str, Any] = {}
    for name in names:
        made = inputs.made(name)
        if made is not None:
            call[name] = made
    if "use_cache" in inputs.arguments:
        call["use_cache"] = False
    return call


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's warnings about weights and versions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _text(error: BaseException) -> str:
    """The error in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:300]}" if lines else type(error).__name__
