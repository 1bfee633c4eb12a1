"""Which extractor a metric is read by: `--metric NAME=EXTRACTOR:PATTERN`."""

from __future__ import annotations

from collections.abc import Callable

from benchwright.agent.extractors.base import ENTRY_POINT_GROUP, Extractor
from benchwright.core.registry import Registry

EXTRACTORS: Registry[Callable[[str], Extractor]] = Registry(ENTRY_POINT_GROUP, "extractor")
