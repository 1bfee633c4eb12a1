"""What is specific to torch: modules, their parts, and how their calls are seen."""
