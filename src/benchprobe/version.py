"""The version of benchprobe, benchmodels and benchwright: the only place that states it."""

__version__ = "0.1.0"
