"""Distributions, intervals, percentiles, tests of ratios and of drift: plain functions of numbers."""
