"""The one place that holds the version; both wheels are built with it."""

__version__ = "0.1.0"
