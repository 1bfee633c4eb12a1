"""What a measured process does at `iterate` and `give`: the loop, its bookkeeping, and the probe that owns them."""
