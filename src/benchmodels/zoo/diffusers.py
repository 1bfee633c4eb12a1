"""The networks of diffusers: UNets, transformers, autoencoders and control networks, without their pipelines.

What a network takes is not written down anywhere, so the likely calls are tried on its smallest variant; the first that works is
also the one at full scale.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from importlib import import_module
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from benchmodels.failures import is_out_of_memory
from benchmodels.zoo.base import (
    FULL,
    NO_CALL,
    NOT_POSSIBLE,
    TINY,
    NotInZoo,
    ZooEntry,
    ZooModel,
    ZooRequest,
    version_of,
)
from benchmodels.zoo.downscale import few
from benchmodels.zoo.sources import package_folder
from benchmodels.zoo.vision_import import declare_operators

FOLDERS = {"autoencoders": "autoencoder", "transformers": "transformer", "unets": "unet", "controlnets": "controlnet"}
# Containers of other networks, and parts that are called by another network only.
NO_NETWORK = re.compile(r"Multi|^ControlNetXSAdapter$|^MotionAdapter$|^DualTransformer2DModel$|Mixin$")
LAYERS = re.compile(r"(^|_)(layers|depth|depths|blocks|layers_per_block|num_res_blocks|refiner_layers)$")
WIDTHS = re.compile(r"(^|_)(block_out_channels|cross_attention_dim|base_dim|model_channels|base_channels)$")
HEADS = re.compile(r"^(num_attention_heads|num_heads|n_heads|heads)$")
TEXT_WIDTHS = (
    *(
        "cross_attention_dim",
        "joint_attention_dim",
        "caption_channels",
        "text_embed_dim",
        "text_dim",
        "in_channels_text",
    ),
    *(
        "cap_feat_dim",
        "text_embed_dim",
        "encoder_hid_dim",
        "context_dim",
        "text_hidden_dim",
        "condition_dim",
        "text_in_dim",
    ),
)
CHANNELS = ("in_channels", "latent_channels", "num_latent_channels", "audio_channels", "in_dim", "channels")
SIDES = {TINY: 16, "small": 32, FULL: 64}  # of latents; images of autoencoders are four times as wide
WORDS, FRAMES, SOUND = 8, 5, 256
MOST_PARAMETERS = 300_000_000  # of the network on which calls are tried


class Way(NamedTuple):
    """One way to call a network: the layout of its main input, and whether optional inputs are given, too."""

    layout: str
    optional: bool


class DiffusersZoo:
    """The models that `diffusers.models` exports and that have a configuration."""

    name = "diffusers"
    packages = ("diffusers", "transformers>=5")

    def version(self) -> str:
        return version_of("diffusers")

    def entries(self) -> Iterable[ZooEntry]:
        for folder, names in _exported():
            family = FOLDERS.get(folder.partition(".")[0])
            for name in names if family else ():
                if not NO_NETWORK.search(name):
                    yield ZooEntry(self.name, name, "diffusion", {"author": "diffusers", "family": str(family)})

    def build(self, request: ZooRequest) -> ZooModel:
        declare_operators()
        import_module("diffusers.utils.logging").set_verbosity_error()
        kind = getattr(import_module("diffusers"), request.name, None) or getattr(
            import_module("diffusers.models"), request.name
        )
        tiny, config, way = _smallest(kind, request._replace(scale=TINY))
        if request.scale == TINY:
            return _model(tiny, request, way)
        if request.scale != FULL:
            config = {name: few(value, 4) if LAYERS.search(name) else value for name, value in _defaults(kind).items()}
        return _model(kind(**config) if request.scale != FULL else kind(), request, way)


def _exported() -> Iterator[Tuple[str, List[str]]]:
    """Module and names, from the text of the package."""
    text = (package_folder("diffusers") / "models" / "__init__.py").read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if (
            isinstance(node, ast.Assign)
            and isinstance(target, ast.Subscript)
            and isinstance(target.slice, ast.Constant)
        ):
            yield str(target.slice.value), [str(name) for name in ast.literal_eval(node.value)]


def _defaults(kind: Any) -> Dict[str, Any]:
    parameters = inspect.signature(kind.__init__).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _configurations(kind: Any) -> Iterator[Dict[str, Any]]:
    """Smaller and smaller changes of its defaults."""
    usual = _defaults(kind)
    layers = {name: few(value) for name, value in usual.items() if LAYERS.search(name)}
    heads = {name: few(value, 2) for name, value in usual.items() if HEADS.search(name)}
    widths = {name: few(value, 32) for name, value in usual.items() if WIDTHS.search(name)}  # as norms divide them
    for changes in ({**layers, **heads, **widths}, {**layers, **heads}, {**layers, **widths}, layers):
        yield {name: value for name, value in changes.items() if value is not None}


def _smallest(kind: Any, request: ZooRequest) -> Tuple[Any, Dict[str, Any], Way]:
    """The smallest network that can be called, its configuration, and how; the first exception if there is none."""
    torch: Any = import_module("torch")
    first: Optional[BaseException] = None
    large: List[int] = []
    for config in _configurations(kind):
        try:
            with torch.device("meta"):  # counts parameters without making them
                large.append(sum(each.numel() for each in kind(**config).parameters()))
            if large[-1] > MOST_PARAMETERS:
                continue
            module = kind(**config).eval()
        except Exception as error:  # the next one may do
            first = first or error
            continue
        for way in _ways(kind.__name__):
            try:
                made = _model(module, request, way)
                with torch.no_grad():
                    made.module(*made.args, **made.kwargs)
                return module, config, way
            except Exception as error:  # another way may do
                if is_out_of_memory(error):
                    raise
                first = first or error
    if isinstance(first, NotInZoo):
        raise first
    if first is None:
        text = f"its smallest variant has {min(large) / 1e6:,.0f} M parameters, too many for a trial call"
        raise NotInZoo(text, NOT_POSSIBLE)
    raise NotInZoo(f"none of the usual calls fits it: {type(first).__name__}: {str(first)[:300]}", NO_CALL) from first


def _ways(name: str) -> List[Way]:
    """The likely ones first."""
    layouts = ["image", "video", "tokens", "sound", "frames"]
    likely = "video" if "3D" in name or "Video" in name else "sound" if "1D" in name or "Audio" in name else "image"
    layouts.sort(key=lambda layout: layout != likely)
    return [Way(*each) for each in itertools.product(layouts, (True, False))]


def _model(module: Any, request: ZooRequest, way: Way) -> ZooModel:
    """`module` with a call of it."""
    maker = _Inputs(import_module("torch"), module, request, way.layout)
    kwargs = {}
    for parameter in inspect.signature(module.forward).parameters.values():
        needed = parameter.default is parameter.empty
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or not (needed or way.optional):
            continue
        made = maker.made(parameter.name)
        if made is not None:
            kwargs[parameter.name] = made
        elif needed:
            raise NotInZoo(f"no value is known for its input '{parameter.name}'", NO_CALL)
    return ZooModel(module.eval(), (), kwargs, maker.batch, "the zoo's batch_size")


class _Inputs:
    """Inputs by their names, which many networks share."""

    def __init__(self, torch: Any, module: Any, request: ZooRequest, layout: str) -> None:
        self.torch = torch
        self.config: Mapping[str, Any] = dict(module.config)
        self.batch = request.size("batch_size", 1)
        side = SIDES[request.scale] * (
            4 if "sample" in inspect.signature(module.forward).parameters and "encode" in dir(module) else 1
        )
        self.height, self.width = request.size("height", side), request.size("width", side)
        self.words = request.size("max_seq_length", WORDS)
        self.frames = request.size("num_frames", FRAMES)
        self.layout = layout
        self.makers: Dict[str, Callable[[], Any]] = {
            **dict.fromkeys(("sample", "hidden_states", "x", "latents", "z"), self.main),
            **dict.fromkeys(("encoder_hidden_states", "cap_feats", "text_bth"), self.text),
            **dict.fromkeys(("timestep", "timestep_ratio", "t", "timesteps", "timestep_r", "r_timestep"), self.time),
            **dict.fromkeys(("encoder_attention_mask", "encoder_mask"), self.text_mask),
            "guidance": lambda: torch.ones(self.batch) if self.config.get("guidance_embeds") else None,
            "pooled_projections": lambda: self.vector("pooled_projection_dim"),
            "class_labels": lambda: (
                torch.zeros(self.batch, dtype=torch.long) if "num_embeds_ada_norm" in self.config else None
            ),
            "controlnet_cond": self.condition,
            "img_ids": lambda: self.places(self.tokens) if layout == "tokens" else None,
            "txt_ids": lambda: self.places(self.words),
            "img_shapes": lambda: [[(1, self.height // 4, self.width // 4)]] * self.batch,
            "added_cond_kwargs": lambda: {
                "resolution": torch.full((self.batch, 2), 256.0),
                "aspect_ratio": torch.ones(self.batch, 1),
            },
            "added_time_ids": lambda: torch.rand(self.batch, 3),
            "fps": lambda: torch.full((self.batch,), 8),
            "image_latents": self.main,
            "clip_text_pooled": lambda: torch.randn(
                self.batch, 1, int(self.config.get("clip_text_pooled_in_channels") or 64)
            ),
            **dict.fromkeys(("original_size", "target_size"), lambda: torch.full((self.batch, 2), 256.0)),
            "crop_coords": lambda: torch.zeros(self.batch, 2),
            "proj_embedding": lambda: torch.randn(self.batch, int(self.config.get("embedding_dim") or 768)),
        }

    def made(self, name: str) -> Any:
        return self.makers[name]() if name in self.makers else None

    @property
    def tokens(self) -> int:
        return (self.height // 4) * (self.width // 4)

    def main(self) -> Any:
        channels = next((c for name in CHANNELS if isinstance(c := self.config.get(name), int)), 3)
        shapes: Dict[str, Sequence[int]] = {
            "image": (self.batch, channels, self.height, self.width),
            "video": (self.batch, channels, self.frames, self.height, self.width),
            "frames": (self.batch, self.frames, channels, self.height, self.width),
            "tokens": (self.batch, self.tokens, channels),
            "sound": (self.batch, channels, SOUND),
        }
        return self.torch.randn(*shapes[self.layout])

    def text(self) -> Any:
        widths = (self.config.get(name) for name in TEXT_WIDTHS)
        width = next((w for w in widths if isinstance(w, int)), None)
        return None if width is None else self.torch.randn(self.batch, self.words, width)

    def text_mask(self) -> Any:
        return self.torch.ones(self.batch, self.words, dtype=self.torch.bool)

    def time(self) -> Any:
        return self.torch.ones(self.batch)

    def vector(self, name: str) -> Any:
        width = self.config.get(name)
        return self.torch.randn(self.batch, width) if isinstance(width, int) else None

    def condition(self) -> Any:
        channels = int(self.config.get("conditioning_channels") or 0)
        return self.torch.rand(self.batch, channels, 8 * self.height, 8 * self.width) if channels else self.main()

    def places(self, count: int) -> Any:
        axes = self.config.get("axes_dims_rope")
        return self.torch.zeros(count, len(axes) if isinstance(axes, (list, tuple)) else 3)
