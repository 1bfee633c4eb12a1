"""YAML files as plain values that know their places."""
