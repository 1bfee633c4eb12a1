"""Arguments of models that put images, sounds or videos where words would be: one word for each feature."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from benchmodels.types import Value
from benchmodels.zoo.transformers.configs import found_in
from benchmodels.zoo.transformers.inputs import AUDIO, IMAGES, ModelArguments, arguments

# Method that makes the features, fields that hold the id of the word they replace, the input they are made of.
KINDS = (
    ("get_image_features", ("image_token_id", "image_token_index", "media_placeholder_token_id"), IMAGES),
    ("get_audio_features", ("audio_token_id", "audio_token_index"), AUDIO),
    ("get_video_features", ("video_token_id", "video_token_index"), ("pixel_values_videos",)),
)


def with_placeholders(inputs: ModelArguments, call: Dict[str, Any]) -> Dict[str, Any]:
    """The call with a word for each feature, before the other words."""
    for method, fields, names in KINDS:
        given = next((name for name in names if name in call), None)
        token = found_in(inputs.config, *fields)
        owner = next(
            (part for part in (inputs.model, getattr(inputs.model, "vlm", None)) if hasattr(part, method)), None
        )
        if given is None or not isinstance(token, int) or "input_ids" not in call or owner is None:
            continue
        call, count = _features(inputs, call, getattr(owner, method), given)
        if count:
            batch = inputs.sizes.batch
            words = inputs.torch.full((batch, count // batch), token)
            call["input_ids"] = inputs.torch.cat([words, call["input_ids"]], dim=1)
    if "mm_token_type_ids" in inputs.arguments and "input_ids" in call:
        token = found_in(inputs.config, *KINDS[0][1])
        call["mm_token_type_ids"] = (call["input_ids"] == (token if isinstance(token, int) else -1)).long()
    return call


def _features(inputs: ModelArguments, call: Dict[str, Any], method: Any, given: str) -> Tuple[Dict[str, Any], int]:
    """The call with what the features need as well, and how many features there are."""
    needs = arguments(method.__func__)
    parts = {name: call[name] for name in needs if name in call and name != "input_ids"}
    parts.setdefault(next(iter(needs)), call[given])
    for name, needed in needs.items():
        made = inputs.made(name) if needed and name not in parts else None
        if made is not None:
            parts[name] = made
            if name in inputs.arguments:
                call = {**call, name: made}
    if "image_grid_thw" in needs and "image_grid_thw" in inputs.arguments:
        parts["image_grid_thw"] = call["image_grid_thw"] = inputs.made("image_grid_thw")
    if method.__self__ is not inputs.model:  # it takes the images of all cameras one after another
        parts[given] = parts[given].flatten(0, 1)
    return call, _rows(inputs, method(**parts))


def _rows(inputs: ModelArguments, features: Value) -> int:
    """Features in all; the last dimension is their width."""
    if hasattr(features, "deepstack_features"):  # for several layers, each as many
        features = features.deepstack_features[0][1]
    elif hasattr(features, "pooler_output"):
        features = features.pooler_output
    if isinstance(features, (list, tuple)):
        return sum(_rows(inputs, part) for part in features)
    shape: Optional[Tuple[int, ...]] = getattr(features, "shape", None)
    if shape is None:
        return 0
    count = 1
    for size in shape[:-1]:
        count *= size
    return count
