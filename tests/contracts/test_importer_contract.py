"""What every importer must do with any file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugin_package import variants

from benchwright.analysis.summary import summarize
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Run
from benchwright.runs.importers import (
    IMPORTERS,
    Importer,
    import_results,
    importer_named,
    output_reader_named,
    output_readers,
)

pytestmark = [pytest.mark.usefixtures("plugins"), pytest.mark.compat]  # all importers are in compat
SAMPLES = Path(__file__).parents[1] / "compat" / "imports"
FILES = {
    "hyperfine": ["hyperfine.json", "hyperfine_parameters.json", "hyperfine_shell.json"],
    "pytest-benchmark": ["pytest_benchmark.json", "pytest_benchmark_storage.json"],
    "google-benchmark": [
        "google_benchmark.json",
        "google_benchmark_aggregates.json",
        "google_benchmark_python.json",
    ],
    "asv": [f"asv_v{version}/sample-machine/e0a94ef3-existing-py3.11.json" for version in (1, 2)],
    "vllm": ["vllm_serve.json"],
    "guidellm": ["guidellm.json"],
    "aiperf": ["aiperf.json"],
    "driver": ["driver_result.json"],
    "timings": ["timings.json"],
    "fai-pep": [
        "faipep/Linux-5.4.0-x86_64-Intel-Xeon/caffe2/squeezenet/delay/squeezenet-0/2018/3/19/0f2a9c4/0/NET-latency.txt"
    ],
    "milabench": ["milabench/rijubigo.2023-03-24/benchio.0.R0.data", "milabench/replays/early_stop.data"],
}
REAL = [pytest.param(name, SAMPLES / file, id=file) for name, files in FILES.items() for file in files]
any_importer = pytest.mark.parametrize("name", variants(IMPORTERS))
any_file = pytest.mark.parametrize(("name", "path"), REAL)
# A file of lines is read as far as it goes: tests/unit/compat/milabench/test_run_folder.py changes and cuts those.
any_json_file = pytest.mark.parametrize(
    ("name", "path"), [p for p in REAL if p.id and p.id.endswith((".json", ".txt"))]
)
fast = settings(
    max_examples=min(60, settings().max_examples),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

# Words of the formats, so that what is made up often looks nearly right.
WORDS = sorted({word for files in FILES.values() for file in files for word in (SAMPLES / file).read_text().split('"')})
numbers = st.integers() | st.floats() | st.sampled_from([10**400, -1, 0, 2**64])
leaves = st.none() | st.booleans() | numbers | st.text(max_size=8) | st.sampled_from(WORDS)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=12,
)


def check(importer: Importer, path: Path) -> list[Run]:
    """Reads the file and uses what came of it; nothing but a placed InvalidInput may be raised."""
    importer.recognises(path)
    try:
        runs, refusal = importer.read(path), None
    except InvalidInput as error:
        runs, refusal = [], error
    assert refusal is None or (refusal.where == str(path) and refusal.what)
    for run in runs:
        names = [result.benchmark.name for result in run.results]
        assert len(names) == len(set(names))
        assert all(names)
        jobs = [launch.job for result in run.results for launch in result.launches]
        assert len(jobs) == len(set(jobs))
        for result in run.results:
            summarize(result.counted)
    return runs


def leaf_places(body: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value: the object or list it is in, and its key there."""
    if isinstance(body, dict):
        return [(body, k) for k in body] + [place for v in body.values() for place in leaf_places(v)]
    if isinstance(body, list):
        return [(body, i) for i in range(len(body))] + [place for v in body for place in leaf_places(v)]
    return []


@any_file
def test_a_real_file_is_recognised_by_its_own_importer_only(name: str, path: Path) -> None:
    assert [other for other in IMPORTERS.names() if importer_named(other).recognises(path)] == [name]
    assert [run.labels["imported_from"] for run in import_results(path).runs] == [name]


@any_file
def test_the_same_content_gives_the_same_run_wherever_it_lies(name: str, path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other name.json"
    copy.write_bytes(path.read_bytes())
    (run,) = importer_named(name).read(path)
    (again,) = importer_named(name).read(copy)
    assert run.id == again.id
    assert run.id.startswith(f"import.{name}.")
    assert run.labels["imported_from"] == name
    assert run.folder == str(path)


@any_file
def test_other_content_gives_another_run(name: str, path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "edited.json"
    copy.write_bytes(path.read_bytes() + b"\n")
    assert importer_named(name).read(copy)[0].id != importer_named(name).read(path)[0].id


@any_file
def test_a_real_file_gives_numbers(name: str, path: Path) -> None:
    (run,) = check(importer_named(name), path)
    assert msgspec.json.encode(run)
    assert any(m.samples for r in run.results for x in r.counted for m in x.measurements)


@any_importer
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"null",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b"9" * 5000,
        b'{"a":',
        b"\xef\xbb\xbf{}",
        b'"\\ud800"',
    ],
    ids=lambda raw: repr(raw[:12]),
)
def test_what_is_no_result_file_is_refused_or_gives_nothing(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert not importer_named(name).recognises(path)
    assert check(importer_named(name), path) == []


@any_importer
@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.mkdir()], ids=["missing", "folder"])
def test_a_path_that_is_no_file_is_refused(name: str, make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "x")
    assert not importer_named(name).recognises(tmp_path / "x")
    with pytest.raises(InvalidInput, match="cannot be read"):
        importer_named(name).read(tmp_path / "x")


@any_importer
@fast
@given(content=st.binary(max_size=200))
def test_any_bytes_give_runs_or_a_placed_error(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert all(msgspec.json.encode(run) for run in check(importer_named(name), path))


@any_importer
@fast
@given(body=values)
def test_any_json_gives_runs_or_a_placed_error(name: str, body: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(body))
    assert all(msgspec.json.encode(run) for run in check(importer_named(name), path))


@any_json_file
@fast
@given(data=st.data())
def test_a_real_file_with_anything_changed_gives_runs_or_a_placed_error(
    name: str, path: Path, data: st.DataObject, tmp_path: Path
) -> None:
    body = json.loads(path.read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        places = leaf_places(body)
        where, key = places[data.draw(st.integers(0, len(places) - 1))]
        where[key] = data.draw(values)
    changed = tmp_path / "x.json"
    changed.write_text(json.dumps(body))
    assert all(msgspec.json.encode(run) for run in check(importer_named(name), changed))


@any_json_file
@fast
@given(data=st.data())
def test_a_real_file_that_is_cut_off_is_refused_at_a_line(
    name: str, path: Path, data: st.DataObject, tmp_path: Path
) -> None:
    whole = path.read_bytes().rstrip()
    cut = tmp_path / "x.json"
    cut.write_bytes(whole[: data.draw(st.integers(1, len(whole) - 1))])
    with pytest.raises(InvalidInput) as caught:
        importer_named(name).read(cut)
    assert caught.value.line is not None


@fast
@given(document=st.dictionaries(st.sampled_from(WORDS), values, max_size=6), data=st.data())
def test_any_printed_document_gives_records_or_nothing(document: dict[str, Any], data: st.DataObject) -> None:
    reader = output_reader_named(data.draw(st.sampled_from(output_readers())))
    assert reader is not None
    assert all({"type", "metric"} <= record.keys() for record in reader.printed(document))


def test_only_importers_of_one_document_read_output() -> None:
    assert {"hyperfine", "pytest-benchmark", "google-benchmark"} == set(output_readers())
    assert output_reader_named("asv") is output_reader_named("no such tool") is None
