"""Where milabench keeps `merge`."""

from .utils import merge

__all__ = ["merge"]
