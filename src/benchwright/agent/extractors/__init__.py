"""Reads metrics out of a program's log while it grows."""

from __future__ import annotations

from benchwright.agent.extractors.base import Block, Extractor, Hits, MetricValues
from benchwright.agent.extractors.scanner import LogScanner

__all__ = ["Block", "Extractor", "Hits", "LogScanner", "MetricValues"]
