"""A process that has imported torch, and forks a fresh process for each measurement: `python -m benchmodels.warm`."""
