"""Which fields of a configuration hold sizes, and what they become at a scale.

A size becomes a function of its old value alone, so fields that had to be equal stay equal, also across the configurations inside
a configuration, and products of a number of heads and a width stay products.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

SMALLEST_WIDTH = 4
KNOWN_TOKENS = 100  # ids this near to the end of a vocabulary keep their distance to it

WIDTH = re.compile(
    r"(hidden_sizes?|hidden_dims?|hidden_size_\w+|_dims?|^dim|d_model|d_ff|dff|d_kv|d_head|d_inner|d_embed|n_embd|n_inner|"
    r"emb_size|embedding_size|embed_size|output_size|proj_size|projection_size|intermediate_size\w*|ffn_hidden|linear_units|"
    r"channels?|channel_list|channel_size|_units|lora_rank|_dims?_\w+|ff_size|feature_size|pooler_output_size|embed_dims?|"
    r"coordinate_size|shape_size|filter_size|reduce_dim|kv_channels|width|bottleneck|head_size|"
    r"hidden_act_size|mamba_d_ssm|dt_rank|time_step_rank|neck_hidden_sizes|num_pos_feats|backbone_channel_list|num_filters|"
    r"upsample_groups|dim_ff|dim_feedforward|feedforward_dim|inner_dim|stage_\w*channels|fine_fusion_dims)$"
)
NOT_WIDTH = re.compile(
    r"^(num_channels|in_channels|in_chans|audio_channels|input_channels|patch_embed_input_channels|act_dim|state_dim|query_dim|"
    r"visual_pos_dim|num_input_channels|mask_input_channels|channels|feature_size|input_feat_size|dim_bbox|dim_bbox_\w+|"
    r"linear_conv_kernel_dim|output_dim|max_action_dim|max_state_dim|fine_matching_slice_dim|model_in_dim|mel_dim|input_dim|"
    r"feature_projection_input_dim|pos_emb_width)$"
)
DEPTH = re.compile(
    r"^((num_|n_)?((?!conv|feat|fpn|extract|window|nextn|dense|kv_shared|timestamp)\w+_)?layers?|depth|num_blocks|layers_num|"
    r"num_\w+_layers|(resampler|encoder|decoder|stage)_depth|num_layers_per_stack)$"
)
NOT_DEPTH = re.compile(
    r"^(num_feat_extract_layers|num_kv_shared_layers|num_dense_layers|max_window_layers|num_nextn_predict_layers|"
    r"vision_feature_layer|num_adapter_layers|num_residual_layers|extract_layers|mlp_only_layers|no_rope_layers|moe_layers|"
    r"num_lstm_layers|conditional_layer|spatial_vision_layer|feature_layer|encode_proj_layers|\w*postnet_layers|"
    r"\w*predictor_layers|iou_head_depth|subsample_layers|num_fov_head_layers|spatial_target_layers|lqe_layers|attention_layers)$"
)
DEPTHS = re.compile(r"^(depths|layer_depths|num_block_repeats|stage_num_blocks|block_sizes|stage_numb_of_layers)$")
EXPERTS = re.compile(
    r"^(num_experts|n_routed_experts|num_local_experts|moe_num_experts|num_moe_experts|zero_expert_num)$"
)
CHOSEN = re.compile(
    r"^(num_experts_per_tok|num_experts_per_token|moe_topk|moe_k|top_k_experts|num_selected_experts|router_topk|moe_top_k)$"
)
GROUPS = re.compile(r"^(n_group|topk_group|num_expert_group|n_groups_experts|moe_topk_group|num_limited_groups)$")
POSITIONS = re.compile(r"^((t2u_)?max_position_embeddings|n_positions|n_ctx|max_seq_len|model_max_length)$")
IMAGE = re.compile(r"^(image_size|img_size|pretrain_image_size|crop_size|resolution|spec_size|input_size)$")
TOKEN = re.compile(r"(token_ids?|token_index|_idx|_start_id|_end_id|_newline_id|stream_bos_id|stream_eos_id)$")


class SizeTarget(NamedTuple):
    """How small: what widths are divided by, the most layers, experts, words and positions, and patches along an image's side."""

    divisor: int
    layers: Optional[int]  # None: a quarter of them
    experts: Optional[int]
    vocabulary: Optional[int]
    positions: int
    grid: Optional[int]  # None: images keep their size


TINY = SizeTarget(divisor=8, layers=2, experts=4, vocabulary=2048, positions=512, grid=4)
SMALL = SizeTarget(divisor=4, layers=None, experts=None, vocabulary=None, positions=2048, grid=None)


def width(value: int, divisor: int) -> int:
    """The value over the largest part of the divisor (a power of two) that divides it and does not make it too small.

    An odd one is rounded up to a multiple of four.
    """
    if value % 2 and divisor > 1 and value > 4 * divisor:
        return 4 * -(-value // (4 * divisor))
    while divisor > 1 and (value % divisor or value // divisor < SMALLEST_WIDTH):
        divisor //= 2
    return value // divisor


def each(value: Any, change: Any) -> Any:
    """A number or a list of numbers, changed; other parts of a list stay as they are."""
    if isinstance(value, (list, tuple)):
        return type(value)(each(part, change) for part in value)
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return change(value)


def fewer(value: int, most: Optional[int]) -> int:
    """At most so many; None: a quarter, but two or more if there were."""
    return min(value, most) if most is not None else min(value, max(2, value // 4))


class Tokens:
    """Ids of special tokens in smaller vocabularies: each old id has one new id."""

    def __init__(self, target: SizeTarget) -> None:
        self._target = target
        self._new: Dict[int, int] = {}
        self._sizes: Dict[int, int] = {}

    def size(self, old: int) -> int:
        """Of a vocabulary that had `old` words."""
        most = self._target.vocabulary
        new = old if most is None and old <= 8192 else min(old, old // 4 if most is None else most)
        self._sizes[old] = new
        return new

    def token(self, old: int, vocabulary: Sequence[int]) -> int:
        """A special token's new id. `vocabulary`: the sizes of the vocabularies it may belong to."""
        sizes = [(size, self._sizes.get(size, size)) for size in vocabulary]
        smallest = min((new for _, new in sizes), default=0)
        if old < smallest - 3 * KNOWN_TOKENS or old < 0:
            return old
        for size, new in sizes:
            if size != new and 0 < size - old <= KNOWN_TOKENS:
                return new - (size - old)
        if old in self._new:
            return self._new[old]
        if not smallest or all(size == new for size, new in sizes):
            return old
        self._new[old] = smallest - KNOWN_TOKENS - 1 - len(self._new)
        return self._new[old]


def image_side(value: int, patch: int, grid: Optional[int]) -> int:
    """So many patches along a side; 64 pixels for small patches, as hierarchical models have them."""
    if grid is None:
        return value
    side = grid * patch if patch > 7 else grid * 16
    return min(value, side)


def layers_for(kinds: Sequence[Any], most: int) -> int:
    """How many of the first layers it takes to have one of each kind, if not many."""
    wanted = len({str(kind) for kind in kinds})
    for count in range(1, min(len(kinds), 8) + 1):
        if len({str(kind) for kind in kinds[:count]}) == wanted:
            return max(count, most)
    return most


def spread(indexes: Sequence[int], layers: int) -> List[int]:
    """Indexes of layers in a model of fewer layers: in the same order, the last where the last was."""
    count = len(indexes)
    return [max(0, layers - count + place) for place in range(count)]


def sections(parts: Sequence[int], total: int) -> List[int]:
    """Parts of the same proportions with another sum (parts of rotary embeddings)."""
    old = sum(parts)
    new = [max(1, part * total // old) for part in parts]
    new[-1] += total - sum(new)
    if new[-1] < 1:
        raise ValueError(f"heads are too narrow for {len(parts)} axes")
    return new
