"""Our own processes: finding them, signalling them and nothing else."""
