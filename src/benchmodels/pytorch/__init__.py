"""Everything specific to torch: modules, their parts, and how their calls are observed."""
