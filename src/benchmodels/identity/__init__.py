"""Which model this is: a hash of its structure, the user's code and its inputs."""
