"""Which way is better, guessed from a metric's name and unit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.metric import Direction, guess_direction


@pytest.mark.parametrize(
    "name",
    "speed speed-p90 throughput training_acc validation_acc top1_accuracy Train-top_k_accuracy_5 F1 exact_match "
    "images_per_second tokens_per_s valAccuracy mean_fps bleu speed_per_gpu".split(),
)
def test_more_is_better(name: str) -> None:
    assert guess_direction(name, None) is Direction.HIGHER


@pytest.mark.parametrize(
    "name",
    "loss train_loss trainLoss total_training_time prediction_time test_perplexity ppl latency_p99 word_error_rate "
    "peak_memory time_per_epoch time_to_accuracy accuracy_loss ms_per_step duration".split(),
)
def test_less_is_better(name: str) -> None:
    assert guess_direction(name, None) is Direction.LOWER


@pytest.mark.parametrize("name", "epoch learning_rate lr steps batch_size grad_norm x 5 per to".split())
def test_nothing_is_claimed_about_other_names(name: str) -> None:
    assert guess_direction(name, None) is Direction.NEITHER


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("samples/s", Direction.HIGHER),
        ("images/sec", Direction.HIGHER),
        ("ms", Direction.LOWER),
        ("s/step", Direction.LOWER),
        ("MiB", Direction.LOWER),
        ("J", Direction.LOWER),
        ("MB/s", Direction.HIGHER),
        ("furlongs", Direction.NEITHER),
    ],
)
def test_the_unit_tells_where_the_name_does_not(unit: str, expected: Direction) -> None:
    assert guess_direction("value", unit) is expected


@given(st.text(), st.none() | st.text())
def test_any_name_and_unit_have_a_direction(name: str, unit: str | None) -> None:
    assert isinstance(guess_direction(name, unit), Direction)
