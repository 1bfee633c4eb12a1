"""One job from its start to its end: start its program, watch it, end it in time, say how it ended."""
