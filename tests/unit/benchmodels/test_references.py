"""References are computed once, kept, and verified when used again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmodels.build.references import kept_reference
from benchmodels.check.output_check import OutputError
from benchmodels.check.reference import FLOAT64, Reference

MADE = Reference({"y": np.arange(3, dtype="float64")}, FLOAT64, [OutputError(1e-9, 1e-9, 1.0)], None, "a note", None)


class Finder:
    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> Reference:
        self.asked += 1
        return MADE


def ask(
    folder: Path | str, find: Finder, parts: dict[str, object] | None = None, rebuild: str = "if_needed"
) -> Reference:
    return kept_reference(str(folder), parts or {"file": "a"}, find, lambda text: None, rebuild)


def test_a_reference_is_computed_once_and_comes_back_whole(tmp_path: Path) -> None:
    find = Finder()
    for _ in range(2):
        found = ask(tmp_path, find)
        assert found._replace(outputs={}) == MADE._replace(outputs={})
        assert found.outputs["y"].dtype == np.float64
        assert np.array_equal(found.outputs["y"], MADE.outputs["y"])
    assert find.asked == 1


def test_other_inputs_have_another_reference(tmp_path: Path) -> None:
    find = Finder()
    ask(tmp_path, find)
    ask(tmp_path, find, {"file": "a", "inputs": "b"})
    assert find.asked == 2


def test_a_damaged_one_is_computed_again(tmp_path: Path) -> None:
    find = Finder()
    ask(tmp_path, find)
    [kept] = tmp_path.rglob("reference.npz")
    kept.write_bytes(b"damaged")
    assert np.array_equal(ask(tmp_path, find).outputs["y"], MADE.outputs["y"])
    assert find.asked == 2
    ask(tmp_path, find, rebuild="always")
    assert find.asked == 3


def test_one_that_cannot_be_computed_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> Reference:
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        kept_reference(str(tmp_path), {"file": "a"}, fail, lambda text: None, "if_needed")
    find = Finder()
    ask(tmp_path, find)
    assert find.asked == 1


def test_without_a_folder_nothing_is_kept() -> None:
    find = Finder()
    ask("", find)
    ask("", find)
    assert find.asked == 2
