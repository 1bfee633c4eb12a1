"""Every seam's registry, for those who want to know what is installed."""

from __future__ import annotations

from typing import Any

from benchmodels.runtimes import registry as runtimes
from benchmodels.zoo import registry as zoos
from benchwright.agent.extractors.registry import EXTRACTORS
from benchwright.agent.samplers.registry import SAMPLERS
from benchwright.core.registry import Registry
from benchwright.core.stream_dialect import STREAM_DIALECTS
from benchwright.executors.registry import EXECUTORS
from benchwright.kinds.registry import KINDS
from benchwright.kinds.spec.dialects import DIALECTS as SPEC_DIALECTS
from benchwright.kinds.suite.dialect import DIALECTS as SUITE_DIALECTS
from benchwright.options.hints import HINTS
from benchwright.options.spellings import SPELLINGS
from benchwright.options.variables import VARIABLES
from benchwright.report.export.base import EXPORTERS
from benchwright.report.registry import REPORTERS
from benchwright.report.score_rule import SCORES
from benchwright.runs.delivery import DELIVERIES
from benchwright.runs.importers import IMPORTERS
from benchwright.runs.provenance.working_trees import WORKING_TREES
from benchwright.store.base import STORES


def all_registries() -> list[Registry[Any]]:
    """Loads none of their variants."""
    return [
        KINDS,
        Registry(runtimes.GROUP, "runtime", runtimes.BUILT_IN),
        Registry(zoos.GROUP, "zoo", zoos.BUILT_IN),
        SAMPLERS,
        EXTRACTORS,
        EXECUTORS,
        STORES,
        REPORTERS,
        IMPORTERS,
        EXPORTERS,
        DELIVERIES,
        SUITE_DIALECTS,
        SPEC_DIALECTS,
        STREAM_DIALECTS,
        SCORES,
        HINTS,
        SPELLINGS,
        VARIABLES,
        WORKING_TREES,
    ]
