"""Zoos: libraries that hold many models. Each model is built from its configuration, with random weights and valid inputs."""
