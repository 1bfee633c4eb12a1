"""Exceptions by model type: values that a configuration lacks, sizes at scale tiny, inputs of unusual shapes."""

from __future__ import annotations

from typing import Any, Dict, Tuple

_SIDES = {"longratio": 7, "midratio": 5, "shortratio": 3}
# Text detectors that bring the scales of an image together: kernel, stride and padding of each convolution; how far to enlarge each.
PATHS = {
    "intraclass_block_config": {
        "reduce_channel": [1, 1, 0],
        "return_channel": [1, 1, 0],
        **{f"vertical_long_to_small_conv_{name}": [[n, 1], 1, [n // 2, 0]] for name, n in _SIDES.items()},
        **{f"horizontal_small_to_long_conv_{name}": [[1, n], 1, [0, n // 2]] for name, n in _SIDES.items()},
        **{f"symmetric_conv_long_{name}": [n, 1, n // 2] for name, n in _SIDES.items()},
    },
    "scale_factor_list": [1, 2, 4, 8],
    "kernel_list": [3, 2, 2],
}
# A backbone with an output of each stage, each half as large as the one before.
SCALES = {
    "model_type": "pp_lcnet_v4",
    "out_indices": [1, 2, 3, 4],
    "block_configs": [
        [[3, 96, 96, 1, True]],
        [[3, 96, 96, 2, False]],
        [[3, 96, 192, 2, False]],
        [[3, 192, 384, 2, False]],
    ],
}

# Values without which the class of a configuration makes no model that can be called.
NEEDED: Dict[str, Dict[str, Any]] = {
    "autoformer": {"prediction_length": 24},
    "informer": {"prediction_length": 24},
    "time_series_transformer": {"prediction_length": 24},
    "aya_vision": {
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "num_attention_heads": 16}
    },
    "clvp": {"speech_config": {"vocab_size": 8192}},
    "uvdoc_backbone": {"out_indices": [1, 2, 3, 4, 5, 6]},
    "chameleon": {"vocabulary_map": {"<image>": 8}},
    "emu3": {"vocabulary_map": {"<image>": 8}},
    "cohere_compass_text": {
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [24, 20, 20]},
        }
    },
    "deepseek_ocr2_encoder": {"hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense"] + ["sparse"] * 31, "num_experts_per_tok": 6},
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "clip_qkv": 8.0}},
    "deepseek_v2": {"num_experts_per_tok": 6},
    "diffusion_gemma_text": {"num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 256},
    "dots1": {"n_routed_experts": 128, "num_experts_per_tok": 6, "n_shared_experts": 2},
    "esm": {"vocab_size": 33, "pad_token_id": 1},
    "gemma4_assistant": {"text_config": {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}},
    "granite4_vision": {
        "vision_config": {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14},
        "downsample_rate": "1/2",
        "deepstack_layer_map": [[-7, 3], [-1, 0]],
    },
    "glm4v_moe_text": {"head_dim": 128},
    "lw_detr": {"projector_scale_factors": [1.0]},
    "moonshine_streaming": {"num_key_value_heads": 8},
    "pp_ocrv5_server_det": PATHS,
    "pp_ocrv6_medium_det": {**PATHS, "backbone_config": SCALES},
    "pp_ocrv6_small_det": {"layer_list_out_channels": [96, 96, 192, 384], "backbone_config": SCALES},
    "qwen4_exp_text": {
        "indexer_n_heads": 16,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 128,
        "indexer_budget": 2048,
        "indexer_compress_ratio": 4,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25},
    },
    "step3p5": {"sliding_window": 512},  # the text model of step3p7
    "t5gemma2_encoder": {"text_config": {"dropout_rate": 0.0}},
    "hunyuan_vl_text": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [16, 16, 16, 16]}
    },
    "pp_doclayout_v2": {"class_thresholds": [0.5] * 25, "class_order": list(range(25))},
    "vitmatte": {
        "hidden_size": 768,
        "convstream_hidden_sizes": [48, 96, 192],
        "fusion_hidden_sizes": [256, 128, 64, 32],
    },
    "vits": {"noise_scale": 0.0, "noise_scale_duration": 0.0},  # its random numbers would differ in each call
    "voxtral": {"audio_token_id": 24},
    "xmod": {"default_language": "en_XX"},
    "blip-2": {"image_token_index": 50264},
    "instructblip": {"image_token_index": 31999},
    "instructblipvideo": {"video_token_index": 31999},
    "lfm2_moe": {"num_hidden_layers": 24, "layer_types": ["conv", "conv", "full_attention"] * 8},
}
EVERY = ("*",)
# Fields that keep their size.
KEPT: Dict[str, Tuple[str, ...]] = {
    "efficientnet": ("out_channels", "hidden_dim"),
    "align_vision_model": ("out_channels", "hidden_dim"),
    "chameleon_vqgan": ("latent_channels",),
    "emu3_vqgan": ("latent_channels",),
    "glm_image_vqmodel": ("latent_channels",),
    "janus_vqgan": ("latent_channels",),
    "pix2struct_vision_model": ("patch_embed_hidden_size",),
    "pp_ocrv6_small_det": EVERY,
    "sam2_hiera_det_model": EVERY,
    "sam2_mask_decoder": EVERY,
    "sam2_prompt_encoder": EVERY,
    "sam2_vision_model": EVERY,
    "superpoint": ("keypoint_decoder_dim",),
    "uvdoc": EVERY,
    "uvdoc_backbone": EVERY,
    "zoedepth": EVERY,
    "gemma3n_audio": ("sscp_conv_channel_size",),
    "gemma4_audio": ("subsampling_conv_channels",),
    "pp_lcnet": EVERY,
    "pp_lcnet_v3": EVERY,
    "pp_lcnet_v4": EVERY,
    "pp_ocrv5_mobile_det": EVERY,
    "pp_ocrv5_mobile_rec": EVERY,
}
NARROW = {"base_channels": 32, "num_res_blocks": 1}  # 32: they are normalised in 32 groups
# Of channels and layers that its lists name. Values would vanish in narrow layers with the usual weights.
EFFICIENT = {"width_coefficient": 0.25, "depth_coefficient": 0.3, "initializer_range": 0.2}
TINY_FIELDS: Dict[str, Dict[str, Any]] = {
    "align": {"initializer_range": 0.2},
    "align_vision_model": EFFICIENT,
    "efficientnet": {**EFFICIENT, "hidden_dim": 320},
    "chameleon_vqgan": NARROW,
    "emu3_vqgan": {**NARROW, "hidden_size": 128},
    "glm_image_vqmodel": NARROW,
    "janus_vqgan": NARROW,
    "deepseek_ocr2_sam_vision_model": {"downsample_channels": [32, 56]},
    "depth_pro": {"patch_size": 56, "intermediate_hook_ids": [1, 0]},
    "kosmos-2": {"latent_query_num": 4},
    "tvp": {"max_img_size": 64, "visual_prompt_size": 8, "num_frames": 2},
    "sam2_hiera_det_model": {"image_size": [64, 64]},
    "sam3_vision_model": {"backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]]},
    "sam2_vision_model": {"backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]]},
    "aria": {"projector_patch_to_query_dict": {16: 4}},
    "blt": {"encoder_hash_byte_group_vocab": 500},
    "cvt": {"depth": [1, 2, 3]},
    "falcon_h1": {"mamba_d_ssm": 128, "mamba_n_heads": 16, "mamba_d_head": 8},
    "gemma3": {"mm_tokens_per_image": 4},
    "granite4_vision": {
        "deepstack_layer_map": [[-2, 1], [-1, 0]],
        "spatial_target_layers": [0, 0, 1, 1],
        "image_grid_pinpoints": [[56, 112]],
    },
    "seggpt": {
        "image_size": [128, 64],
        "num_hidden_layers": 5,
        "merge_index": 0,
        "intermediate_hidden_state_indices": [1, 2, 3, 4],
    },
    "shieldgemma2": {"mm_tokens_per_image": 4},
    "superglue": {"sinkhorn_iterations": 10},
    "superpoint": {"max_keypoints": 32},
    "swin2sr": {"embed_dim": 24},
    "t5gemma2": {"mm_tokens_per_image": 4},
    "t5gemma2_encoder": {"mm_tokens_per_image": 4},
    "vipllava": {"vision_feature_layers": [-1, -2]},
    "zamba": {"num_hidden_layers": 9},
    "zamba2": {"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "llava_next": {"image_grid_pinpoints": [[56, 112]]},
    "llava_next_video": {"image_grid_pinpoints": [[56, 112]]},
    "llava_onevision": {"image_grid_pinpoints": [[56, 112]]},
    "molmo2_adapter": {"vision_feature_layer": [1, 0]},
    "ovis2": {"hidden_size": 256},
    "perceiver": {"num_latents": 16, "d_latents": 160, "num_self_attends_per_block": 2},
}
# Configuration of an encoder → its fields that hold the width of the text model, if not the usual ones.
OUTPUT_WIDTHS: Dict[str, Tuple[str, ...]] = {"qwen2_vl_vision": ("hidden_size",)}
# Inputs of unusual shapes: kind of number, then sizes: B(atch), L(ength), a number, or a field of the configuration.
# "ids FIELD": ids below that field; "rows": the same numbers for each item of the batch; "places": across and down in a grid of
# that size; "pairs": keys and values of each kind of layer. "FIELD*2": a product, in which a list counts as its length.
Shape = Tuple[Any, ...]
SERIES = {
    "past_values": ("float", "B", "past_length"),
    "past_time_features": ("float", "B", "past_length", "num_time_features"),
    "past_observed_mask": ("ones", "B", "past_length"),
    "future_values": ("float", "B", "prediction_length"),
    "future_time_features": ("float", "B", "prediction_length", "num_time_features"),
}
STACKED = {"input_features": ("float", "B", 48, "feature_projection_input_dim")}
VIDEO = {"pixel_values": ("float", "B", "num_frames", 3, "H", "W")}
PATCHES = {
    "pixel_values": ("float", "B", 16, 768),
    "pixel_attention_mask": ("ones", "B", 16),
    "spatial_shapes": ("rows", 4, 4),
}
STRIP = {"pixel_values": ("float", "B", 3, 16, 256), "target_sizes": ("rows", 4, 4)}  # patches side by side
LINE = {"pixel_values": ("float", "B", 3, 48, 320)}  # of text
ONE_IMAGE = {"pixel_values": ("float", "B", 1, 3, "H", "W")}
TWO_IMAGES = {"pixel_values": ("float", "B", 2, 3, "H", "W")}
TILES = {"pixel_values": ("float", "B", 3, 3, "H", "W"), "image_sizes": ("sizes", "B")}
MUSIC = {
    "input_ids": ("ids vocab_size", "num_codebooks*B", "L"),
    "encoder_hidden_states": ("float", "B", "L", "hidden_size"),
}
# What an assistant gets from the model for which it drafts.
OF_ANOTHER = {"inputs_embeds": ("float", "B", 1, "backbone_hidden_size*2"), "shared_kv_states": ("pairs",)}
INPUTS: Dict[str, Dict[str, Shape]] = {
    "decision_transformer": {
        "states": ("float", "B", "L", "state_dim"),
        "actions": ("float", "B", "L", "act_dim"),
        "rewards": ("float", "B", "L", 1),
        "returns_to_go": ("float", "B", "L", 1),
        "timesteps": ("ids max_ep_len", "B", "L"),
    },
    "dia": {"decoder_input_ids": ("ids decoder_config.vocab_size", "B", "L", "decoder_config.num_channels")},
    "audio-spectrogram-transformer": {"input_values": ("float", "B", "max_length", "num_mel_bins")},
    "clap": {"input_features": ("float", "B", 1, 64, "audio_config.num_mel_bins")},
    "clvp": {"input_features": ("float", "B", "decoder_config.feature_size", 32)},
    "depth_pro": {"pixel_values": ("float", "B", 3, 224, 224)},
    "gemma3n_audio": {"audio_mel_mask": ("zeros bool", "B", 48)},
    "gemma4_audio": {"input_features": ("float", "B", 48, 128)},
    "granite_speech5_ctc": {"input_features": ("float", "B", 48, 320)},
    "granite_speech5_encoder": {"input_features": ("float", "B", 48, 320)},
    "kosmos-2": {"image_embeds_position_mask": ("rows", 0, 1, 1, 1, 1, *[0] * 11)},
    "kyutai_speech_to_text": {"input_ids": ("ids codebook_vocab_size", "B", "L", 33)},
    "muse_spark_audio": {"input_values": ("float", "B", 7680)},
    "perceiver": {"inputs": ("float", "B", "L", "d_model")},
    "pix2struct": {"flattened_patches": ("ones float32", "B", 16, 770)},
    "pp_ocrv5_mobile_rec": {"pixel_values": ("float", "B", 3, 96, 320)},
    "pp_ocrv5_server_rec": LINE,
    "pp_ocrv6_medium_rec": LINE,
    "pp_ocrv6_small_rec": LINE,
    "pp_ocrv6_tiny_rec": LINE,
    "fun_asr_nano_encoder": {"input_features": ("float", "B", 48, 560)},
    "deepseek_ocr2": {"num_local_patches": ("zeros", "B")},
    "lfm2_vl": PATCHES,
    "minicpm_ocr_vision": STRIP,
    "minicpmv4_7_vision": STRIP,
    "gemma4_vision": {"pixel_values": ("float", "B", 36, 768), "pixel_position_ids": ("places", 6, 6)},
    "gemma4_assistant": OF_ANOTHER,
    "gemma4_unified_assistant": OF_ANOTHER,
    "granite4_vision": TILES,
    "musicgen_decoder": MUSIC,
    "musicgen_melody_decoder": MUSIC,
    "muse_glimmer_assistant": {
        "noise_embeds": ("float", "B", "L", "hidden_size"),
        "context_hidden_states": ("float", "B", "L", "hidden_size*target_layer_ids"),
    },
    "omdet-turbo": {
        "classes_input_ids": ("ids text_config.vocab_size", 2, "L"),
        "classes_attention_mask": ("ones", 2, "L"),
        "tasks_input_ids": ("ids text_config.vocab_size", "B", "L"),
        "tasks_attention_mask": ("ones", "B", "L"),
        "classes_structure": ("full 2", "B"),
    },
    "pi0": {
        **ONE_IMAGE,
        "action_embeds": ("float", "B", 4, "dit_config.hidden_size"),
        "pixel_attention_mask": ("ones bool", "B", 1),
    },
    "qwen3_asr_encoder": {"input_features": ("float", "B", "num_mel_bins", 200)},
    "seggpt": {
        "pixel_values": ("float", "B", 3, 64, 64),
        "prompt_pixel_values": ("float", "B", 3, 64, 64),
        "prompt_masks": ("float", "B", 3, 64, 64),
    },
    "siglip2": PATCHES,
    "siglip2_vision_model": PATCHES,
    "neucodec": {"input_features": ("float", "B", 48, "semantic_model_config.feature_projection_input_dim")},
    "seamless_m4t": STACKED,
    "seamless_m4t_v2": STACKED,
    "wav2vec2-bert": STACKED,
    "speecht5": {
        "input_values": ("float", "B", "L", "hidden_size"),
        "decoder_input_values": ("float", "B", "L", "hidden_size"),
    },
    "speech_to_text": {"input_features": ("float", "B", 48, "input_feat_per_channel")},
    "speech-encoder-decoder": {"input_values": ("float", "B", 8000)},
    "timesfm": {
        "past_values": ("float", "B", "context_length"),
        "past_values_padding": ("zeros", "B", "context_length"),
        "freq": ("zeros", "B", 1),
    },
    "timesfm2_5": {"past_values": ("float", "B", "context_length")},
    "timesformer": VIDEO,
    "tvp": {"attention_mask": ("ones", "B", "L"), "pixel_values": ("float", "B", 2, 3, 64, 64)},
    "vibevoice_acoustic_tokenizer": {"input_values": ("float", "B", 1, 8000)},
    "video_llama_3": {"image_merge_sizes": ("ones", "B")},
    "video_llama_3_vision": {"merge_sizes": ("ones", "B")},
    "vit_mae": {"noise": ("float", "B", 16)},
    "xclip": {"pixel_values": ("float", "B", "vision_config.num_frames", 3, "H", "W")},
    "voxtral_realtime": {"input_features": ("float", "B", "audio_config.num_mel_bins", 128)},
    "xcodec2": {"input_features": ("float", "B", 25, "semantic_model_config.feature_projection_input_dim")},
    "xcodec": {"input_values": ("float", "B", 1, 8000)},
    "autoformer": SERIES,
    "informer": SERIES,
    "time_series_transformer": SERIES,
    "patchtsmixer": {"past_values": ("float", "B", "context_length", "num_input_channels")},
    "patchtst": {"past_values": ("float", "B", "context_length", "num_input_channels")},
    "idefics": {**ONE_IMAGE, "image_attention_mask": ("ones", "B", "L", 1)},
    "idefics2": ONE_IMAGE,
    "idefics3": ONE_IMAGE,
    "smolvlm": ONE_IMAGE,
    "modernvbert": ONE_IMAGE,
    "efficientloftr": TWO_IMAGES,
    "lightglue": TWO_IMAGES,
    "superglue": TWO_IMAGES,
    "llava_next": TILES,
    "llava_next_video": TILES,
    "llava_onevision": TILES,
    "instructblip": {"qformer_input_ids": ("ids qformer_config.vocab_size", "B", "L")},
    "instructblipvideo": {"qformer_input_ids": ("ids qformer_config.vocab_size", "B", "L")},
    "kimi_k25_vision": {"pixel_values": ("float", 16, 3, 14, 14)},
    "lxmert": {
        "visual_feats": ("float", "B", 4, "visual_feat_dim"),
        "visual_pos": ("float", "B", 4, "visual_pos_dim"),
    },
    "oneformer": {"task_inputs": ("float", "B", "task_seq_len")},
    "blip_2_qformer": {
        "query_embeds": ("float", "B", 4, "hidden_size"),
        "encoder_hidden_states": ("float", "B", "L", "encoder_hidden_size"),
    },
}
