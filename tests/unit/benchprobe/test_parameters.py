"""The standard parameters of model scripts."""

from __future__ import annotations

import pytest

import benchprobe
from benchprobe.parameters import PARAMETERS, parse


def test_values_come_in_the_order_asked_for_and_other_arguments_are_left_alone():
    argv = ["--mine", "3", "--width", "32", "positional", "--batch_size=8", "--alpha", "1.5", "--pretrained"]
    assert parse(["alpha", "batch_size", "width", "height", "pretrained", "kvcache"], argv) == [
        1.5,
        8,
        32,
        224,
        True,
        False,
    ]
    assert parse("max_seq_length", ["--max_seq", "4"]) == [128]  # no abbreviations: they may be the script's own


def test_the_standard_set_has_the_usual_values():
    assert {name: parameter.default for name, parameter in PARAMETERS.items()} == {
        "batch_size": 1, "max_seq_length": 128, "max_audio_seq_length": 25600, "height": 224, "num_channels": 3,
        "width": 224, "k": 8, "alpha": 2.2, "out_channels": 16, "num_layers": 8, "in_channels": 1433,
        "pretrained": False, "model_path": None, "kvcache": False,
    }  # fmt: skip
    assert benchprobe.parse is parse


def test_a_name_that_is_not_standard_is_told_with_those_that_are():
    with pytest.raises(
        ValueError, match=r"does not know 'batchsize'; the standard parameters are batch_size, max_seq_length"
    ):
        parse(["batchsize"], [])


def test_a_value_that_does_not_fit_is_told_as_any_program_does(capsys):
    with pytest.raises(SystemExit):
        parse(["batch_size"], ["--batch_size", "many"])
    assert "argument --batch_size: invalid whole number value: 'many'" in capsys.readouterr().err
