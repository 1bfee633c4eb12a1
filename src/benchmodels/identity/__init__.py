"""Which model this is: a hash of its structure, its own code and its inputs."""
