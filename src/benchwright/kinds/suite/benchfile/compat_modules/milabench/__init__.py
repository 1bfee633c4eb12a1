"""As much of milabench as a benchfile.py needs that only sets attributes. Seen by that file only, in a process of its own."""
