"""The settings of `python -m benchmodels`, from the part "models" of BENCHPROBE_CONFIG."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from benchmodels.runtimes.base import RuntimeOptions
from benchmodels.types import Details
from benchprobe.config import VARIABLE

DISCOVER, MEASURE, BUILD, TRAIN = "discover", "measure", "build", "train"
MODES = (DISCOVER, MEASURE, BUILD, TRAIN)
PART = "models"
FOREVER_S = 1e9
BUILT_NOW, BUILT_BEFORE = "now", "before"
BUILT, EXPORTED, AHEAD = "build", "export", "ahead"


class ModelSettings(NamedTuple):
    """The keys of the part "models", with those of `options` among them. `seed` None: random numbers are not seeded."""

    mode: str = DISCOVER
    identity: str = ""  # of the model to measure or build
    max_depth: int = 0
    max_shapes: int = 4
    count_work: bool = False
    digest_weights: bool = False
    weights_in_identity: bool = False  # whether other weights make another model
    seed: Optional[int] = 0
    file: Optional[str] = None
    shapes: Mapping[str, Sequence[int]] = {}
    types: Mapping[str, str] = {}  # of inputs of a model file, as a specification names them
    input_files: Mapping[str, str] = {}  # input → the file that holds it, instead of a random one
    goldens: Mapping[str, str] = {}  # output → the file that holds what it should be
    tolerance: Mapping[str, float] = {}  # of those: error → the worst that passes
    runtime: str = "torch-eager"
    options: RuntimeOptions = RuntimeOptions()
    builds: str = ""
    built_by_caller: str = ""  # BUILT_NOW or BUILT_BEFORE: another process holds the model, and has built it
    build_name: str = ""  # what people call its build, and its labels: see `build.labels`
    labels: Mapping[str, str] = {}
    rebuild: str = "if_needed"
    lean: bool = False  # the build is removed once it was measured
    stops_after: str = ""  # BUILT, EXPORTED, or AHEAD of the process that measures: of an artifact, nothing is measured
    build_timeout: float = 600.0  # of each step, in seconds
    timeout_s: Optional[float] = None  # of the launch
    without_reference: bool = False  # of a build: computing one takes too long
    profile: bool = False
    profile_calls: int = 20
    items: Optional[int] = None  # per call, if known
    items_from: Optional[str] = None  # the evidence
    varying: Sequence[Sequence[Any]] = ()  # dimensions in which calls differ: see `batch`
    trust: bool = False  # a model file may run its own code when loaded
    weights_digest: Optional[str] = None
    content_digest: Optional[str] = None
    stop_grace_s: float = 30.0  # how long a script may go on after its training was stopped early
    zoo: Optional[str] = None  # such as timm:resnet18
    scale: str = "tiny"
    zoo_parameters: Mapping[str, str] = {}  # such as batch_size: see `zoo.base.ZooRequest`

    def without_limit(self) -> ModelSettings:
        """For the process of a caller: a step of a build cannot be ended there without ending the caller."""
        return self._replace(build_timeout=FOREVER_S)

    @property
    def check_timeout_s(self) -> float:
        """For checking what was measured: its own limit, as long as that of the launch."""
        return self.build_timeout if self.timeout_s is None else min(self.build_timeout, self.timeout_s)

    @property
    def reference_timeout_s(self) -> float:
        """For the reference of a build, which comes first and must leave time for the rest of the launch."""
        return self.build_timeout if self.timeout_s is None else min(self.build_timeout, self.timeout_s / 2)


# A configuration is flat: what a runtime is given stands beside the rest.
KEYS: Tuple[str, ...] = tuple(
    name for field in ModelSettings._fields for name in (RuntimeOptions._fields if field == "options" else (field,))
)


def settings_from(raw: Mapping[str, Any]) -> ModelSettings:
    """The settings in a decoded configuration; ValueError says what is wrong with it."""
    if not isinstance(raw, Mapping):
        raise ValueError(f'"{PART}" must be an object')
    unknown = sorted(set(raw) - set(KEYS))
    if unknown:
        raise ValueError(f'"{PART}" has no {", ".join(map(repr, unknown))}')
    for name in ("max_depth", "max_shapes", "streams", "profile_calls"):
        value = raw.get(name, 1)
        if type(value) is not int or value < 0:
            raise ValueError(f'"{name}" must be a whole number, not {value!r}')
    options = RuntimeOptions(**{key: raw[key] for key in RuntimeOptions._fields if key in raw})
    options = options._replace(threads=raw.get("threads") or _usable_cores(), streams=max(1, options.streams))
    rest: Dict[str, Any] = {key: raw[key] for key in ModelSettings._fields if key in raw}
    settings = ModelSettings(**rest, options=options)
    if settings.mode not in MODES:
        raise ValueError(f'"mode" is one of {", ".join(MODES)}, not {settings.mode!r}')
    if settings.mode in (MEASURE, BUILD) and not settings.identity and not settings.file and not settings.zoo:
        raise ValueError(f'"identity", "file" or "zoo" must say what to {settings.mode}')
    return settings


def read_settings(environment: Mapping[str, str] = os.environ) -> ModelSettings:
    """From BENCHPROBE_CONFIG; ValueError if it is missing or wrong."""
    text = environment.get(VARIABLE)
    if not text:
        raise ValueError(f"{VARIABLE} is not set; this module is started by benchwright")
    config = json.loads(text)
    if not isinstance(config, dict) or PART not in config:
        raise ValueError(f'{VARIABLE} has no "{PART}"')
    return settings_from(config[PART])


def as_config(settings: ModelSettings) -> Details:
    """These settings as the part "models", without defaults."""
    usual, flat = ({**s.options._asdict(), **s._asdict()} for s in (ModelSettings(), settings))
    return {key: flat[key] for key in KEYS if flat[key] != usual[key] or key == "threads"}


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
