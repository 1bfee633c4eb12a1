"""The names of builds, and the labels of a model."""

from __future__ import annotations

from model_runs import model

from benchwright.kinds.models.build_names import all_labels, build_name, corpus_of


def test_a_name_is_script_author_and_hash() -> None:
    assert build_name(model(), {"author": "google"}) == "bert_google_8c1f02aa"
    assert build_name(model(), {}) == "bert_8c1f02aa"
    assert build_name(model(), {"author": "google,deepmind"}) == "bert_google_8c1f02aa"
    assert build_name(model(script=None, file="/m/net v1.onnx"), {"author": "a/b"}) == "net-v1_a-b_8c1f02aa"


def test_the_corpus_is_a_label_or_the_folder() -> None:
    assert corpus_of(model(script="/models/torch_hub/alexnet.py"), {}) == "torch_hub"
    assert corpus_of(model(script="/models/torch_hub/alexnet.py"), {"corpus": "mine"}) == "mine"
    assert all_labels(model(script="/m/hub/a.py"), {"author": "x"}) == {"author": "x", "corpus": "hub"}
