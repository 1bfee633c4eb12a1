"""Files that a program wrote against the golden files of its test."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from builders import job as job_in
from specifications import read

from benchmodels.check.goldens import ERRORS as COMPUTED
from benchwright.core.errors import InvalidInput
from benchwright.core.events import is_sound
from benchwright.executors.observer import Observer
from benchwright.kinds.spec.kind import SpecKind
from benchwright.kinds.spec.options import SpecOptions
from benchwright.kinds.spec.results.goldens import ERRORS, OutputPair, compared
from benchwright.options.table import Options
from benchwright.record import append_events, read_events


def pair(folder: Path, got: str | None, golden: str | None) -> OutputPair:
    paths = []
    for name, text in (("got.txt", got), ("golden.txt", golden)):
        if text is not None:
            (folder / name).write_text(text)
        paths.append(str(folder / name))
    return OutputPair("softmax", paths[0], paths[1])


def test_figures_and_the_worst_element_are_events_of_the_stream(tmp_path: Path) -> None:
    [event] = compared([pair(tmp_path, "1\n2\n4\n", "1\n2\n3\n")], {"max_abs": 0.5})
    assert event["figures"]["max_abs"] == 1.0
    assert event["worst"] == {"index": [2], "expected": 3.0, "got": 4.0}
    assert event["wrong"].startswith("max_abs 1 is above 0.5; furthest off at [2]: 3 expected, 4 found")
    stream = tmp_path / "s.data"
    stream.write_text('{"event":"end","n":0')  # half a line
    append_events(stream, [event])
    assert [e["event"] for e in read_events(stream)] == ["unreadable", "compared"]
    assert is_sound(msgspec.json.decode(msgspec.json.encode(event)))


def test_a_missing_or_damaged_file_is_wrong_and_named(tmp_path: Path) -> None:
    [missing] = compared([pair(tmp_path, None, "1\n")], {})
    assert missing["wrong"] == f"the program did not write {tmp_path}/got.txt"
    [damaged] = compared([pair(tmp_path, "1\nfast\n", "1\n2\n")], {})
    assert damaged["wrong"] == f"the output {tmp_path}/got.txt: line 2: 'fast' is not a number"
    [golden] = compared([pair(tmp_path, "1\n2\n", "1\nnan\n")], {})
    assert golden["wrong"].startswith("the golden is nan at [1]")
    [absent] = compared([pair(tmp_path, "1\n", "1\n")._replace(golden=None)], {})
    assert "not here" in absent["wrong"]
    assert not any(event.get("figures") for event in (missing, damaged, golden, absent))


def test_only_errors_that_are_computed_can_be_tolerated(tmp_path: Path) -> None:
    assert set(ERRORS) == set(COMPUTED)
    test = {"identifier": "{ID}", "commands": ["{program}"], "metric": "error"}
    with pytest.raises(InvalidInput, match=r"'max_abz' is not an error.*did you mean 'max_abs'"):
        read(tmp_path, {**test, "tolerance": {"max_abz": 1}})
    with pytest.raises(InvalidInput, match=r"spec.json:\d+: 'p101' is not a statistic"):
        read(tmp_path, {**test, "statistics": ["p101"]})


def test_an_output_that_an_earlier_launch_left_is_not_this_ones(tmp_path: Path) -> None:
    """Launches of a model share {HOSTDIR}."""
    (tmp_path / "golden.txt").write_text("1\n2\n")
    output = {"filename": "y.txt", "location": "{HOSTDIR}/y.txt"}
    test = {"identifier": "{ID}", "metric": "error", "commands": ["{program}"], "output_files": {"y": output}}
    options = SpecOptions(programs={"program": "/bin/true"}, model_cache=str(tmp_path / "cache"))
    [benchmark] = read(tmp_path, {**test, "golden_files": {"y": "golden.txt"}}, options=options)
    kind = SpecKind()
    assert kind.set_up([benchmark], Options(), Observer()) is None
    written = tmp_path / "files" / "models" / "net" / "y.txt"
    written.parent.mkdir(parents=True)

    def launch(number: int) -> dict[str, object]:
        [event] = kind.examined(benchmark, job_in("/bin/true", folder=tmp_path, id=f"net-0.R{number}", launch=number))
        return event

    assert "did not write" in str(launch(0)["wrong"])
    written.write_text("1\n2\n")
    assert launch(1)["wrong"] is None
    assert "did not write" in str(launch(2)["wrong"])
    assert "again" in str(launch(2)["wrong"])
    written.write_text("1\n2.5\n")
    assert launch(3)["figures"] == pytest.approx(
        {"max_abs": 0.5, "relative_l2": 0.5 / 5**0.5, "cosine": 6 / (5 * 7.25) ** 0.5, "top1": 1.0}
    )
