"""A llama.cpp server with a model of random weights, half a megabyte: real streams, real usage, in a fraction of a second.

python small_llama.py PORT FOLDER
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

LAYERS, WIDTH, HEADS, HIDDEN, CONTEXT = 2, 64, 4, 128, 2048


def tokens() -> list[str]:
    """Bytes, and single letters with and without a blank before them."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256)), *letters, *(f"▁{c}" for c in letters), "▁"]


def write_model(path: Path) -> None:
    import numpy as np
    from gguf import GGUFWriter, TokenType

    source = np.random.default_rng(0)
    words = tokens()
    writer = GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words)
    writer.add_token_scores([-float(n) for n in range(len(words))])
    kinds = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL, *[TokenType.BYTE] * 256]
    writer.add_token_types([*kinds, *[TokenType.NORMAL] * (len(words) - len(kinds))])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def weights(*shape: int) -> Any:
        return source.normal(0, 0.05, shape).astype(np.float32)

    answers = 100 * weights(len(words), WIDTH)
    answers[: len(kinds)] = 0  # far less likely than letters: of bytes that are no text, an answer would be empty
    writer.add_tensor("token_embd.weight", weights(len(words), WIDTH))
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", answers)
    for n in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{n}.{name}.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{n}.{name}.weight", weights(WIDTH, WIDTH))
        for name, shape in (("ffn_gate", (HIDDEN, WIDTH)), ("ffn_up", (HIDDEN, WIDTH)), ("ffn_down", (WIDTH, HIDDEN))):
            writer.add_tensor(f"blk.{n}.{name}.weight", weights(*shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    import xllamacpp

    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    model = folder / "small.gguf"
    write_model(model)
    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.hostnames, settings.port = ["127.0.0.1"], port
    settings.n_ctx, settings.n_parallel, settings.endpoint_metrics = CONTEXT, 2, True
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(settings)
    print(getattr(server, "listening_address", port), flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
