"""Stands for turnkey's package in scripts that import its parser."""
