"""The version of benchprobe."""

__version__ = "0.1.0"
