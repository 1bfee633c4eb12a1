from __future__ import annotations

import signal
from typing import Any

import pytest

from benchwright.agent.supervise.launch_end import OomKills, ran_out_of_memory, read_oom_kills

NONE = OomKills(0, 0)


def judge(**changes: Any) -> bool:
    facts: dict[str, Any] = {
        "exit_code": 1,
        "signal_number": None,
        "killed_by_us": False,
        "before": NONE,
        "after": NONE,
    }
    return ran_out_of_memory(**{**facts, "log_end": b"", **changes})


@pytest.mark.parametrize(
    "line",
    [
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB",
        b"torch.cuda.OutOfMemoryError: ...",
        b"Traceback\nMemoryError\n",
        b"terminate called after throwing an instance of 'std::bad_alloc'",
        b"OSError: [Errno 12] Cannot allocate memory",
        b"RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory",
        b"numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 TiB",
    ],
)
def test_a_failure_whose_log_ends_with_lack_of_memory_is_one(line):
    assert judge(log_end=b"epoch 1\n" + line + b"\n")


def test_the_same_words_in_a_success_are_not():
    assert not judge(exit_code=0, log_end=b"recovered from CUDA out of memory")


def test_a_name_that_contains_the_words_is_not():
    assert not judge(log_end=b"test_MemoryError passed\nValueError: bad input\n")


def test_a_kill_that_the_control_group_counted_is():
    assert judge(exit_code=None, signal_number=signal.SIGKILL, after=OomKills(1, 1))


def test_a_worker_that_the_control_group_lost_makes_the_failure_one():
    assert judge(exit_code=1, after=OomKills(1, 1))


def test_a_kill_nobody_counted_is_not():
    assert not judge(exit_code=None, signal_number=signal.SIGKILL)


def test_the_machines_counter_is_about_others_too_so_it_needs_a_kill():
    before, after = OomKills(None, 5), OomKills(None, 6)
    assert judge(exit_code=None, signal_number=signal.SIGKILL, before=before, after=after)
    assert not judge(exit_code=1, before=before, after=after)


def test_what_we_killed_or_never_started_is_not():
    assert not judge(exit_code=None, signal_number=signal.SIGKILL, killed_by_us=True, after=OomKills(1, 1))
    assert not judge(exit_code=None, log_end=b"MemoryError")


def test_the_kernels_counters_can_be_read():
    kills = read_oom_kills()
    assert kills.group is not None or kills.machine is not None
