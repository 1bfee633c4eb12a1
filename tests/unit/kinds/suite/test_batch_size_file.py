from __future__ import annotations

import multiprocessing
import os
import shutil
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.errors import BenchwrightError, InvalidInput
from benchwright.core.system import Observation
from benchwright.kinds.suite.batch_size_file import add_observations
from benchwright.kinds.suite.batch_sizes import read_scaling

MIB = 1 << 20
SEEN = Observation(batch_size=24, memory_bytes=1500 * MIB, perf=123.456789, cpu=8, time=1_744_929_478.9)


def test_a_file_that_is_not_there_is_made(tmp_path):
    path = tmp_path / "scaling" / "H200.yaml"
    too_large = Observation(batch_size=64, memory_bytes=None, time=5)
    saved = add_observations(path, {"bert": [too_large, SEEN]})
    assert (saved.path, saved.observations, saved.lost_comments) == (path, 2, False)
    assert path.read_text() == (
        "bert:\n"
        "  observations:\n"
        "  - {batch_size: 24, cpu: 8, memory: 1500 MiB, perf: 123.457, time: 1744929478}\n"
        "  - {batch_size: 64, memory: null, time: 5}\n"
    )
    assert list(path.parent.iterdir()) == [path]


def test_what_was_there_stays(tmp_path):
    path = tmp_path / "v1.yaml"
    path.write_text(
        "version: 1.0\n"
        "# seen on one node\n"
        "bert:\n  arg: --batch-size\n  model:\n    8: 100 MiB\n    16: 6.5 GiB\n  optimized: 128\n  tags: [a, b]\n"
        "other:\n  observations:\n  - {batch_size: 1, memory: 5 MiB, torchmem: 7 MiB}\n"
    )
    before = yaml.safe_load(path.read_text())
    assert add_observations(path, {"bert": [SEEN]}).lost_comments
    after = yaml.safe_load(path.read_text())
    observations = after["bert"].pop("observations")
    assert after == before
    assert [one["batch_size"] for one in observations] == [24]
    # And it reads as both kinds at once.
    assert [o.batch_size for o in read_scaling(str(path))["bert"].observations] == [8, 16, 24]


def test_of_two_for_the_same_batch_and_cpus_the_newer_stays(tmp_path):
    path = tmp_path / "x.yaml"

    def one(batch: int, mib: int, cpu: int | None = 8, time: float | None = 1) -> Observation:
        return Observation(batch_size=batch, memory_bytes=mib * MIB, cpu=cpu, time=time)

    add_observations(path, {"b": [one(16, 1), one(8, 2), one(8, 3, cpu=16), one(8, 4, cpu=None)]})
    add_observations(path, {"b": [one(8, 5, time=2), one(16, 6, time=0), one(8, 7, cpu=None, time=None)]})
    assert [(o.batch_size, o.cpu, o.memory_bytes // MIB) for o in read_scaling(str(path))["b"].observations] == [
        (8, None, 7),
        (8, 8, 5),
        (8, 16, 3),
        (16, 8, 1),
    ]


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True),
        st.lists(
            st.builds(
                Observation,
                batch_size=st.integers(1, 10**6),
                memory_bytes=st.none() | st.integers(0, 1 << 45),
                perf=st.none() | st.floats(0, 1e12),
                cpu=st.none() | st.integers(1, 512),
                time=st.none() | st.integers(0, 1 << 33).map(float),
            ),
            max_size=5,
            unique_by=lambda o: (o.batch_size, o.cpu),
        ),
        max_size=4,
    )
)
def test_what_is_written_is_what_is_read(found):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.yaml"
        add_observations(path, found)
        add_observations(path, found)  # a second time changes nothing
        read = read_scaling(str(path))
    assert set(read) == set(found)
    for name, observations in found.items():
        expected = sorted(observations, key=lambda o: (o.batch_size, o.cpu or 0))
        assert [(o.batch_size, o.cpu, o.time) for o in read[name].observations] == [
            (o.batch_size, o.cpu, o.time) for o in expected
        ]
        for one, other in zip(read[name].observations, expected, strict=True):
            for value, written, allowed in (
                (one.memory_bytes, other.memory_bytes, {"abs": 600}),
                (one.perf, other.perf, {"rel": 1e-5}),
            ):
                assert value is None if written is None else value == pytest.approx(written, **allowed)


@pytest.mark.parametrize("name", ["default.yaml", "L40S.yaml"])
def test_real_files_stay_what_they_were(name, tmp_path):
    real = Path(__file__).parents[5] / "shared" / "compat" / "milabench" / "config" / "scaling" / name
    if not real.exists():
        pytest.skip("the shared files are not here")
    path = Path(shutil.copy(real, tmp_path))
    before = read_scaling(str(path))
    add_observations(path, {"new-one": [SEEN], "bert-fp16": [SEEN]})
    after = read_scaling(str(path))
    assert [o.batch_size for o in after.pop("new-one").observations] == [24]
    bert, bert_before = after.pop("bert-fp16"), before.pop("bert-fp16")
    assert {o.batch_size for o in bert.observations} == {o.batch_size for o in bert_before.observations} | {24}
    assert (bert.arg, bert.optimized) == (bert_before.arg, bert_before.optimized)

    def as_sets(scaling):
        return {name: (set(x.observations), x.arg, x.optimized) for name, x in scaling.items()}

    assert as_sets(after) == as_sets(before)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is not YAML"),
        ("- 1", "is not a scaling file"),
        ("b: 3", "'b' is not a map"),
        ("b: {observations: {x: 1}}", "are not a list of maps"),
        ("b: {observations: [1]}", "are not a list of maps"),
        ("x: 2001-99-99", "is not YAML"),
        ("[" * 5000, "is not YAML"),
        ("\x00", "is not YAML"),
    ],
)
def test_a_file_that_is_no_scaling_file_is_not_touched(text, said, tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=said):
        add_observations(path, {"b": [SEEN]})
    assert path.read_text() == text


def test_an_entry_without_content_is_filled(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("b:\n")
    add_observations(path, {"b": [SEEN]})
    assert [o.batch_size for o in read_scaling(str(path))["b"].observations] == [24]


@given(st.binary(max_size=60))
def test_anything_at_all_is_added_to_or_refused(content):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.yaml"
        path.write_bytes(content)
        try:
            add_observations(path, {"b": [SEEN]})
        except BenchwrightError:
            assert path.read_bytes() == content


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.yaml").write_text("")
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    add_observations(tmp_path / "link.yaml", {"b": [SEEN]})
    assert (tmp_path / "link.yaml").is_symlink()
    assert "b:" in (tmp_path / "real.yaml").read_text()


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="choose another place"):
        add_observations(tmp_path / "file" / "x.yaml", {"b": [SEEN]})


def _add_many(path: str, name: str) -> None:
    for size in range(1, 21):
        add_observations(path, {name: [Observation(batch_size=size, memory_bytes=size * MIB)]})


@pytest.mark.unmeasured
def test_several_at_once_lose_nothing(tmp_path):
    path = str(tmp_path / "x.yaml")
    context = multiprocessing.get_context("fork" if os.name == "posix" else None)
    workers = [context.Process(target=_add_many, args=(path, name)) for name in ("a", "b", "c")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert {name: len(x.observations) for name, x in read_scaling(path).items()} == {"a": 20, "b": 20, "c": 20}
