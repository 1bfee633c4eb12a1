"""`python -m benchprobe`: runs a script and shows what its stream says."""
