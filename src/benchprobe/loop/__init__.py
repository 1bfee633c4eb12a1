"""`iterate` and `give` in a measured process: the loop, its bookkeeping, and the probe that owns them."""
