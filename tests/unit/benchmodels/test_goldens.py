"""Outputs against golden ones: figures as computed by hand, and nothing that cannot be compared passes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from benchmodels.check.array_files import ReadArray, UnreadableArray, read_array
from benchmodels.check.goldens import golden_error


def flat(*numbers: float) -> ReadArray:
    return ReadArray(np.array(numbers, dtype=np.float64), shaped=False)


def test_figures_are_those_computed_by_hand() -> None:
    found = golden_error("o", flat(1.0, 2.5, 3.0), flat(1.0, 2.0, 3.0), {})
    assert found.figures["max_abs"] == 0.5
    assert found.figures["relative_l2"] == pytest.approx(0.5 / math.sqrt(14))
    assert found.figures["cosine"] == pytest.approx((1 + 5 + 9) / math.sqrt((1 + 6.25 + 9) * 14))
    assert found.figures["top1"] == 1.0
    assert found.worst == {"index": [1], "expected": 2.0, "got": 2.5}
    assert found.wrong is None
    assert found.statistics["diff_summary"]["p100"] == 0.5
    assert found.statistics["control_summary"]["stdev"] == pytest.approx(np.std([1, 2, 3]))


def test_top_k_counts_rows_and_shares_of_five() -> None:
    golden = np.array([[9, 8, 7, 6, 5, 0, 0.5], [1, 2, 3, 4, 5, 6, 7]], dtype=np.float32)
    got = golden.copy()
    got[0, 0], got[0, 5] = 0.1, 9.5  # the largest changes, and one of five leaves
    found = golden_error("o", ReadArray(got), ReadArray(golden), {})
    assert found.figures["top1"] == 0.5
    assert found.figures["top5"] == pytest.approx((4 / 5 + 1) / 2)


@pytest.mark.parametrize(
    ("tolerance", "wrong"),
    [
        ({"max_abs": 0.5}, None),
        ({"max_abs": 0.4}, "max_abs 0.5 is above 0.4; furthest off at [1]: 2 expected, 2.5 found"),
        ({"cosine": 0.9999}, "cosine 0.9944"),
        ({"top5": 1.0}, "top5 is not known for this output"),
    ],
)
def test_a_tolerance_is_the_worst_that_passes(tolerance: dict[str, float], wrong: str | None) -> None:
    found = golden_error("o", flat(1.0, 2.5, 3.0), flat(1.0, 2.0, 3.0), tolerance).wrong
    assert found is None if wrong is None else str(found).startswith(wrong)


@pytest.mark.parametrize(
    ("got", "golden", "wrong"),
    [
        (flat(1, 2), flat(1, math.nan), "the golden is nan at [1]"),
        (flat(1, math.inf), flat(1, 2), "the output is inf at [1]"),
        (flat(1, 2), flat(1, 2, 3), "the output has 2 numbers, the golden 3"),
        (ReadArray(np.ones((1, 3))), ReadArray(np.ones(3)), "the output's shape is 1×3, the golden's 3"),
        (flat(), flat(), "there is nothing to compare"),
        (ReadArray(np.array(["a"])), flat(1), "the output holds no real numbers"),
        (flat(1e39, 1), flat(1, 1), "50.00% of it is infinite"),
    ],
)
def test_what_cannot_be_compared_never_passes(got: ReadArray, golden: ReadArray, wrong: str) -> None:
    found = golden_error("o", got, golden, {"max_abs": 1e9})
    assert found.wrong is not None
    assert found.wrong.startswith(wrong)
    assert not found.figures


def test_flat_text_takes_the_shape_of_the_other_side() -> None:
    golden = ReadArray(np.arange(6.0).reshape(2, 3))
    found = golden_error("o", flat(0, 1, 2, 3, 4, 9), golden, {})
    assert found.worst is not None
    assert found.worst["index"] == [1, 2]


# -- files ------------------------------------------------------------------------------------------------------------


def test_every_format_gives_the_same_numbers(tmp_path: Path) -> None:
    values = np.array([[0.5, -1.25, 3e-7], [1, 2, 3]], dtype=np.float32)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "a.npz", other=values + 1, out=values)
    save_file({"other": values + 1, "out": values}, tmp_path / "a.safetensors")
    (tmp_path / "a.txt").write_text("\n".join(repr(float(v)) for v in values.reshape(-1)) + "\n")
    (tmp_path / "caffe2.txt").write_text("2,3,\n" + ",".join(repr(float(v)) for v in values.reshape(-1)) + ",\n")
    for name in ("a.npy", "a.npz", "a.safetensors", "a.txt", "caffe2.txt"):
        found = read_array(str(tmp_path / name), "out")
        assert np.array_equal(np.asarray(found.values, dtype=np.float32).reshape(2, 3), values), name
        assert found.shaped == (name != "a.txt")


def test_bfloat16_is_read_exactly(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file as save_tensors

    tensor = torch.tensor([1.5, -0.0078125], dtype=torch.bfloat16)
    save_tensors({"x": tensor}, tmp_path / "b.safetensors")
    assert read_array(str(tmp_path / "b.safetensors"), "out").values.tolist() == [1.5, -0.0078125]


OUTSIDE = b'{"x": {"dtype": "F32", "shape": [9], "data_offsets": [0, 999]}}'


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.txt", b"1\nx\n", "line 2: 'x' is not a number"),
        ("a.txt", b"\n", "holds no number"),
        ("a.txt", b"2,3\n1,2,3\n", "line 2: 3 numbers for the sizes 2×3"),
        ("a.txt", b"2,1\n1,2\n3\n4,5,6", "line 3: other sizes"),
        ("a.txt", b"2,1\n1,2\n3,1\n", "line 3: a line of sizes without its numbers"),
        ("a.npy", b"no", "is no .npy file of numbers"),
        ("a.npz", b"PK\x03\x04", "is no .npz file"),
        ("a.safetensors", b"\xff" * 20, "is no safetensors file"),
        ("a.safetensors", len(OUTSIDE).to_bytes(8, "little") + OUTSIDE, "'x' is outside the file"),
    ],
)
def test_a_damaged_file_is_named_for_what_it_is(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableArray) as error:
        read_array(str(tmp_path / name), "x")
    assert str(error.value).startswith(why)


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(UnreadableArray, match="allow_pickle"):
        read_array(str(tmp_path / "a.npy"), "x")


def test_a_file_of_several_needs_the_outputs_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.ones(1), b=np.ones(1))
    with pytest.raises(UnreadableArray, match="has no array 'c'; it has a, b"):
        read_array(str(tmp_path / "a.npz"), "c")


arrays = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@given(arrays, st.data())
def test_what_differs_never_passes_a_tolerance_of_zero(values: list[float], data: st.DataObject) -> None:
    golden = flat(*values)
    assert golden_error("o", flat(*values), golden, {"max_abs": 0.0}).wrong is None
    place = data.draw(st.integers(0, len(values) - 1))
    other: list[Any] = list(values)
    other[place] += data.draw(st.sampled_from([1.0, -3.5, 1e3]))
    found = golden_error("o", flat(*other), golden, {"max_abs": 0.0})
    assert found.wrong is not None
    assert found.worst == {"index": [place], "expected": values[place], "got": other[place]}
    assert found.figures["max_abs"] == pytest.approx(abs(other[place] - values[place]))
