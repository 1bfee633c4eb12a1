"""`find`: models as a tree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchwright.core.model import NEVER_CALLED, TRAINING, FoundInput, FoundModel, ScriptDiscovery
from benchwright.kinds.models.report.found import found_json, render_found


def found(identity: str, class_: str, **fields: Any) -> FoundModel:
    given = {"parameters": 1433, "place": {"file": "/home/user/bert.py", "line": 21}, "calls": 1} | fields
    return FoundModel(identity=identity.ljust(16, "0"), class_=class_, **given)


def discovery(*models: FoundModel, **fields: Any) -> ScriptDiscovery:
    return ScriptDiscovery(script="bert.py", models=models, **fields)


BERT = found(
    "8c1f02aa",
    "BertModel",
    parameters=109_482_240,
    flops=22.4e9,
    inputs=(FoundInput(name="input_ids", shape=(1, 128), dtype="int64"), FoundInput(name="use_cache", value="False")),
)
ENCODER = found("9c", "BertEncoder", parent=BERT.identity, path="encoder", depth=1)
LAYER = found("7c", "BertLayer", parent=ENCODER.identity, path="layer.0", depth=2, calls=12)


def test_a_model_has_its_size_arithmetic_place_identity_and_inputs() -> None:
    text = render_found(discovery(BERT))
    assert "   BertModel  109.5 M parameters  22.4 GFLOP  (bert.py:21)  8c1f02aa\n" in text
    assert "     input_ids 1×128 int64, use_cache=False\n" in text
    assert text.endswith(" 1 model\n")


def test_parts_stand_below_their_model_whatever_their_order() -> None:
    lines = render_found(discovery(LAYER, BERT, ENCODER)).splitlines()
    places = {
        word: next(i for i, line in enumerate(lines) if word in line) for word in ("BertModel", "encoder", "layer.0")
    }
    assert places["BertModel"] < places["encoder"] < places["layer.0"]
    assert [len(lines[i]) - len(lines[i].lstrip()) for i in places.values()] == [3, 5, 7]
    assert any("called 12 times" in line for line in lines)


def test_a_part_without_a_known_whole_is_not_lost() -> None:
    assert "BertEncoder" in render_found(discovery(ENCODER))


def test_parts_that_name_each_other_are_not_lost_and_end() -> None:
    one, other = found("aa", "One", parent="bb".ljust(16, "0")), found("bb", "Other", parent="aa".ljust(16, "0"))
    text = render_found(discovery(one, other))
    assert "One" in text
    assert "Other" in text


def test_what_will_not_be_measured_says_why() -> None:
    never = found("aa", "Head", mode=NEVER_CALLED, place=None, made_at={"file": "/x/bert.py", "line": 5})
    trained = found("bb", "Net", mode=TRAINING, reason="120 training steps", training_calls=120)
    text = render_found(discovery(BERT, never, trained))
    assert "Head  1,433 parameters  (bert.py:5)" in text
    assert "not measured: it is never called" in text
    assert "not measured: 120 training steps" in text
    assert text.endswith(" 3 models, 1 to be measured\n")


def test_a_script_that_failed_keeps_what_was_found() -> None:
    text = render_found(discovery(BERT, trouble="ValueError: no", notes=("it started 2 processes",)))
    assert "BertModel" in text
    assert "⚠ the script failed: ValueError: no; models called before that are listed" in " ".join(text.split())
    assert "⚠ it started 2 processes" in text


def test_a_script_without_a_model_says_so() -> None:
    assert "no model was found" in render_found(discovery())


def test_a_script_of_another_framework_is_told_what_works_instead() -> None:
    text = " ".join(render_found(discovery(frameworks=("jax",))).split())
    assert "no model was found: it uses jax, and only models of torch are looked for; time all of it" in text
    assert "measure a model file such as .onnx" in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_it_fits(width: int) -> None:
    odd = found("cc", "C\x1b[31m" + "x" * 300, reason="w " * 200, inputs=BERT.inputs * 20)
    text = render_found(discovery(BERT, ENCODER, LAYER, odd, labels={"author": "a" * 300}), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "\x1b" not in text


def test_json_has_every_field_and_a_version() -> None:
    body = json.loads(json.dumps(found_json(discovery(BERT, LAYER, labels={"author": "google"}))))
    assert (body["format"], body["version"], body["script"]) == ("benchwright-found", 1, "bert.py")
    assert body["models"][0]["class"] == "BertModel"
    assert body["models"][0]["inputs"][0] == {"name": "input_ids", "shape": [1, 128], "dtype": "int64", "value": None}
    assert body["models"][0]["measurable"] is True
    assert body["labels"] == {"author": "google"}
