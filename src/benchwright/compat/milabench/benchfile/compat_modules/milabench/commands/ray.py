"""Clusters of Ray: known by name, so that a benchfile that needs one only on several machines can be used on one."""

from __future__ import annotations

from typing import Any

from ..utils import NotKnown
from .nodes import SequenceCommand


class RayCluster(SequenceCommand):
    def __init__(self, executor: Any, **options: Any) -> None:
        raise NotKnown("milabench.commands.ray.RayCluster")
