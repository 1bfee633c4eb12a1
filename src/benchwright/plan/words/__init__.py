"""Words of a suite: placeholders, conditions, and what they may say of the machine."""
