# labels: author::google name::bert_small task::embedding license::apache-2.0
"""The shape of https://huggingface.co/google/bert_uncased_L-4_H-256_A-4, with random weights."""

import torch
from transformers import BertConfig, BertModel

from benchprobe import parse

batch_size, max_seq_length = parse(["batch_size", "max_seq_length"])

torch.manual_seed(0)
config = BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
model = BertModel(config)
model.eval()

with torch.no_grad():
    tokens = torch.randint(0, config.vocab_size, (batch_size, max_seq_length))
    model(input_ids=tokens, attention_mask=torch.ones_like(tokens))
