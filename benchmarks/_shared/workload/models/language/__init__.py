"""Transformers for language: encoders as BERT, decoders as GPT-2 and Llama."""
