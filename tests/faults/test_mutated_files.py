"""Damaged files through every command that reads them: streams, run.json, plan.json, machine.json, packages, annotations,
baselines, the store, kept imports, files of other tools, marks of environments and data, scaling files, build manifests.

`make fuzz MUTANTS=5000` tries more of them than CI does. Each has a number: `FIRST=1234 MUTANTS=1` tries one again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mutant_trials import WEIGHTS, Trials

pytestmark = pytest.mark.compat  # files of other tools are among them

FIRST = int(os.environ.get("FIRST", "0"))
MUTANTS = int(os.environ.get("MUTANTS", "120"))
TOGETHER = 20


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(tmp_path_factory.mktemp("mutants"))


FIRSTS = range(FIRST, FIRST + MUTANTS, TOGETHER)


@pytest.mark.unmeasured
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "first", [pytest.param(first, marks=() if first == FIRST else pytest.mark.long) for first in FIRSTS]
)
def test_no_damage_ends_in_a_traceback_or_hides_a_neighbour(trials: Trials, first: int) -> None:
    seeds = range(first, min(first + TOGETHER, FIRST + MUTANTS))
    wrong = [said for seed in seeds for said in trials(seed)]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("of", WEIGHTS)
def test_every_kind_of_file_is_among_those_that_are_damaged(trials: Trials, of: str) -> None:
    assert not trials(10_000, of, commands=2)


@pytest.mark.unmeasured
@pytest.mark.timeout(1800)
def test_no_value_of_a_damaged_stream_changes_without_a_note(trials: Trials) -> None:
    wrong = list(trials.values(range(FIRST, FIRST + MUTANTS)))
    assert not wrong, "\n".join(wrong)


def test_the_same_number_makes_the_same_damage(tmp_path: Path) -> None:
    import random

    from mutants import mutate

    contents = []
    for _ in range(2):
        for seed in range(30):
            (tmp_path / "x").unlink(missing_ok=True)
            (tmp_path / "x").write_text('{"a": [1, 2, {"b": "c"}], "d": null}\n')
            mutate(random.Random(f"same {seed}"), tmp_path / "x", "json", strange=False)
            contents.append((tmp_path / "x").read_bytes())
    assert contents[:30] == contents[30:]
    assert len(set(contents)) > 15
