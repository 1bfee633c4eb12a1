"""Training and inference of image classification."""

from __future__ import annotations

import pytest
from shipped_benchmarks import checked_lines, load, prepare, run_here

pytest.importorskip("torch")
vision = load("vision")
inference = load("vision_inference")


def test_training_computes_what_it_claims(tmp_path):
    assert len(checked_lines("vision", data=tmp_path)) == 3


@pytest.mark.long
def test_training_with_files_computes_what_it_claims(tmp_path):
    argv = ("--loader", "pipeline")
    assert prepare("vision", *argv, data=tmp_path) == tmp_path / "vision" / "tiny"
    assert checked_lines("vision", *argv, data=tmp_path, is_process=True)


@pytest.mark.parametrize(
    ("model", "layout"),
    [
        ("vit_b_16", "--no-channels-last"),
        pytest.param("convnext_large", "--no-channels-last", marks=pytest.mark.long),
        pytest.param("convnext_tiny", "--no-channels-last", marks=pytest.mark.long),
        # what the layout changes is the same in the larger ones
        pytest.param("convnext_tiny", "--channels-last", marks=pytest.mark.long),
    ],
)
def test_other_models_compute_what_they_claim(capsys, model, layout):
    options = vision.arguments(["--check", "--device", "cpu", "--threads", "1", "--model", model, layout])
    assert vision.run(options, vision.build) == 0, capsys.readouterr().out


def test_inference_computes_what_it_claims(tmp_path):
    assert len(checked_lines("vision_inference", data=tmp_path)) == 4


@pytest.mark.parametrize("model", [name for name in vision.NAMES if name != "resnet50"])
def test_inference_of_other_models_computes_what_it_claims(capsys, model):
    argv = ["--check", "--device", "cpu", "--threads", "1", "--model", model, "--batch-size", "3"]
    assert inference.run(inference.arguments(argv), inference.build) == 0, capsys.readouterr().out


def test_batch_sizes_are_those_of_the_model_unless_given():
    assert vision.arguments(["--size", "full", "--model", "convnext_large"]).batch_size == 64
    assert vision.arguments(["--size", "full", "--batch-size", "7"]).batch_size == 7


def test_full_size_is_in_bf16_with_channels_last_unless_told():
    full = vision.arguments(["--size", "full"])
    assert (full.precision, full.channels_last) == ("bf16", True)
    told = vision.arguments(["--size", "full", "--no-channels-last", "--precision", "fp32"])
    assert (told.precision, told.channels_last) == ("fp32", False)


def test_without_its_files_the_pipeline_says_what_to_do(tmp_path):
    done = run_here("vision", "--loader", "pipeline", data=tmp_path)
    assert done.returncode != 0
    assert "nothing was prepared there; run prepare.py with the same arguments" in done.stderr
