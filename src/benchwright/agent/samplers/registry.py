"""Which samplers there are. The agent itself uses `find_samplers`, which needs fewer imports."""

from __future__ import annotations

from collections.abc import Callable

from benchwright.agent.samplers import GROUP
from benchwright.agent.samplers.base import SampledJob, Sampler
from benchwright.core.registry import Registry

SAMPLERS: Registry[Callable[[SampledJob], Sampler | None]] = Registry(GROUP, "sampler")
