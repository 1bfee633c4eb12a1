"""Reports of a Run, for people and for other programs."""
