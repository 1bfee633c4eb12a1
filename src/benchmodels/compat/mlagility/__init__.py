"""Stands for MLAgility's package in scripts that import its parser or its labels."""
