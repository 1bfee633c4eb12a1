from __future__ import annotations

import json

import pytest
from builders import job

from benchwright.agent.supervise.program_environment import build_environment, device_tokens, visible_devices
from benchwright.core.job import JobBarrier


def test_changes_are_applied_to_what_is_inherited():
    built = build_environment(job(env={"A": "1", "B": None}), {"B": "2", "C": "3"}, "mark")
    assert (built["A"], built["C"], built["BENCHWRIGHT_JOB"]) == ("1", "3", "mark")
    assert "B" not in built


def test_benchprobe_is_told_where_to_write_and_whom_to_wait_for():
    barrier = JobBarrier(folder="/b", size=2, rank=1)
    built = build_environment(job(probe={"stop": {"steps": 3}}, barrier=barrier), {}, "mark")
    assert json.loads(built["BENCHPROBE_CONFIG"]) == {
        "stop": {"steps": 3},
        "stream": "/f/job.data",
        "barrier": {"folder": "/b", "size": 2, "rank": 1, "turn_s": None},
    }


@pytest.mark.parametrize(("inherited", "expected"), [({}, "/probe"), ({"PYTHONPATH": "/mine"}, "/probe:/mine")])
def test_benchprobe_comes_first_on_the_path(inherited, expected):
    assert build_environment(job(probe_path="/probe"), inherited, "mark")["PYTHONPATH"] == expected


def test_without_a_probe_path_the_path_is_left_alone():
    assert "PYTHONPATH" not in build_environment(job(), {}, "mark")


def test_devices_are_numbered_as_the_fingerprint_numbers_them():
    built = build_environment(job(devices=(1,)), {}, "mark")
    assert (built["CUDA_VISIBLE_DEVICES"], built["CUDA_DEVICE_ORDER"]) == ("1", "PCI_BUS_ID")


def test_devices_are_counted_among_those_the_caller_may_use():
    inherited = {"CUDA_VISIBLE_DEVICES": "4,GPU-abc,7"}
    built = build_environment(job(devices=(1, 2)), inherited, "mark")
    assert built["CUDA_VISIBLE_DEVICES"] == "GPU-abc,7"
    assert "CUDA_DEVICE_ORDER" not in built


def test_a_job_without_devices_sees_what_the_caller_sees():
    assert "CUDA_VISIBLE_DEVICES" not in build_environment(job(), {}, "mark")


def test_what_the_user_says_about_devices_stands():
    built = build_environment(job(devices=(1,), env={"CUDA_VISIBLE_DEVICES": "9"}), {}, "mark")
    assert built["CUDA_VISIBLE_DEVICES"] == "9"


def test_more_devices_than_the_caller_may_use_is_an_error_that_says_so():
    with pytest.raises(LookupError, match="device 1 was requested, but CUDA_VISIBLE_DEVICES=3 allows 1"):
        device_tokens((0, 1), {"CUDA_VISIBLE_DEVICES": "3"})


@pytest.mark.parametrize(("text", "expected"), [("", []), ("-1", []), ("0, 2", ["0", "2"]), ("1,-1,2", ["1"])])
def test_visible_devices_are_read_as_cuda_reads_them(text, expected):
    assert visible_devices({"CUDA_VISIBLE_DEVICES": text}) == expected


def test_voir_is_told_where_its_data_go():
    assert "DATA_FD" not in build_environment(job(), {}, "mark")
    assert build_environment(job(data_file="/d"), {"DATA_FD": "9"}, "mark")["DATA_FD"] == "3"
    assert build_environment(job(data_file="/d", env={"DATA_FD": "1"}), {}, "mark")["DATA_FD"] == "1"


def test_python_writes_each_hidden_line_at_once():
    """Otherwise a full buffer would be cut anywhere, and the lines of several processes would be mixed."""
    assert build_environment(job(env={"DATA_FD": "1"}), {}, "mark")["PYTHONUNBUFFERED"] == "1"
    assert "PYTHONUNBUFFERED" not in build_environment(job(data_file="/d"), {}, "mark")
    assert "PYTHONUNBUFFERED" not in build_environment(job(), {"DATA_FD": "1"}, "mark")
