"""For whoever has set $LAB_BASE for the scripts of a laboratory."""

from __future__ import annotations


class LabVariables:
    prefix = "LAB_"
    names = frozenset(["BASE"])
