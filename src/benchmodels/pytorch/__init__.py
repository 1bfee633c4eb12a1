"""What is known about torch: its modules, how their calls are seen, the modes they run in."""
