"""Valid arguments for a model: from the arguments of its `forward` and the sizes in its configuration."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Optional, Tuple

from benchmodels.types import Module, Tensor
from benchmodels.zoo.base import ZooRequest
from benchmodels.zoo.transformers.configs import configs_in, found_in
from benchmodels.zoo.transformers.tables import INPUTS

LENGTH = {"tiny": 16, "small": 64, "full": 128}
USUAL_IMAGE = {"tiny": 64, "small": 224, "full": 224}
SECONDS = {"tiny": 0.5, "small": 2.0, "full": 10.0}
AUDIO = ("input_features", "input_values", "audio_values", "audio_input_features", "audio_mel")
MASKS_OF_SOUNDS = ("input_features_mask", "feature_attention_mask", "audio_mel_mask", "padding_mask")
IMAGES = ("pixel_values", "flattened_patches", "pixel_values_images")


class Sizes:
    """How large the inputs are: what the user asked for, else what suits the scale and the configuration."""

    def __init__(self, config: Any, request: ZooRequest) -> None:
        self.config = config
        self.request = request
        self.batch = request.size("batch_size", 1)

    @property
    def length(self) -> int:
        return self.request.size("max_seq_length", LENGTH[self.request.scale])

    @property
    def channels(self) -> int:
        found = found_in(self.config, "num_channels", "in_channels", "in_chans", "num_input_channels")
        usual = found if isinstance(found, int) else 3
        return self.request.size("num_channels", usual)

    @property
    def image(self) -> Tuple[int, int]:
        """Height and width."""
        found = self._image_field()
        if isinstance(found, dict):
            found = [found.get("height", 64), found.get("width", 64)]
        height, width = found if isinstance(found, (list, tuple)) else (found, found)
        return self.request.size("height", int(height)), self.request.size("width", int(width))

    def _image_field(self) -> Any:
        inside = [getattr(self.config, name, None) for name in ("vision_config", "backbone_config")]
        for config in (self.config, *(each for each in inside if each is not None)):
            found = found_in(config, "image_size", "img_size", "crop_size")
            if isinstance(found, (int, list, tuple, dict)):
                return found
        return USUAL_IMAGE[self.request.scale]

    @property
    def patch(self) -> int:
        found = found_in(self.config, "patch_size")
        return int(found[-1] if isinstance(found, (list, tuple)) else found or 16)

    @property
    def frames(self) -> int:
        """Of a video."""
        found = found_in(self.config, "num_frames")
        return int(found) if isinstance(found, int) else 2

    @property
    def mels(self) -> int:
        found = found_in(
            self.config,
            "num_mel_bins",
            "n_mel_bins",
            "input_feat_size",
            "feature_size",
            "n_mels",
            "input_feat_per_channel",
        )
        return int(found) if isinstance(found, int) else 80

    @property
    def samples(self) -> int:
        """Of a sound."""
        rate = found_in(self.config, "sampling_rate", "sample_rate")
        usual = int(SECONDS[self.request.scale] * (rate if isinstance(rate, int) else 16000))
        return self.request.size("max_audio_seq_length", usual)

    def vocabulary(self, *names: str) -> int:
        found = found_in(self.config, *names, "vocab_size")
        return int(found) if isinstance(found, int) and found > 1 else 256


class ModelArguments:
    """Makes the arguments of `forward` by name."""

    def __init__(self, torch: Any, model: Module, request: ZooRequest) -> None:
        self.torch = torch
        self.model = model
        self.config = model.config
        self.sizes = Sizes(model.config, request)
        kinds = getattr(model, "input_modalities", "text")
        self.takes = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        self.arguments = arguments(type(model).forward)
        self._made: Dict[str, Any] = {}
        self.special = special_tokens(model.config)

    def without_media(self) -> List[str]:
        """The arguments of a call with text alone."""
        return [name for name in self.names() if name not in (*IMAGES, *AUDIO, *MASKS_OF_SOUNDS, "pixel_values_videos")]

    def names(self) -> List[str]:
        """The arguments to give: the main one, those of each kind of input, and those without a default."""
        wanted = [str(getattr(self.model, "main_input_name", "input_ids"))]
        wanted += [name for name, needed in self.arguments.items() if needed]
        if "text" in self.takes:
            wanted.append("input_ids")
        if "image" in self.takes and getattr(self.config, "vision_config", self) is not None:
            wanted += [name for name in IMAGES if name in self.arguments][:1]
        if "audio" in self.takes and getattr(self.config, "audio_config", self) is not None:
            audio = [name for name in AUDIO if name in INPUTS.get(self.config.model_type, {})]
            wanted += audio or [name for name in AUDIO if name in self.arguments][:1]
            wanted += MASKS_OF_SOUNDS
        if getattr(self.config, "is_encoder_decoder", False):
            wanted.append("decoder_input_ids")
        wanted += ["bbox", *INPUTS.get(self.config.model_type, {})]
        return [name for name in dict.fromkeys(wanted) if name in self.arguments]

    def words(self, *shape: int, vocabulary: int = 0) -> Tensor:
        """Ids of words that are not special."""
        size = vocabulary or self.sizes.vocabulary()
        words = self.torch.randint(0, size, shape)
        allowed = [word for word in range(min(size, 4096)) if word not in self.special] or [0]
        return self.torch.tensor(allowed)[words % len(allowed)]

    def made(self, name: str) -> Optional[Any]:
        """The argument of that name; None if no rule knows it."""
        if name not in self._made:
            shape = INPUTS.get(self.config.model_type, {}).get(name)
            rule = RULES.get(name)
            if shape is not None:
                self._made[name] = self._shaped(*shape)
            else:
                self._made[name] = None if rule is None else rule(self)
        return self._made[name]

    def _shaped(self, kind: str, *dimensions: Any) -> Any:
        """An input of the table."""
        torch, shape = self.torch, [self._number(size) for size in dimensions]
        kind, _, field = kind.partition(" ")
        if kind == "ids":
            return self.words(*shape, vocabulary=self._number(field))
        if kind == "float":
            return torch.randn(shape)
        if kind == "full":
            return torch.full(shape, int(field))
        if kind == "rows":
            return torch.tensor([shape] * self.sizes.batch)
        if kind == "places":
            return torch.cartesian_prod(*(torch.arange(size) for size in shape)).repeat(self.sizes.batch, 1, 1)
        if kind == "pairs":
            return self._keys_and_values()
        if kind == "sizes":
            return torch.tensor([self.sizes.image] * self.sizes.batch)
        return {"ones": torch.ones, "zeros": torch.zeros}[kind](shape, dtype=getattr(torch, field or "long"))

    def _number(self, size: Any) -> int:
        known = {
            "B": self.sizes.batch,
            "L": self.sizes.length,
            "H": self.sizes.image[0],
            "W": self.sizes.image[1],
            "2": 2,
        }
        if isinstance(size, int) or str(size).isdigit():
            return int(size)
        if size == "past_length":
            return int(self.config.context_length + max(self.config.lags_sequence))
        product = 1
        for factor in str(size).split("*"):
            value = known.get(factor)
            if value is None:
                value = self.config
                for name in factor.split("."):
                    value = getattr(value, name)
            product *= len(value) if isinstance(value, (list, tuple)) else int(value)
        return product

    def _keys_and_values(self) -> Dict[str, Tuple[Tensor, Tensor]]:
        """Kind of layer → keys and values of the words so far."""
        text = self.config.get_text_config()
        found = {}
        for place, kind in enumerate(text.layer_types):
            layer = text.per_layer_config[place]
            shape = (self.sizes.batch, layer.num_key_value_heads, self.sizes.length, layer.head_dim)
            found[kind] = (self.torch.randn(shape), self.torch.randn(shape))
        return found


def arguments(function: Callable[..., Any]) -> Dict[str, bool]:
    """Name of each argument → whether it must be given."""
    found = {}
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            found[name] = parameter.default is parameter.empty
    return found


def special_tokens(config: Any) -> Dict[int, str]:
    """Ids with a special meaning, which text does not contain."""
    found: Dict[int, str] = {}
    for inside in configs_in(config):
        for name, value in vars(inside).items():
            if "token" in name and isinstance(value, int) and not isinstance(value, bool):
                found[value] = name
    return found


def _pixels(inputs: ModelArguments) -> Tensor:
    sizes = inputs.sizes
    if "image_grid_thw" in inputs.arguments or "grid_thw" in inputs.arguments:
        return _patches(inputs)
    shape: List[int] = [sizes.batch, sizes.channels, *sizes.image]
    if "video" in inputs.takes and "image" not in inputs.takes:
        shape.insert(1, sizes.frames)
    return inputs.torch.rand(shape)


def _grid(inputs: ModelArguments) -> Tuple[int, int, int]:
    """Frames, and patches down and across, of an image that is given as a list of patches."""
    merge = found_in(inputs.config, "spatial_merge_size", "merge_size") or 2
    side = merge if isinstance(merge, int) else merge[0]
    return 1, 2 * side, 2 * side


def _patches(inputs: ModelArguments) -> Tensor:
    frames, down, across = _grid(inputs)
    times = found_in(inputs.config, "temporal_patch_size", "patch_temporal")
    length = inputs.sizes.channels * (times if isinstance(times, int) else 1) * inputs.sizes.patch**2
    return inputs.torch.rand(inputs.sizes.batch * frames * down * across, length)


def _grid_rows(inputs: ModelArguments) -> Tensor:
    return inputs.torch.tensor([_grid(inputs)] * inputs.sizes.batch)


def _image_sizes(inputs: ModelArguments) -> Tensor:
    return inputs.torch.tensor([inputs.sizes.image] * inputs.sizes.batch)


def _boxes(inputs: ModelArguments) -> Tensor:
    """Left, top, right, bottom of each word, on a page of 1000 × 1000."""
    sizes = inputs.sizes
    corner = inputs.torch.randint(0, 400, (sizes.batch, sizes.length, 2))
    return inputs.torch.cat([corner, corner + inputs.torch.randint(1, 400, corner.shape)], dim=-1)


def _features(inputs: ModelArguments) -> Tensor:
    sizes = inputs.sizes
    positions = found_in(inputs.config, "max_source_positions")
    frames = max(32, sizes.samples // 160 // 8 * 8)
    if _mels_first(inputs):
        return inputs.torch.randn(sizes.batch, sizes.mels, 2 * positions if isinstance(positions, int) else frames)
    return inputs.torch.randn(sizes.batch, frames, sizes.mels)


def _mask_of_sound(inputs: ModelArguments) -> Optional[Tensor]:
    """Every frame or sample counts."""
    for name in AUDIO:
        if name in inputs.arguments:
            sound: Any = inputs.made(name)
            last = sound.ndim == 2 or (sound.shape[1] in (1, inputs.sizes.mels) and sound.shape[2] != inputs.sizes.mels)
            return inputs.torch.ones(sound.shape[0], sound.shape[-1 if last else 1], dtype=inputs.torch.long)
    return None


def _mels_first(inputs: ModelArguments) -> bool:
    """Whether a convolution over the frames of a spectrogram comes first."""
    first = next((part for part in inputs.model.modules() if "Conv1d" in type(part).__name__), None)
    return getattr(first, "in_channels", 0) == inputs.sizes.mels


def _sound(inputs: ModelArguments) -> Tensor:
    sizes = inputs.sizes
    codec = any(path.split(".")[-1] == "quantizer" for path, _ in inputs.model.named_modules())
    if codec or "padding_mask" in inputs.arguments:
        return inputs.torch.randn(sizes.batch, 1, sizes.samples)
    return inputs.torch.randn(sizes.batch, sizes.samples)


def _like_words(value: int) -> Callable[[ModelArguments], Tensor]:
    return lambda inputs: inputs.torch.full((inputs.sizes.batch, inputs.sizes.length), value)


def _videos(inputs: ModelArguments) -> Tensor:
    sizes = inputs.sizes
    return inputs.torch.rand(sizes.batch, sizes.frames, sizes.channels, *sizes.image)


def _embeddings(inputs: ModelArguments) -> Tensor:
    if "grid_thw" in inputs.arguments:
        return _patches(inputs)
    size = found_in(inputs.config, "hidden_size", "d_model")
    return inputs.torch.randn(inputs.sizes.batch, inputs.sizes.length, size)


def _words(inputs: ModelArguments) -> Tensor:
    """Of a classifier with a decoder, each text has its end: the decoder's state there is what it classifies."""
    words = inputs.words(inputs.sizes.batch, inputs.sizes.length)
    end = getattr(inputs.config, "eos_token_id", None)
    classifies = type(inputs.model).__name__.endswith("ForSequenceClassification")
    if classifies and getattr(inputs.config, "is_encoder_decoder", False) and isinstance(end, int):
        words[words == end] = end + 1
        words[:, -1] = end
    return words


def _decoder_words(inputs: ModelArguments) -> Tensor:
    decoder = getattr(inputs.config, "decoder", None) or getattr(inputs.config, "decoder_config", None)
    found = found_in(inputs.config if decoder is None else decoder, "decoder_vocab_size", "vocab_size")
    return inputs.words(inputs.sizes.batch, inputs.sizes.length, vocabulary=found if isinstance(found, int) else 0)


RULES: Dict[str, Callable[[ModelArguments], Any]] = {
    "input_ids": _words,
    "decoder_input_ids": _decoder_words,
    "attention_mask": _like_words(1),
    "token_type_ids": _like_words(0),
    "bbox": _boxes,
    "pixel_values": _pixels,
    "pixel_values_images": _pixels,
    "high_res_pixel_values": _pixels,
    "pixel_values_videos": _videos,
    "image_grid_thw": _grid_rows,
    "grid_thw": _grid_rows,
    "image_sizes": _image_sizes,
    "qformer_input_ids": _words,
    "input_features": _features,
    "audio_input_features": _features,
    "audio_mel": _features,
    "input_features_mask": _mask_of_sound,
    "feature_attention_mask": _mask_of_sound,
    "audio_mel_mask": _mask_of_sound,
    "padding_mask": _mask_of_sound,
    "input_values": _sound,
    "audio_values": _sound,
    "inputs_embeds": _embeddings,
    "hidden_states": _embeddings,
}
