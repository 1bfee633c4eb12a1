"""The only composer: target → Benchmarks → Jobs → Events → Run."""
