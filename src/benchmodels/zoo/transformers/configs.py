"""Smaller configurations of the same architecture. Call these once transformers is imported."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import re
from importlib import import_module
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from benchmodels.types import Details, Value
from benchmodels.zoo.transformers import sizes
from benchmodels.zoo.transformers.sizes import SizeTarget, Tokens, each, fewer, width
from benchmodels.zoo.transformers.tables import EVERY, KEPT, NEEDED, OUTPUT_WIDTHS, TINY_FIELDS

# Lists that name layers by number.
INDEXES = re.compile(r"(_indexes|_indices|_idxs|hook_ids|extract_layers|_target_layers|window_block_indices)$")
MAIN_DEPTH = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "depth", "decoder_layers")
# The most of something at scale tiny.
CAPS = {
    "first_k_dense_replace": 1,
    "num_kv_shared_layers": 0,
    "num_queries": 10,
    "two_stage_num_proposals": 10,
    "num_denoising": 10,
    "max_source_positions": 64,
    "sliding_window": 64,
    "chunk_size": 16,  # of state-space models, which fill up the last chunk
    "mamba_chunk_size": 16,
    "mamba_d_state": 16,
    "ssm_state_size": 16,
    "state_size": 16,
}
NOT_FIELDS = ("transformers_version", "id2label", "label2id", "architectures", "dtype", "stage_names")


def is_config(value: Value) -> bool:
    return hasattr(value, "model_type") and hasattr(value, "to_dict")


def configs_in(config: Any) -> Iterator[Any]:
    """The configuration and all inside it."""
    yield config
    for value in vars(config).values():
        if is_config(value):
            yield from configs_in(value)


def smaller(config: Any, target: SizeTarget) -> Any:
    """A configuration of the same class with smaller sizes."""
    tokens = Tokens(target)
    for each_config in configs_in(config):
        for name, value in vars(each_config).items():
            if name.endswith("vocab_size") and isinstance(value, int):
                tokens.size(value)
    return _Shrinking(target, tokens, _vocabularies(config)).config(config)


def _vocabularies(config: Any) -> List[int]:
    found = [
        value
        for inside in configs_in(config)
        for name, value in vars(inside).items()
        if name == "vocab_size" and isinstance(value, int)
    ]
    return sorted(set(found), reverse=True)


class _Shrinking:
    def __init__(self, target: SizeTarget, tokens: Tokens, vocabularies: List[int]) -> None:
        self._target = target
        self._tokens = tokens
        self._vocabularies = vocabularies

    def config(self, config: Any) -> Any:
        kind = type(config)
        usual, defaults, fields = _usual(kind), _defaults(kind), _fields_by_name(kind)
        old_layers, layers = self._layers(config)
        changes: Details = {}
        for name, value in vars(config).items():
            if name.startswith("_") or name in NOT_FIELDS:
                continue
            if is_config(value):
                changes[name] = self.config(_own_backbone(value))
                continue
            differs = name not in usual or usual[name] != value  # by the configuration around it
            if not differs and (name not in defaults or defaults[name] is None):
                continue  # it follows from other fields
            new = self._field(config, name, value, old_layers, layers)
            if differs or new != value:
                changes[fields.get(name, name)] = new
        changes.update(self._stages(config, old_layers, layers))
        _link(changes)
        _keep_heads_even(config, changes)
        if self._target.layers is not None:
            changes.update(_known(TINY_FIELDS.get(config.model_type, {}), self._target))
        return _with_sections(config, changes)

    def _layers(self, config: Any) -> Tuple[int, int]:
        """The number of layers now and then: enough for one of each kind, and for each one that is named by number."""
        old = next((value for name in MAIN_DEPTH for value in [vars(config).get(name)] if isinstance(value, int)), 0)
        if not old:
            return 0, 0
        new = fewer(old, self._target.layers)
        for name, value in vars(config).items():
            if not isinstance(value, (list, tuple)) or not value:
                continue
            if len(value) == old and isinstance(value[0], (str, int)):
                new = max(new, sizes.layers_for(value, new))
            elif INDEXES.search(name) and max(_numbers(value), default=0) < old + 1:
                new = max(new, len(value))
        return old, min(new, old)

    def _field(self, config: Any, name: str, value: Any, old_layers: int, layers: int) -> Any:
        target = self._target
        kept = KEPT.get(config.model_type, ())
        if name in kept:
            return value
        if (
            isinstance(value, (list, tuple))
            and old_layers > 4
            and len(value) == old_layers
            and "depths" not in vars(config)
        ):
            return type(value)(value[:layers])
        if isinstance(value, (list, tuple)) and INDEXES.search(name) and old_layers:
            return type(value)(sizes.spread(value, layers)) if _is_flat(value) else value
        if name in MAIN_DEPTH and value == old_layers:
            return layers
        if name.endswith("vocab_size"):
            return each(value, self._tokens.size)
        if sizes.TOKEN.search(name):
            return each(value, lambda old: self._tokens.token(old, self._vocabularies))
        if sizes.DEPTHS.search(name) and isinstance(value, (list, tuple)):
            return each(value, lambda old: fewer(old, None if target.layers is None else 1))
        if sizes.DEPTH.search(name) and not sizes.NOT_DEPTH.search(name):
            return each(value, lambda old: fewer(old, target.layers))
        if name == "window_size" and "depths" in vars(config) and target.grid is not None:
            return each(value, lambda old: min(old, 2))  # the last stage of a small image has few patches
        if name in CAPS and target.layers is not None:
            return each(value, lambda old: min(old, CAPS[name]))
        if sizes.EXPERTS.search(name):
            return each(value, lambda old: fewer(old, target.experts))
        if sizes.CHOSEN.search(name):
            return each(value, lambda old: min(old, 2))
        if sizes.GROUPS.search(name):
            return each(value, lambda old: 1)
        if sizes.POSITIONS.search(name):
            return each(value, lambda old: min(old, target.positions))
        if sizes.IMAGE.search(name):
            patch = _patch(config)
            return each(value, lambda old: sizes.image_side(old, patch, target.grid))
        if sizes.WIDTH.search(name) and not sizes.NOT_WIDTH.search(name) and kept != EVERY:
            return each(value, lambda old: width(old, target.divisor))
        return value

    def _stages(self, config: Any, old_layers: int, layers: int) -> Details:
        """The outputs of a backbone: of the last layers if each layer is a stage."""
        names, chosen = getattr(config, "stage_names", None), getattr(config, "_out_indices", None)
        if not names or not chosen:
            return {}
        chosen = [place if place >= 0 else len(names) + place for place in chosen]
        if len(names) - 1 != old_layers or "depths" in vars(config):
            return {"out_indices": chosen, "out_features": None}
        new = [layers - len(chosen) + place + 1 for place in range(len(chosen))]
        return {"out_indices": [max(0, place) for place in new], "out_features": None}


def complete(config: Any) -> Any:
    """The configuration, with values that it and those inside it lack."""
    heads, width_of_all = getattr(config, "num_attention_heads", None), getattr(config, "hidden_size", None)
    if isinstance(heads, int) and isinstance(width_of_all, int) and heads:
        usual = {"head_dim": width_of_all // heads, "num_key_value_heads": heads}
        for name, value in usual.items():
            if name in vars(config) and vars(config)[name] is None:
                setattr(config, name, value)
    for name, value in list(vars(config).items()):
        if is_config(value):
            setattr(
                config, name, complete(type(value)(**NEEDED[value.model_type]) if value.model_type in NEEDED else value)
            )
    return config


def _own_backbone(config: Any) -> Any:
    """Replaces a backbone from timm, whose sizes cannot be changed, with the ResNet of transformers."""
    if config.model_type != "timm_backbone":
        return config
    chosen = [place for place in getattr(config, "out_indices", None) or [4] if 0 < place < 5]
    return import_module("transformers").ResNetConfig(out_indices=chosen or [4], num_channels=config.num_channels)


def _with_sections(config: Any, changes: Details) -> Any:
    """The new configuration. Rotary embeddings of several axes get sections that fill the narrower heads."""
    kind = type(config)
    rope = getattr(config, "rope_parameters", None)
    usual = _written_sections(kind.__module__)
    if not isinstance(rope, dict) or not (usual or "mrope_section" in rope):
        return kind(**changes)
    parts = rope.get("mrope_section") or usual
    heads = getattr(config, "num_attention_heads", 0) or 1
    old = getattr(config, "head_dim", None) or getattr(config, "hidden_size", 0) // heads
    new = changes.get("head_dim") or changes.get("hidden_size", 0) // heads or old
    return kind(**{**changes, "rope_parameters": _sections_in(rope, parts, new)})


def _sections_in(rope: Details, parts: Sequence[int], head: int) -> Details:
    """The parameters of rotary embeddings, also if they are given for each kind of layer."""
    if rope and all(isinstance(value, dict) for value in rope.values()):
        return {name: _sections_in(value, value.get("mrope_section") or parts, head) for name, value in rope.items()}
    total = int(head * rope.get("partial_rotary_factor", 1)) // 2
    return {**rope, "mrope_section": sizes.sections(parts, total)}


@functools.cache
def _written_sections(config_module: str) -> Tuple[int, ...]:
    """The sections that a model's source has by default."""
    module = config_module.replace(".configuration_", ".modeling_")
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin:
        return ()
    with open(spec.origin, encoding="utf-8") as file:
        found = re.search(r"\"mrope_section\", [\[(]([\d, ]+)[\])]", file.read())
    return tuple(int(part) for part in found.group(1).split(",")) if found else ()


def _keep_heads_even(config: Any, changes: Details) -> None:
    """Fewer heads where their width would not be a multiple of four, which rotary embeddings of two axes need."""
    if "head_dim" in vars(config) or "num_key_value_heads" in vars(config):
        return
    for heads_field in ("num_attention_heads", "num_heads"):
        heads = vars(config).get(heads_field)
        new = next((changes[name] for name in ("hidden_size", "embed_dim", "d_model") if name in changes), None)
        if not isinstance(heads, int) or not isinstance(new, int) or new % (4 * heads) == 0:
            continue
        fitting = [count for count in range(1, heads + 1) if heads % count == 0 and new % (4 * count) == 0]
        if fitting:
            changes[heads_field] = fitting[-1]


def _link(changes: Details) -> None:
    """Features of an image or a sound become as wide as the words among which they are put."""
    text = changes.get("text_config")
    if text is None or not isinstance(getattr(text, "hidden_size", None), int):
        return
    for name in ("vision_config", "audio_config"):
        part = changes.get(name)
        for field in OUTPUT_WIDTHS.get(getattr(part, "model_type", ""), ("out_hidden_size", "text_hidden_size")):
            if isinstance(getattr(part, field, None), int):
                setattr(part, field, text.hidden_size)


def _known(fields: Mapping[str, Any], target: SizeTarget) -> Details:
    """Fields of the table; a grid of None means images of the usual size, so those are left out."""
    if target.grid is not None:
        return dict(fields)
    return {name: value for name, value in fields.items() if not sizes.IMAGE.search(name)}


def _usual(kind: Any) -> Details:
    """The defaults of the class."""
    try:
        return dict(vars(kind()))
    except Exception:  # a class that needs arguments: every field was given
        return {}


def _defaults(kind: Any) -> Dict[str, Any]:
    """Field → default as written; None for defaults that the class computes."""
    if not dataclasses.is_dataclass(kind):
        return {}
    found: Dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        made = field.default_factory
        found[field.name] = made() if made is not dataclasses.MISSING else field.default
    for name, field_name in _fields_by_name(kind).items():
        found.setdefault(name, found.get(field_name))
    return found


def _fields_by_name(kind: Any) -> Dict[str, str]:
    """Name under which a configuration stores a field → the field, where they differ."""
    return {name: field for field, name in getattr(kind, "attribute_map", {}).items() if field in _field_names(kind)}


def _field_names(kind: Any) -> List[str]:
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []


def _patch(config: Any) -> int:
    for inside in configs_in(config):
        value = vars(inside).get("patch_size")
        if isinstance(value, (list, tuple)) and value and isinstance(value[-1], int):
            return value[-1]
        if isinstance(value, int):
            return value
    return 16


def _numbers(value: Any) -> List[int]:
    return [part for part in value if isinstance(part, int)]


def _is_flat(value: Any) -> bool:
    return all(isinstance(part, int) and part >= 0 for part in value)


def widest(config: Any) -> int:
    """The largest hidden size of the configuration and those inside."""
    found = [getattr(inside, name, 0) for inside in configs_in(config) for name in ("hidden_size", "d_model", "n_embd")]
    return max((size for size in found if isinstance(size, int)), default=0)


def found_in(config: Any, *names: str) -> Optional[Any]:
    """The first of these fields that the configuration, or one inside it, has; by name first."""
    for name in names:
        for inside in configs_in(config):
            value = getattr(inside, name, None)
            if value is not None:
                return value
    return None
