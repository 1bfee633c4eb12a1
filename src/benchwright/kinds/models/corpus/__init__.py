"""Many models at once: how far each got on each runtime, why the others did not, and how fast they are."""
