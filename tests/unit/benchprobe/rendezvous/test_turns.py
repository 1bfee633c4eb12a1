"""Turns: one process at a time, whoever comes, dies or is done first."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from benchprobe.config import Rendezvous
from benchprobe.rendezvous.barrier import TurnMeeting, meeting_at

TURN_S = 0.02


def meeting(folder: Path, size: int, rank: int, turn_s: float = TURN_S) -> TurnMeeting:
    found = meeting_at(Rendezvous(str(folder), size, rank, turn_s))
    assert isinstance(found, TurnMeeting)
    return found


class Runner(threading.Thread):
    """Goes through steps of 5 ms as a loop would, and notes when each began and ended."""

    def __init__(self, folder: Path, size: int, rank: int, steps: int, turn_s: float = TURN_S) -> None:
        super().__init__(daemon=True)
        self.meeting = meeting(folder, size, rank, turn_s)
        self.left = steps
        self.spans: list[tuple[int, int]] = []
        self.paused_ns = 0

    def run(self) -> None:
        self.meeting.wait_until_all_ready()
        while self.left:
            began = time.perf_counter_ns()
            time.sleep(0.005)
            ended = time.perf_counter_ns()
            self.spans.append((began, ended))
            self.left -= 1
            if self.left:
                self.paused_ns += self.meeting.let_others(ended)
        self.meeting.say_done()
        assert self.meeting.all_done()


def overlaps(runners: list[Runner]) -> int:
    spans = sorted((span, rank) for rank, runner in enumerate(runners) for span in runner.spans)
    return sum(a[0][1] > b[0][0] for a, b in itertools.pairwise(spans) if a[1] != b[1])


@pytest.mark.parametrize("steps", [(40, 40), (40, 12, 25), (1, 30), (30, 1, 1)])
def test_steps_never_overlap_and_everybody_gets_to_the_end(tmp_path: Path, steps: tuple[int, ...]) -> None:
    runners = [Runner(tmp_path, len(steps), rank, count) for rank, count in enumerate(steps)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join(300)
        assert not runner.is_alive()
    assert [len(runner.spans) for runner in runners] == list(steps)
    assert overlaps(runners) == 0


def test_rank_0_begins_and_pauses_are_told(tmp_path: Path) -> None:
    runners = [Runner(tmp_path, 2, rank, 20) for rank in (0, 1)]
    for runner in reversed(runners):
        runner.start()
    for runner in runners:
        runner.join(300)
    first, second = runners
    assert first.spans[0] < second.spans[0]
    told = first.meeting.details()
    assert told["turn_s"] == TURN_S
    assert told["turns"] >= 3
    assert told["paused_ns"] == first.paused_ns
    others_ns = sum(end - begin for begin, end in second.spans if begin < first.spans[-1][0])
    assert first.paused_ns >= others_ns


def test_the_turn_of_a_process_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        try:
            meeting(tmp_path, 2, 0).wait_until_all_ready()
            time.sleep(60)  # in its turn
        finally:
            os._exit(1)
    survivor = Runner(tmp_path, 2, 1, 5)
    survivor.start()
    time.sleep(0.3)
    assert survivor.spans == []
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    (tmp_path / "gone-0").touch()  # as its supervisor does
    survivor.join(300)
    assert len(survivor.spans) == 5


def test_alone_it_goes_on_without_a_pause(tmp_path: Path) -> None:
    (tmp_path / "gone-1").touch()
    alone = Runner(tmp_path, 2, 0, 20)
    alone.start()
    alone.join(300)
    assert (len(alone.spans), alone.paused_ns) == (20, 0)


def test_one_that_leaves_passes_its_turn_on(tmp_path: Path) -> None:
    # In one turn, however busy the machine is: it would pass the next one to whoever left.
    leaving, waiting = Runner(tmp_path, 2, 0, 1, turn_s=600), Runner(tmp_path, 2, 1, 3, turn_s=600)
    waiting.start()
    leaving.meeting.wait_until_all_ready()
    leaving.meeting.leave()  # its process ends by itself
    waiting_until = time.monotonic() + 300
    while len(waiting.spans) < 3 and time.monotonic() < waiting_until:
        time.sleep(0.01)
    assert len(waiting.spans) == 3
    (tmp_path / "gone-0").touch()
    waiting.join(300)


def test_a_folder_that_went_away_is_an_error_and_no_endless_wait(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        meeting(tmp_path / "nowhere", 2, 0).wait_until_all_ready()
