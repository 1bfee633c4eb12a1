"""The published JSON Schema says what the checks say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from json_schemas import fits

from benchwright.kinds.suite.read.keys import entry_problem, entry_table, json_schema

ROOT = Path(__file__).parents[4]
PUBLISHED = ROOT / "src" / "benchwright" / "schemas" / "suite.schema.json"
REAL = ROOT.parent / "shared" / "compat" / "milabench" / "config"
OURS = ROOT / "tests" / "compat" / "suites"


@pytest.mark.compat
def test_the_published_schema_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate_schema.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(PUBLISHED.read_text()) == json_schema()


def test_every_key_is_in_it_with_its_meaning() -> None:
    properties = json_schema()["definitions"]["entry"]["properties"]
    assert list(properties) == list(entry_table().keys)
    assert all(one["description"] for one in properties.values())


@pytest.mark.compat
@pytest.mark.skipif(not REAL.is_dir(), reason="milabench's own files are not beside this checkout")
@pytest.mark.parametrize(
    "name", ["all", "ci", "standard", "training", "inference", "synthetic", "_defaults", "examples/benchio"]
)
def test_real_suites_fit_it(name: str) -> None:
    schema = json_schema()
    assert fits(yaml.safe_load((REAL / f"{name}.yaml").read_text()), schema, schema)


@pytest.mark.compat
@pytest.mark.parametrize("name", ["base", "nightly", "sweep"])
def test_our_suites_fit_it(name: str) -> None:
    schema = json_schema()
    assert fits(yaml.safe_load((OURS / f"{name}.yaml").read_text()), schema, schema)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.sampled_from(["x", "1s", "per_gpu", "torchrun", "${a}", "10m", "-1s"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(["method", "n", "name", "steps", "git", "argv", "options", "stop", "append", "x"]),
            inner,
            max_size=2,
        ),
    ),
    max_leaves=5,
)


@given(
    key=st.sampled_from([*(k for k in entry_table().keys if k != "job"), "x-own", "_own", "inherit", "zzz"]),
    value=values,
)
def test_the_schema_and_the_checks_agree(key: str, value: Any) -> None:
    """What the checks take, the schema takes; what the schema refuses, the checks refuse. Misspelt keys of open maps excepted."""
    schema = json_schema()
    entry = {key: value}
    problem = entry_problem(entry)
    if problem is not None and problem.at_key and len(problem.path) > 1:
        return
    assert fits({"a": entry}, schema, schema) == (problem is None), problem
