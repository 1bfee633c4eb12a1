"""Holds `mlagility.common.labels`."""
