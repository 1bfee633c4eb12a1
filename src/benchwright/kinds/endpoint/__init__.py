"""Servers of language models as targets: `openai:http://HOST:PORT/v1`."""
