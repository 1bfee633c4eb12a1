"""What is asked of models reaches the process that builds and measures one, whichever option it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmodels.settings import ModelSettings, as_config, settings_from
from benchwright.core.errors import InvalidInput
from benchwright.core.model import Model
from benchwright.kinds.models.benchmarks import model_of, variants
from benchwright.kinds.models.kind import _measuring_settings
from benchwright.options.table import OF_MODEL, OPTIONS, Options

ASKED: dict[str, Any] = {
    **{"items": 5, "max_depth": 1, "profile": True, "trust": True, "scale": "full"},
    **{"shapes": {"x": (1, 3)}, "rebuild": "always", "onnx_opset": 17, "build_timeout": 7.0},
    "sequence_file": "/x/seq.py",
}


def settings_of(options: Options) -> ModelSettings:
    model = model_of(options, runtime="onnxruntime", python="py", cwd="/", identity="ab", script="/a.py")
    text = json.dumps(_measuring_settings(model, {}, 1, options.seed)["models"])
    return settings_from(json.loads(text))


def test_every_option_of_a_model_is_tried_here() -> None:
    assert set(ASKED) == {name for name, row in OPTIONS.items() if row.of_model}
    assert all(ASKED[name] != OPTIONS[name].default for name in ASKED)
    assert set(OF_MODEL) <= set(Model.__struct_fields__)


def test_what_is_asked_reaches_the_process_of_a_model_under_its_own_name() -> None:
    settings = settings_of(Options(**ASKED, stops_after="build", base="/b"))
    found = {**settings._asdict(), **settings.options._asdict()}
    assert {name: found[name] for name in ASKED} == {**ASKED, "shapes": {"x": [1, 3]}}
    assert (settings.stops_after, settings.builds, settings.items_from) == ("build", "/b/builds", "--items")


def test_the_process_of_a_build_gets_what_the_measuring_one_was_given() -> None:
    for settings in (settings_of(Options(**ASKED)), settings_of(Options())):
        assert settings_from(as_config(settings)) == settings


def test_a_runtime_is_given_a_core_for_each_thread_unless_a_number_was_asked_for() -> None:
    assert settings_from({"identity": "x"}).options.threads >= 1
    assert settings_from({"identity": "x", "threads": None, "streams": 0}).options.streams == 1
    assert settings_from({"identity": "x", "threads": 5}).options.threads == 5


def test_each_number_of_threads_and_callers_is_measured_and_named() -> None:
    swept = variants(Options(threads=(1, 2), streams=(1, 4), precisions=("fp32",)))
    assert [(each.threads, each.streams) for each in swept] == [(1, 1), (1, 4), (2, 1), (2, 4)]
    assert swept[1].swept == {"threads": "1", "streams": "4"}
    (alone,) = variants(Options(threads=(2,), streams=(4,)))
    assert (alone.threads, alone.streams, alone.swept) == (2, 4, {}), "one number is no sweep"


@pytest.mark.parametrize("text", ["0", "1,,2", "two", "257", "-1", "1.5", ""])
def test_what_is_no_list_of_counts_is_refused(text: str) -> None:
    parse = OPTIONS["streams"].parse
    assert parse is not None
    with pytest.raises(InvalidInput, match="--streams"):
        parse(text)
    assert parse("4, 1,4") == (4, 1)
