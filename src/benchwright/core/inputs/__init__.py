"""What a user asks to have measured."""
