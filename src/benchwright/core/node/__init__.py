"""The machine: how it is, what it may have left running, and the machines of a system file."""
