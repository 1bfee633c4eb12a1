"""A short campaign of random kills; `make kills KILLS=500` runs a long one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture
def kill_campaign() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kill_campaign", Path(__file__).with_name("kill_campaign.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_random_kills_lose_nothing_repeat_nothing_and_leave_nobody(kill_campaign: ModuleType) -> None:
    kills, problems = kill_campaign.campaign(kills=6, seed=20)
    assert problems == []
    assert kills.total() >= 6
