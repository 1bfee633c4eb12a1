"""The command line: parsing and printing only.

The module of a command is imported for its --help and for completion, too, so it reaches those of `runner`, `results` and `regress` through the
package, which imports them when they are used, and functions import what else is slow to import.
"""
