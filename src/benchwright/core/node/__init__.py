"""The machine: its health, processes left running on it, and the machines of a system file."""
