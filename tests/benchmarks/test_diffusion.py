"""Training a diffusion model."""

from __future__ import annotations

import pytest
from shipped_benchmarks import checked_lines, load

pytest.importorskip("torch")
diffusion = load("diffusion")


def test_it_computes_what_it_claims(tmp_path):
    assert len(checked_lines("diffusion", data=tmp_path)) == 3


@pytest.mark.long
def test_the_model_for_large_images_computes_what_it_claims(capsys):
    options = diffusion.arguments(["--check", "--device", "cpu", "--threads", "1", "--model", "ddpm_256"])
    assert diffusion.run(options, diffusion.build) == 0, capsys.readouterr().out


def test_claims_at_full_size_are_the_public_ones():
    for model, parameters in diffusion.PUBLIC_PARAMETERS.items():
        assert diffusion.cost(diffusion.SHAPES[model]["full"]).parameters == parameters
