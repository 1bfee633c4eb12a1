"""Models of transformers, built from configurations: one that generates, token by token, and one that is called twice."""

import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

sizes = {"vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
gpt = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, **sizes)).eval()
gpt.generate(torch.ones(1, 5, dtype=torch.long), max_new_tokens=12, min_new_tokens=12, do_sample=False)
shape = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
bert = BertModel(BertConfig(**shape, **sizes)).eval()
ids, mask = torch.ones(2, 7, dtype=torch.long), torch.ones(2, 7, dtype=torch.long)
with torch.no_grad():
    bert(input_ids=ids, attention_mask=mask)
    bert(ids, mask)
