"""`transformers serve` with a model of random weights whose words are those of our random workloads.

python small_transformers.py PORT FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from benchload.workload import WORDS

CHAT = "{% for message in messages %}{{ message['content'] }} {% endfor %}"


def write_model(folder: Path) -> None:
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    made: Any = transformers  # whose types know neither its own numbers nor its functions
    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(["<unk>", *WORDS])}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = made.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", pad_token="<unk>")
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = made.LlamaConfig(vocab_size=len(WORDS) + 1, **sizes, bos_token_id=None, eos_token_id=None, pad_token_id=0)
    made.LlamaForCausalLM(config).save_pretrained(folder)


def main() -> None:
    port, folder = sys.argv[1:]
    write_model(Path(folder))
    serve = "import sys; from transformers.cli.transformers import app; app(sys.argv[1:])"
    words = ["serve", folder, "--host", "127.0.0.1", "--port", port, "--device", "cpu"]
    os.execv(sys.executable, [sys.executable, "-c", serve, *words])


if __name__ == "__main__":
    main()
