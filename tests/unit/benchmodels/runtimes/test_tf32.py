"""Where float32 is computed in TF32: from torch's settings and from what the model multiplies."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from forked_python import SOURCES, ForkedPython

from benchmodels.runtimes.parts.tf32 import (
    CONVOLUTIONS,
    KINDS,
    PRODUCTS,
    RECURRENT,
    Arithmetic,
    allowed_by,
    arithmetic,
    as_seen,
)

USUAL = [CONVOLUTIONS, RECURRENT]  # what torch allows by itself
AMPERE, VOLTA = (8, 0), (7, 0)


def older(matmul: bool, cudnn: bool) -> Any:
    """torch.backends before there was a precision for each kind."""
    return SimpleNamespace(
        cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=matmul)), cudnn=SimpleNamespace(allow_tf32=cudnn)
    )


def newer(matmul: str, conv: str, rnn: str) -> Any:
    precisions = {"conv": SimpleNamespace(fp32_precision=conv), "rnn": SimpleNamespace(fp32_precision=rnn)}
    return SimpleNamespace(
        cuda=SimpleNamespace(matmul=SimpleNamespace(fp32_precision=matmul)), cudnn=SimpleNamespace(**precisions)
    )


@pytest.mark.parametrize(
    ("backends", "allowed"),
    [
        (older(matmul=False, cudnn=True), USUAL),
        (older(matmul=True, cudnn=False), [PRODUCTS]),
        (older(matmul=True, cudnn=True), list(KINDS)),
        (older(matmul=False, cudnn=False), []),
        (newer("none", "tf32", "tf32"), USUAL),
        (newer("ieee", "tf32", "ieee"), [CONVOLUTIONS]),
        (newer("tf32", "none", "ieee"), [PRODUCTS]),
    ],
)
def test_settings_of_every_torch_are_read(backends: Any, allowed: list[str]) -> None:
    assert allowed_by(backends, AMPERE) == allowed_by(backends, None) == allowed
    assert allowed_by(backends, VOLTA) == [], "the GPU has no TF32, whatever is allowed"


@pytest.mark.parametrize(
    ("allowed", "work", "found"),
    [
        (USUAL, {CONVOLUTIONS: 9.0, PRODUCTS: 1.0}, Arithmetic("fp32", "convolutions only", (CONVOLUTIONS,))),
        (USUAL, {PRODUCTS: 1.0}, Arithmetic("fp32")),
        (USUAL, {CONVOLUTIONS: 9.0}, Arithmetic("tf32", "convolutions", (CONVOLUTIONS,))),
        (USUAL, {CONVOLUTIONS: 9.0, PRODUCTS: 0.0}, Arithmetic("tf32", "convolutions", (CONVOLUTIONS,))),
        (USUAL, {RECURRENT: 9.0, PRODUCTS: 1.0}, Arithmetic("fp32", "recurrent layers only", (RECURRENT,))),
        ([PRODUCTS], {CONVOLUTIONS: 9.0, PRODUCTS: 1.0}, Arithmetic("fp32", "products only", (PRODUCTS,))),
        (KINDS, {CONVOLUTIONS: 9.0, PRODUCTS: 1.0}, Arithmetic("tf32", "all products", (PRODUCTS, CONVOLUTIONS))),
        ([], {CONVOLUTIONS: 9.0, PRODUCTS: 1.0}, Arithmetic("fp32")),
    ],
)
def test_a_model_computes_in_tf32_only_if_everything_does(
    allowed: list[str], work: dict[str, float], found: Arithmetic
) -> None:
    assert arithmetic("fp32", allowed, work) == found
    assert arithmetic("bf16", allowed, work) == Arithmetic("bf16")


def test_of_a_model_whose_arithmetic_is_not_known_little_is_said() -> None:
    found = arithmetic("fp32", USUAL, {})
    assert (found.precision, found.where) == ("fp32", "convolutions and recurrent layers, as far as the model has any")
    assert arithmetic("fp32", [], {}) == Arithmetic("fp32")


SWITCHES = {
    "pass": USUAL,
    "torch.set_float32_matmul_precision('high')": list(KINDS),
    "torch.backends.cudnn.allow_tf32 = False": [],
    "torch.backends.cuda.matmul.allow_tf32 = True": list(KINDS),
    "torch.backends.fp32_precision = 'ieee'": [],
    "torch.backends.fp32_precision = 'tf32'": list(KINDS),
    "torch.backends.cudnn.rnn.fp32_precision = 'ieee'": [CONVOLUTIONS],
}
# Each switch is turned in a process of its own, forked from one that has imported torch, which takes longest.
READ_EACH = """
import json, os, sys
import torch
from benchmodels.runtimes.base import RuntimeOptions
from benchmodels.runtimes.parts.tf32 import allowed_by, without_tf32
from benchmodels.runtimes.parts.torch_modules import set_threads
for setting in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        exec(setting)
        set_threads(RuntimeOptions())
        before = allowed_by(torch.backends, (9, 0))
        with without_tf32():
            inside = allowed_by(torch.backends, (9, 0))
        print(json.dumps([setting, [before, inside, allowed_by(torch.backends, (9, 0))]]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, setting
"""


def test_torch_itself_is_read_whatever_switches_a_script_uses(forked_python: ForkedPython, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    expected = dict(SWITCHES)
    if not hasattr(torch.backends, "fp32_precision"):  # this torch has no such switch
        expected = {setting: allowed for setting, allowed in expected.items() if "fp32_precision" not in setting}
    elif tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
        # an older torch goes on computing convolutions in TF32, as seen on an H200 with 2.11
        del expected["torch.backends.fp32_precision = 'ieee'"]
    path = tmp_path / "program.py"
    path.write_text(READ_EACH)
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = forked_python.run(str(path), *expected, env=env, cwd=tmp_path, plainly=True)
    assert done.returncode == 0, done.stderr
    read = dict(map(json.loads, done.stdout.splitlines()))
    assert read == {setting: [allowed, [], allowed] for setting, allowed in expected.items()}


ALL_TF32 = Arithmetic("tf32", "all products", (PRODUCTS, CONVOLUTIONS))
PARTLY = Arithmetic("fp32", "convolutions only", (CONVOLUTIONS,))


@pytest.mark.parametrize(
    ("told", "error", "own", "seen", "words"),
    [
        (ALL_TF32, 4e-4, 3e-7, ALL_TF32, None),
        (ALL_TF32, 6e-7, 3e-7, Arithmetic("fp32"), "was not used"),
        (PARTLY, 2e-6, 4e-7, Arithmetic("fp32"), "allowed in convolutions"),
        (PARTLY, 3e-4, 4e-7, PARTLY, None),
        (Arithmetic("fp32"), 6e-4, 3e-7, Arithmetic("fp32"), "2,000 times the model's own"),
        (Arithmetic("fp32"), 6e-7, 3e-7, Arithmetic("fp32"), None),
        (Arithmetic("bf16"), 6e-3, 3e-7, Arithmetic("bf16"), None),
        (ALL_TF32, None, 3e-7, ALL_TF32, None),
        (ALL_TF32, 6e-7, 0.0, ALL_TF32, None),
    ],
)
def test_the_error_says_whether_tf32_was_used_where_it_may_be(told, error, own, seen, words) -> None:
    found, text = as_seen(told, error, own)
    assert found == seen
    assert (text is None) == (words is None)
    assert words is None or words in text
