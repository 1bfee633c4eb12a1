"""What a Run looks like to people and to other programs."""
