"""Progress of a run and of other long work: what is known of it, in words. The command line and notebooks show it."""
