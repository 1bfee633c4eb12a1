"""Files written whole, and validated when read."""
