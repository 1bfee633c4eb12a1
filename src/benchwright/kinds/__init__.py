"""Readers that turn what a user names into Benchmarks.

Every kind may be asked whether it recognises a target, so functions import what only one of them needs.
"""
