"""Options of specifications."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.kinds.spec.options import SpecOptions, spec_options_of
from benchwright.runner.requests import options_of


def options(**given: Any) -> SpecOptions:
    return spec_options_of(options_of({"base": "/base", **given}))


def test_programs_are_paths_commands_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("prog", "a=b", "my prog"):
        (tmp_path / name).write_text("")
    assert options(programs=("prog", "tool=my prog")).programs == {
        "program": str(tmp_path / "prog"),
        "tool": str(tmp_path / "my prog"),
    }
    assert options(programs=("a=b",)).programs == {"program": str(tmp_path / "a=b")}
    assert options(programs=("sh prog 'x y'",)).programs["program"].endswith("/sh prog 'x y'")
    for wrong, said in (("nothing", "no such program: nothing"), (".", "is a folder"), ("tool=", "names no program")):
        with pytest.raises(InvalidInput, match=said) as error:
            options(programs=(wrong,))
        assert error.value.where == "--program"


def test_info_names_both_sides() -> None:
    info = {
        "treatment": {"commit": "new", "commit_time": 1500000000, "program": "/bin/true", "version": "1"},
        "control": {
            "commit": "old",
            "commit_time": "2017-07-14T02:40:00",
            "programs": {"program": {"location": "/bin/sh"}},
        },
        "meta": {"who": "me", "many": []},
        "run_type": "verify",
    }
    found = options(info=json.dumps(info))
    assert found.treatment is not None
    assert found.control is not None
    assert found.treatment.commit_time == found.control.commit_time == 1500000000.0
    assert found.treatment.programs["program"] == "/bin/true"
    assert found.control.programs == {"program": "/bin/sh"}
    assert found.labels == {"who": "me"}
    assert found.run_type == "verify"
    assert options(info=json.dumps(info), run_type="benchmark").run_type == "benchmark"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"info": "{"}, "--info: is not JSON"),
        ({"info": "[]"}, "--info: is not a JSON object"),
        ({"info": '{"treatment": 3}'}, "treatment is not an object"),
        ({"info": '{"control": {"commit": "a"}}'}, "a control needs a treatment"),
        ({"info": '{"treatment": {"commit_time": "soon"}}'}, "commit_time 'soon' is not a time"),
        ({"info": '{"treatment": {"program": "/nothing/here"}}'}, "--info treatment: no such program"),
        ({"info": '{"treatment": {"programs": {"p": {}}}}'}, "program 'p' has no location"),
        ({"info": '{"run_type": "x"}'}, "'x' is not a run type"),
        ({"info": '{"meta": []}'}, "meta is not an object"),
        ({"string_map": '{"a": {}}'}, "--string-map: a is not text"),
        ({"regressed_types": '["NET"]'}, "marks nothing in this run; add --run-type regress"),
        ({"regressed_types": "NET", "run_type": "regress"}, "is not a JSON list"),
        ({"shared_libs": ("/nothing.so",)}, "--shared-libs: no such file"),
        ({"root_model_dir": "/nothing"}, "--root-model-dir: no such folder"),
    ],
)
def test_what_is_wrong_is_told(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        options(**given)
    assert said in str(error.value)


def test_json_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text('{"DIR": "/data", "N": 3}')
    assert options(string_map=str(tmp_path / "map.json")).string_map == {"DIR": "/data", "N": "3"}


def test_a_model_cache_in_a_checkout_is_refused_unless_forced(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    inside = str(tmp_path / "a" / "cache")
    with pytest.raises(InvalidInput, match="inside the git checkout"):
        options(model_cache=inside)
    assert options(model_cache=inside, force_model_cache=True).model_cache == inside
    assert options().model_cache == "/base/artifacts"


def test_regressed_types_are_kept() -> None:
    assert options(regressed_types='["NET"]', run_type="regress").regressed_types == ("NET",)
