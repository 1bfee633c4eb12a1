"""Every seam's registry, for those who want to know what is installed."""

from __future__ import annotations

from typing import Any

from benchwright.core.plugins.registry import Registry


def all_registries() -> list[Registry[Any]]:
    """Kinds, runtimes, zoos, samplers, extractors, executors, stores, reporters, importers, exporters, deliveries, hints. Loads none of their variants."""
    from benchmodels.runtimes import registry as runtimes
    from benchmodels.zoo import registry as zoos
    from benchwright.agent.extractors.registry import EXTRACTORS
    from benchwright.agent.samplers.registry import SAMPLERS
    from benchwright.delivery.base import DELIVERIES
    from benchwright.exchange.registry import IMPORTERS
    from benchwright.executors.registry import EXECUTORS
    from benchwright.kinds.registry import KINDS
    from benchwright.options.hints import HINTS
    from benchwright.report.export.base import EXPORTERS
    from benchwright.report.registry import REPORTERS
    from benchwright.store.base import STORES

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
        HINTS,
    ]
