"""How the shipped benchmarks are run: options, devices, the measured loop, and the check of their claims."""
